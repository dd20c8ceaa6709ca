// `gateway usage`: the flags. What it does is usage-run.ts, loaded only when asked for.

import { Command, Option } from "commander";
import type { UsageFlags } from "./usage-run.ts";

export function usageCommand(): Command {
  return new Command("usage")
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
}
