#!/usr/bin/env -S bun --no-env-file --config=/dev/null
// The flags ignore the .env and bunfig.toml of the current folder: it may be a stranger's repository.
// The command tree, one line per command. Errors become a sentence and an exit status in cli/program.ts.

import { Command } from "commander";
import { channelsCommand } from "./cli/channels/channels.ts";
import { completeCommand, completionsCommand } from "./cli/completions/completions.ts";
import { consoleCommand } from "./cli/console/console.ts";
import { doctorCommand } from "./cli/doctor/doctor.ts";
import { envCommand } from "./cli/tools/env.ts";
import { addExamples } from "./cli/terminal/help-text.ts";
import { groupsCommand } from "./cli/catalog/groups.ts";
import { addChannelCommand } from "./cli/setup/channels/add.ts";
import { removeChannelCommand, setChannelCommand } from "./cli/setup/channels/change.ts";
import { initCommand } from "./cli/setup/init/init.ts";
import { keysCommand } from "./cli/keys/keys.ts";
import { ledgerCommand } from "./cli/money/ledger/ledger.ts";
import { modelsCommand } from "./cli/catalog/models.ts";
import { plansCommand } from "./cli/catalog/plans.ts";
import { openCommand } from "./cli/console/open.ts";
import { pricesCommand } from "./cli/money/prices/prices.ts";
import { runProgram } from "./cli/program.ts";
import { runCommand } from "./cli/tools/run.ts";
import { statuslineCommand } from "./cli/money/sessions/statusline.ts";
import { sessionsCommand } from "./cli/money/sessions/sessions.ts";
import { schemaCommand } from "./cli/setup/schema.ts";
import { serveCommand } from "./cli/serve/serve.ts";
import { topCommand } from "./cli/live/top.ts";
import { serviceCommand } from "./cli/setup/service.ts";
import { cacheCommand } from "./cli/money/cache/cache.ts";
import { usageCommand } from "./cli/money/usage/usage.ts";
import { VERSION } from "./lib/version.ts";

const program = new Command("gateway")
  .version(VERSION)
  .description("One local gateway between your AI tools and the platforms that serve models.")
  .option("--config <file>", "the config file, for any command")
  .enablePositionalOptions()
  .hook("preAction", (_, command) => {
    const { config } = program.opts();
    if (config !== undefined && command.getOptionValue("config") === undefined)
      command.setOptionValue("config", config);
  });

/** One line for each command. */
const COMMANDS: ReadonlyMap<string, () => Command> = new Map([
  ["init", initCommand],
  ["serve", serveCommand],
  ["top", topCommand],
  ["open", openCommand],
  ["console", consoleCommand],
  ["keys", keysCommand],
  ["groups", groupsCommand],
  ["plans", plansCommand],
  ["models", modelsCommand],
  [
    "channels",
    () =>
      channelsCommand()
        .addCommand(addChannelCommand())
        .addCommand(setChannelCommand())
        .addCommand(removeChannelCommand()),
  ],
  ["prices", pricesCommand],
  ["usage", usageCommand],
  ["sessions", sessionsCommand],
  ["statusline", statuslineCommand],
  ["cache", cacheCommand],
  ["ledger", ledgerCommand],
  ["env", envCommand],
  ["run", runCommand],
  ["doctor", doctorCommand],
  ["service", serviceCommand],
  ["schema", schemaCommand],
  ["completions", completionsCommand],
]);

// To build one command takes a third of the time of all. They are needed if another word comes first: an option, a typo,
// `help`, or `__complete`.
const only = COMMANDS.get(process.argv[2] ?? "");
for (const create of only === undefined ? COMMANDS.values() : [only]) program.addCommand(create());
program.addCommand(completeCommand(program), { hidden: true });

addExamples(program, [
  ["gateway serve --demo", "try it without a config, an account or a network"],
  ["gateway init && gateway serve", "use your own accounts"],
  ["gateway run claude", "start a tool that uses the gateway"],
]);

await runProgram(program);
