// The flags of `gateway usage`. usage-run.ts does the work, and is loaded only when needed.

import { Command, Option } from "commander";
import { addExamples, remark } from "../../terminal/help-text.ts";
import type { WhatIfFlags } from "./what-if-run.ts";

const EXAMPLES: ReadonlyArray<readonly [line: string, meaning: string]> = [
  ["gateway usage 7d", "the last week, day by day"],
  ["gateway usage today --by hour --key laptop", "when a key was used today"],
  ["gateway usage 2026-11 --by key,model", "what each key spent on each model in November"],
  [
    "gateway usage 7d --by model --as claude-haiku-4-5",
    "what the last week would have cost on another model",
  ],
  ["gateway usage today --by label,tool", "which project and which tool spent it"],
  ["gateway usage 2026-11 --without-cache", "what the prompt cache saved in November"],
  ["gateway usage --by model --csv > usage.csv", "for a spreadsheet, with a column for every kind of token"],
];

export function usageCommand(): Command {
  const command = new Command("usage")
    .description("show totals from the ledger: requests, tokens by kind, official and charged USD")
    .argument("[period]", "today, yesterday, 7d, 12h, 2w, a month (2026-11) or a day (2026-11-20)")
    .addOption(
      new Option("--by <what>", "one row per …; two words with a comma, such as key,model")
        .choices([
          "hour",
          "day",
          "week",
          "month",
          "key",
          "group",
          "model",
          "channel",
          "tool",
          "session",
          "agent",
          "label",
        ])
        // The choices are for the help and the completions. usage-run.ts reads two of them.
        .argParser((text) => text)
        .default("day"),
    )
    .option("--key <name>", "only requests of this key")
    .option("--group <name>", "only requests of this group")
    .option("--model <id>", "only requests for this model")
    .option("--channel <name>", "only requests through this channel")
    .option("--tool <name>", "only requests of this tool, such as claude-code")
    .option("--session <id>", "only requests of this session; its beginning is enough, or `last`")
    .option("--label <text>", "only requests with this label")
    .option("--as <model>", "compare with what the same usage would have cost on this model")
    .option("--without-cache", "compare with what it would have cost without a prompt cache")
    .option("--tier <name>", "compare with another service tier: standard, flex, batch, priority, fast, …")
    .option("--since <when>", "the same words as the period: its beginning")
    .option("--until <date>", "the last day to include")
    .option("--csv", "comma-separated values, with a column for every kind of token")
    .option("--json", "one JSON document on stdout")
    .option("--ledger <file>", "read this ledger instead of the config's")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      remark(
        "Days are those of the config's `timezone`, or of the system. Amounts are exact in --json and --csv. " +
          "The table rounds them to a millionth of a dollar. CACHED is the share of all input that was read from the cache. " +
          "--as, --without-cache and --tier compare with the prices of each request's day, in any combination.",
      ),
    )
    .action(async (period: string | undefined, flags: WhatIfFlags) => {
      const all = period === undefined ? flags : { ...flags, period };
      if (flags.as === undefined && flags.withoutCache === undefined && flags.tier === undefined) {
        const { showUsage } = await import("./usage-run.ts");
        showUsage(all);
      } else {
        const { showWhatIf } = await import("./what-if-run.ts");
        showWhatIf(all);
      }
    });
  return addExamples(command, EXAMPLES);
}
