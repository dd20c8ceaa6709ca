// The commands of the ledger alone, as the executable has them.

import { Command } from "commander";
import { cacheCommand } from "../../../../src/cli/money/cache/cache.ts";
import { ledgerCommand } from "../../../../src/cli/money/ledger/ledger.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { usageCommand } from "../../../../src/cli/money/usage/usage.ts";
import { sessionsCommand } from "../../../../src/cli/money/sessions/sessions.ts";

await runProgram(
  new Command("gateway")
    .enablePositionalOptions()
    .addCommand(usageCommand())
    .addCommand(cacheCommand())
    .addCommand(sessionsCommand())
    .addCommand(ledgerCommand()),
);
