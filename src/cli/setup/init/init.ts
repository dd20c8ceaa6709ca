// `gateway init`: the flags. The actions are in init-run.ts and adopt-run.ts, which load only when they run.

import { Command } from "commander";
import type { AdoptFlags } from "./adopt-run.ts";
import { addExamples } from "../../terminal/help-text.ts";
import type { InitFlags } from "./init-run.ts";

export function initCommand(): Command {
  const command = new Command("init")
    .description("write a config file from the credentials in the environment")
    .option(
      "--adopt <file>",
      "make this file and its ledger your config, after showing where it sends credentials",
    )
    .option("--yes", "ask nothing and use the credentials in the environment")
    .option("--json", "the new keys as one JSON document on stdout")
    .option("--config <file>", "where to write the config (default: ~/.config/gateway/gateway.yaml)")
    .action(async ({ adopt: adopted, ...flags }: InitFlags & Partial<AdoptFlags>) => {
      if (adopted !== undefined) {
        const { adopt } = await import("./adopt-run.ts");
        return adopt({ ...flags, adopt: adopted });
      }
      const { init } = await import("./init-run.ts");
      return init(flags);
    });
  return addExamples(command, [
    ["gateway init", "choose platforms, use the credentials in the environment, create the first keys"],
    ["gateway init --adopt ./gateway.yaml", "for a file that gateway 0.1.0 wrote in this folder"],
    ["ANTHROPIC_API_KEY=sk-ant-… gateway init --yes --json", "for a script: no prompts, the keys as JSON"],
  ]);
}
