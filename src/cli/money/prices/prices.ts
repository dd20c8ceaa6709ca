// `gateway prices …`: the flags. What each does is in prices-show.ts and prices-update.ts, loaded only when it runs.

import { Command } from "commander";
import { addExamples } from "../../terminal/examples.ts";
import type { SetPriceFlags } from "./prices-set.ts";
import type { CheckFlags, ShowPricesFlags } from "./prices-show.ts";
import type { DiffFlags, UpdateFlags } from "./prices-update.ts";

export function pricesCommand(): Command {
  const command = new Command("prices")
    .description("show, check and update the prices that charges are made from")
    .addCommand(showCommand())
    .addCommand(checkCommand())
    .addCommand(setCommand())
    .addCommand(diffCommand())
    .addCommand(updateCommand());
  return addExamples(command, [
    ["gateway prices show claude-sonnet-5", "what a model costs, and where that is from"],
    ["gateway prices check", "which models in use have no price?"],
    ["gateway prices update", "take the newest prices, without a new build"],
  ]);
}

function openCommand(name: string): Command {
  return new Command(name)
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file");
}

function showCommand(): Command {
  const command = openCommand("show")
    .description("show a model's prices at every provider that sells it, each with its source and first day")
    .argument("<model>", "as a client or an upstream names it")
    .option("--provider <name>", "at this provider only")
    .action(async (model: string, flags: ShowPricesFlags) => {
      const { showPrices } = await import("./prices-show.ts");
      showPrices(model, flags);
    });
  return addExamples(command, [
    ["gateway prices show claude-sonnet-5", "wherever it is sold"],
    ["gateway prices show deepseek-v4-pro --provider deepseek", "at its maker"],
  ]);
}

function checkCommand(): Command {
  const command = openCommand("check")
    .description("list the models in use that have no price: exit status 1 if there are any")
    .option("--ledger <file>", "another ledger than the config's")
    .action(async (flags: CheckFlags) => {
      const { checkPrices } = await import("./prices-show.ts");
      process.exitCode = checkPrices(flags);
    });
  return addExamples(command, [
    ["gateway prices check", "of the models in the ledger and in the config"],
    ["gateway prices check --json | jq -r '.[].model'", "their names alone"],
  ]);
}

function setCommand(): Command {
  const command = new Command("set")
    .description("set a model's prices in the config file, before those of the price book")
    .argument("<model>", "as a client or an upstream names it")
    .argument(
      "<prices...>",
      "KIND=VALUE or KIND=none, in USD per million tokens; kinds: input, output, cache_read, …",
    )
    .option("--config <file>", "the config file")
    .action(async (model: string, words: string[], flags: SetPriceFlags) => {
      const { setPrices } = await import("./prices-set.ts");
      await setPrices(model, words, flags);
    });
  return addExamples(command, [
    ["gateway prices set my-model input=3 output=15 cache_read=0.3", "a model that the book does not have"],
    ["gateway prices set my-model cache_read=none", "no longer a price for this kind"],
  ]);
}

const FROM = "a file or an address with the price data; without it, where the price package publishes it";

function diffCommand(): Command {
  const command = openCommand("diff")
    .description("show what an update would change for the models that this ledger has seen")
    .option("--from <place>", FROM)
    .option("--all", "for every model of the book")
    .option("--ledger <file>", "another ledger than the config's")
    .action(async (flags: DiffFlags) => {
      const { diffPrices } = await import("./prices-update.ts");
      await diffPrices(flags);
    });
  return addExamples(command, [
    ["gateway prices diff", "what would change, and nothing is written"],
    ["gateway prices diff --from data.json --all", "with every model, from a file"],
  ]);
}

function updateCommand(): Command {
  const command = openCommand("update")
    .description("check newer price data, show what changes, ask, and keep it beside the config")
    .option("--from <place>", FROM)
    .option("--yes", "without asking, as a script needs it")
    .option("--ledger <file>", "another ledger than the config's")
    .action(async (flags: UpdateFlags) => {
      const { updatePrices } = await import("./prices-update.ts");
      await updatePrices(flags);
    });
  return addExamples(command, [
    ["gateway prices update", "from where the price package publishes its data"],
    ["gateway prices update --from data.json --yes", "from a file, in a script"],
  ]);
}
