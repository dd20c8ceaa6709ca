// The flags of `gateway cache`. cache-run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import { addExamples, remark } from "../../terminal/help-text.ts";
import type { CacheFlags } from "./cache-run.ts";

export function cacheCommand(): Command {
  const command = new Command("cache")
    .description("show what prompts missed in their upstreams' caches, why, and what it cost")
    .argument("[period]", "today, yesterday, 7d, 12h, 2w, a month (2026-11) or a day (2026-11-20)")
    .option("--key <name>", "only requests of this key")
    .option("--group <name>", "only requests of this group")
    .option("--model <id>", "only requests for this model")
    .option("--channel <name>", "only requests through this channel")
    .option("--tool <name>", "only requests of this tool: claude-code, codex, …")
    .option("--session <id>", "only requests of this session")
    .option("--label <text>", "only requests with this label")
    .option("--since <when>", "the same words as the period: its beginning")
    .option("--until <date>", "the last day to include")
    .option("--json", "one JSON document on stdout")
    .option("--ledger <file>", "read this ledger instead of the config's")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      remark(
        "MISSED is the number of tokens that should have been read from the cache and were not, COST what they cost more " +
          "than a read, with the group's multiplier. One row for each session, channel and model, and one for each cause.",
      ),
    )
    .action(async (period: string | undefined, flags: CacheFlags) => {
      const { showCache } = await import("./cache-run.ts");
      showCache(period === undefined ? flags : { ...flags, period });
    });
  return addExamples(command, [
    ["gateway cache today", "what was missed today, by session"],
    ["gateway cache 7d --tool claude-code", "of one tool, in the last week"],
    ["gateway cache 2026-11 --json", "for scripts, with every cause of every session"],
  ]);
}
