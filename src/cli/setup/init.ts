// `gateway init`: its flags. What it does is init-run.ts and adopt-run.ts, loaded only when they are needed.

import { Command } from "commander";
import type { AdoptFlags } from "./adopt-run.ts";
import { addExamples } from "../examples.ts";
import type { InitFlags } from "./init-run.ts";

export function initCommand(): Command {
  const command = new Command("init")
    .description("write a config file from the credentials in the environment")
    .option(
      "--adopt <file>",
      "make this file your config, its ledger included, after a look at where it sends credentials",
    )
    .option("--yes", "ask nothing, take what the environment has")
    .option("--json", "the new keys as one JSON document on stdout")
    .option("--config <file>", "where the config file is written (default: ~/.config/gateway/gateway.yaml)")
    .action(async ({ adopt: adopted, ...flags }: InitFlags & Partial<AdoptFlags>) => {
      if (adopted !== undefined) {
        const { adopt } = await import("./adopt-run.ts");
        return adopt({ ...flags, adopt: adopted });
      }
      const { init } = await import("./init-run.ts");
      return init(flags);
    });
  return addExamples(command, [
    [
      "gateway init",
      "asks which platforms, takes their credentials from the environment, makes the first keys",
    ],
    ["gateway init --adopt ./gateway.yaml", "for a file that gateway 0.1.0 wrote in this folder"],
    ["ANTHROPIC_API_KEY=sk-ant-… gateway init --yes --json", "for a script: asks nothing, the keys as JSON"],
  ]);
}
