// `gateway console`: its flags. What it does is console-run.ts, loaded only when asked for.

import { Command } from "commander";
import { addExamples } from "../examples.ts";
import type { ConfigFlags } from "../config-access.ts";

export function consoleCommand(): Command {
  const command = new Command("console")
    .description("do all of it from menus: keys, groups, plans, channels, models, spending")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      "\nPlain `gateway` on a terminal is the same. Escape takes a question back, Ctrl-C ends the session.\n" +
        "Whatever it does, a command with flags does, too.",
    )
    .action(async (flags: ConfigFlags) => {
      const { runConsole } = await import("./console-run.ts");
      await runConsole(flags);
    });
  return addExamples(command, [
    ["gateway console", "with the config that is found"],
    ["gateway console --config ~/gateway.yaml", "with another"],
  ]);
}
