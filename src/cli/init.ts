// `gateway init`: its flags. What it does is init-run.ts, loaded only when asked for.

import { Command } from "commander";
import type { InitFlags } from "./init-run.ts";

export function initCommand(): Command {
  return new Command("init")
    .description("write a config file from the credentials in the environment")
    .option("--yes", "ask nothing, take what the environment has")
    .option("--json", "the new keys as one JSON document on stdout")
    .option("--config <file>", "where the config file is written (default: ./gateway.yaml)")
    .action(async (flags: InitFlags) => {
      const { init } = await import("./init-run.ts");
      await init(flags);
    });
}
