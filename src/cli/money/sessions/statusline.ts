// The flags of `gateway statusline`. statusline-run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import { addExamples, remark } from "../../terminal/help-text.ts";
import type { StatuslineFlags } from "./statusline-run.ts";

export function statuslineCommand(): Command {
  const command = new Command("statusline")
    .description("print one line for an agent's status bar, from the session on its stdin")
    .option("--format <text>", "{model}, {session}, {today}, {cached}, {left} and {limit} in your own text")
    .option("--session <id>", "the session, where stdin does not name it")
    .option("--key <name>", "whose limits count before the session's first request")
    .option("--ledger <file>", "the ledger of the running gateway, in place of the config")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      remark(
        "It asks the running gateway, and prints an empty line when none runs. " +
          "`gateway run claude --statusline` puts it into Claude Code, for that run only.",
      ),
    )
    .action(async (flags: StatuslineFlags) => {
      const { printStatusline } = await import("./statusline-run.ts");
      await printStatusline(flags);
    });
  return addExamples(command, [
    ["gateway statusline", "for `statusLine` in the settings of Claude Code"],
    ["gateway statusline --format 'today {today}'", "for tmux, starship and other bars"],
  ]);
}
