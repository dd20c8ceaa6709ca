// `gateway models`: the flags. The action is in models-run.ts, which loads only when it runs.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import type { ModelsFlags } from "./models-run.ts";

export function modelsCommand(): Command {
  const command = new Command("models")
    .description("list the available models with their prices")
    .option("--group <name>", "only the models of this group")
    .option("--key-name <name>", "only the models that this key can call")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: ModelsFlags) => {
      const { showModels } = await import("./models-run.ts");
      await showModels(flags);
    });
  return addExamples(command, [
    ["gateway models --group claude", "the models that the keys of a group can call"],
    ["gateway models --json | jq -r '.[].id'", "only the ids"],
  ]);
}
