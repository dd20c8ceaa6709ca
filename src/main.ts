#!/usr/bin/env -S bun --no-env-file --config=/dev/null
// The flags keep out the .env and the bunfig.toml of the current folder, which may be a stranger's.
// The command tree, one line a command. What goes wrong becomes a sentence and an exit status (cli/program.ts).

import { Command } from "commander";
import { channelsCommand } from "./cli/channels.ts";
import { completeCommand, completionsCommand } from "./cli/completions.ts";
import { consoleCommand } from "./cli/console.ts";
import { doctorCommand } from "./cli/doctor.ts";
import { envCommand } from "./cli/env.ts";
import { addExamples } from "./cli/examples.ts";
import { groupsCommand } from "./cli/groups.ts";
import { initCommand } from "./cli/init.ts";
import { keysCommand } from "./cli/keys.ts";
import { ledgerCommand } from "./cli/ledger.ts";
import { modelsCommand } from "./cli/models.ts";
import { plansCommand } from "./cli/plans.ts";
import { runProgram } from "./cli/program.ts";
import { runCommand } from "./cli/run.ts";
import { schemaCommand } from "./cli/schema.ts";
import { serveCommand } from "./cli/serve.ts";
import { topCommand } from "./cli/top.ts";
import { serviceCommand } from "./cli/service.ts";
import { usageCommand } from "./cli/usage.ts";
import { VERSION } from "./lib/version.ts";

const program = new Command("gateway")
  .version(VERSION)
  .description("One local gateway between your AI tools and the platforms that serve models.")
  .option("--config <file>", "the config file, for whichever command")
  .enablePositionalOptions()
  .hook("preAction", (_, command) => {
    const { config } = program.opts();
    if (config !== undefined && command.getOptionValue("config") === undefined)
      command.setOptionValue("config", config);
  });

program.addCommand(initCommand());
program.addCommand(serveCommand());
program.addCommand(topCommand());
program.addCommand(consoleCommand());
program.addCommand(keysCommand());
program.addCommand(groupsCommand());
program.addCommand(plansCommand());
program.addCommand(modelsCommand());
program.addCommand(channelsCommand());
program.addCommand(usageCommand());
program.addCommand(ledgerCommand());
program.addCommand(envCommand());
program.addCommand(runCommand());
program.addCommand(doctorCommand());
program.addCommand(serviceCommand());
program.addCommand(schemaCommand());
program.addCommand(completionsCommand());
program.addCommand(completeCommand(program), { hidden: true });

addExamples(program, [
  ["gateway serve --demo", "try it: no config, no account, no network"],
  ["gateway init && gateway serve", "with your own accounts"],
  ["gateway run claude --new", "a tool that uses it"],
]);

await runProgram(program);
