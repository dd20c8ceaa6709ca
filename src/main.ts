#!/usr/bin/env -S bun --no-env-file --config=/dev/null
// The flags ignore the .env and bunfig.toml of the current folder: it may be a stranger's repository.
// commands/ has the commands. Errors become a sentence and an exit status in cli/program.ts.

import { runProgram } from "./cli/program.ts";
import { GATEWAY } from "./commands/commands.ts";

await runProgram(GATEWAY);
