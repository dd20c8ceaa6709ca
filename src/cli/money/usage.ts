// The flags of `gateway usage`. usage-run.ts does the work, and is loaded only when needed.

import { Command, Option } from "commander";
import { addExamples } from "../examples.ts";
import type { UsageFlags } from "./usage-run.ts";

export function usageCommand(): Command {
  const command = new Command("usage")
    .description("show totals from the ledger: requests, tokens by kind, official and charged USD")
    .addOption(
      new Option("--by <what>", "one row per …")
        .choices(["day", "key", "group", "model", "channel"])
        .default("day"),
    )
    .option("--since <when>", "7d (the last seven days, including today), 12h, 2w, or a date")
    .option("--until <date>", "the last day to include")
    .option("--csv", "comma-separated values, with a column for every kind of token")
    .option("--json", "one JSON document on stdout")
    .option("--ledger <file>", "read this ledger instead of the config's")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      "\nDays are UTC. Amounts are exact in --json and --csv. The table rounds them to a millionth of a dollar.",
    )
    .action(async (flags: UsageFlags) => {
      const { showUsage } = await import("./usage-run.ts");
      showUsage(flags);
    });
  return addExamples(command, [
    ["gateway usage --since 7d", "the last week, day by day"],
    ["gateway usage --by key --since 2026-11-01 --until 2026-11-30", "the spending of each key in November"],
    [
      "gateway usage --by model --csv > usage.csv",
      "for a spreadsheet, with a column for every kind of token",
    ],
  ]);
}
