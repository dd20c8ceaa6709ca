// The flags of `gateway sessions`. sessions-run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import { addExamples, remark } from "../../terminal/help-text.ts";
import type { SessionsFlags, ShowSessionFlags } from "./sessions-run.ts";

export function sessionsCommand(): Command {
  const command = new Command("sessions")
    // Otherwise the flags of `show` would be taken for those of the list.
    .enablePositionalOptions()
    .description("show what each session of an agent has spent")
    .argument("[period]", "today, yesterday, 7d, 12h, 2w, a month (2026-11) or a day (2026-11-20)")
    .option("--all", "every session, not only the newest 20")
    .option("--tool <name>", "only sessions of this tool, such as claude-code")
    .option("--label <text>", "only sessions with this label")
    .option("--key <name>", "only requests of this key")
    .option("--since <when>", "the same words as the period: its beginning")
    .option("--until <date>", "the last day to include")
    .option("--json", "one JSON document on stdout, with every session")
    .option("--ledger <file>", "read this ledger instead of the config's")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      remark(
        "TURNS are requests that were sent upstream. A session whose id begins with `inferred-` was not named by its tool: " +
          "requests of one key, tool and label belong together until 30 minutes pass without one.",
      ),
    )
    .action(async (period: string | undefined, flags: SessionsFlags) => {
      const { listSessionSpending } = await import("./sessions-run.ts");
      listSessionSpending(period === undefined ? flags : { ...flags, period });
    })
    .addCommand(showCommand());
  return addExamples(command, [
    ["gateway sessions", "the newest sessions, and what each has cost"],
    ["gateway sessions 7d --label my-project", "those of one folder"],
    ["gateway sessions show last", "the agents of the session that is running now"],
  ]);
}

function showCommand(): Command {
  const command = new Command("show")
    .description("show the agents of a session as a tree: turns, cost, and where the prompt cache was missed")
    .argument("<id>", "the session's id, the beginning of it, or `last`")
    .option("--turns", "list each request")
    .option("--json", "one JSON document on stdout")
    .option("--ledger <file>", "read this ledger instead of the config's")
    .option("--config <file>", "the config file")
    .action(async (id: string, flags: ShowSessionFlags) => {
      const { showSession } = await import("./sessions-run.ts");
      showSession(id, flags);
    });
  return addExamples(command, [
    ["gateway sessions show last", "the session of the last request"],
    ["gateway sessions show db7f03b5 --turns", "with each of its requests"],
  ]);
}
