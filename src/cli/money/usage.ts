// `gateway usage`: the flags. What it does is usage-run.ts, loaded only when asked for.

import { Command, Option } from "commander";
import { addExamples } from "../examples.ts";
import type { UsageFlags } from "./usage-run.ts";

export function usageCommand(): Command {
  const command = new Command("usage")
    .description("sum up the ledger: requests, tokens by kind, official and charged USD")
    .addOption(
      new Option("--by <what>", "one row for each")
        .choices(["day", "key", "group", "model", "channel"])
        .default("day"),
    )
    .option("--since <when>", "7d (the last seven days, today among them), 12h, 2w, or a date")
    .option("--until <date>", "the last day that counts")
    .option("--csv", "comma-separated values, every kind of token in a column")
    .option("--json", "one JSON document on stdout")
    .option("--ledger <file>", "another ledger than the config's")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      "\nDays are UTC. Amounts are exact in --json and --csv, and to a millionth of a dollar in the table.",
    )
    .action(async (flags: UsageFlags) => {
      const { showUsage } = await import("./usage-run.ts");
      showUsage(flags);
    });
  return addExamples(command, [
    ["gateway usage --since 7d", "the last week, day by day"],
    ["gateway usage --by key --since 2026-11-01 --until 2026-11-30", "what each key cost in November"],
    ["gateway usage --by model --csv > usage.csv", "for a spreadsheet, every kind of token in a column"],
  ]);
}
