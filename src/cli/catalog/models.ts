// `gateway models`: its flags. What it does is models-run.ts, loaded only when asked for.

import { Command } from "commander";
import { addExamples } from "../examples.ts";
import type { ModelsFlags } from "./models-run.ts";

export function modelsCommand(): Command {
  const command = new Command("models")
    .description("list what keys may call now, as their channels tell it, with prices")
    .option("--group <name>", "of this group only")
    .option("--key-name <name>", "of the group that this key is bound to")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: ModelsFlags) => {
      const { showModels } = await import("./models-run.ts");
      await showModels(flags);
    });
  return addExamples(command, [
    ["gateway models --group claude", "what the keys of a group may call"],
    ["gateway models --json | jq -r '.[].id'", "the ids alone"],
  ]);
}
