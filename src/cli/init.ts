// `gateway init`: its flags. What it does is init-run.ts, loaded only when asked for.

import { Command } from "commander";
import { addExamples } from "./examples.ts";
import type { InitFlags } from "./init-run.ts";

export function initCommand(): Command {
  const command = new Command("init")
    .description("write a config file from the credentials in the environment")
    .option("--yes", "ask nothing, take what the environment has")
    .option("--json", "the new keys as one JSON document on stdout")
    .option("--config <file>", "where the config file is written (default: ./gateway.yaml)")
    .action(async (flags: InitFlags) => {
      const { init } = await import("./init-run.ts");
      await init(flags);
    });
  return addExamples(command, [
    [
      "gateway init",
      "asks which platforms, takes their credentials from the environment, makes the first keys",
    ],
    ["ANTHROPIC_API_KEY=sk-ant-… gateway init --yes --json", "for a script: asks nothing, the keys as JSON"],
  ]);
}
