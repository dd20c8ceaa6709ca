// The flags of `gateway console`. run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import { addExamples, remark } from "../terminal/help-text.ts";
import type { ConfigFlags } from "../access/config.ts";

export function consoleCommand(): Command {
  const command = new Command("console")
    .description("interactive menus for keys, limits, groups, plans, channels, models, prices and spending")
    .option("--config <file>", "the config file")
    .addHelpText(
      "after",
      remark(
        "Plain `gateway` on a terminal does the same. Escape goes back, Ctrl-C ends the session. " +
          "Everything in the menus is also available as a command with flags.",
      ),
    )
    .action(async (flags: ConfigFlags) => {
      const { runConsole } = await import("./run.ts");
      await runConsole(flags);
    });
  return addExamples(command, [
    ["gateway console", "use the default config"],
    ["gateway console --config ~/gateway.yaml", "use another config"],
  ]);
}
