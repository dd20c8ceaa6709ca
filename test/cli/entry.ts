// The commands of the config alone, as the executable has them.

import { Command } from "commander";
import { groupsCommand } from "../../src/cli/groups.ts";
import { initCommand } from "../../src/cli/init.ts";
import { keysCommand } from "../../src/cli/keys.ts";
import { plansCommand } from "../../src/cli/plans.ts";
import { runProgram } from "../../src/cli/program.ts";

await runProgram(
  new Command("gateway")
    .addCommand(initCommand())
    .addCommand(keysCommand())
    .addCommand(groupsCommand())
    .addCommand(plansCommand()),
);
