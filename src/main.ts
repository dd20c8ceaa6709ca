#!/usr/bin/env -S bun --no-env-file --config=/dev/null
// The flags ignore the .env and bunfig.toml of the current folder: it may be a stranger's repository.
// commands/ has the commands. Errors become a sentence and an exit status in cli/program.ts.

import { runProgram } from "./cli/program.ts";
import { findOwnCommand } from "./cli/terminal/own-command.ts";
import { GATEWAY } from "./commands/commands.ts";

// A command is over before it pays to compile much of what it runs: decision 0030.
if (process.argv[2] !== "serve") Bun.unsafe.setJITPolicy(20);
// The runtime's last compiler (FTL) costs a new server a fifth of its CPU and saves less than that: decision 0030.
const COMPILER = "BUN_JSC_useFTLJIT";
const { argv, env, execArgv } = process;
if (argv[2] === "serve" && process.platform !== "win32" && env[COMPILER] === undefined) {
  const [, ...main] = findOwnCommand();
  const words = [process.execPath, ...(main.length > 0 ? execArgv : []), ...main, ...argv.slice(2)];
  try {
    process.execve?.(process.execPath, words, { ...env, [COMPILER]: "0" });
  } catch {
    // It is slower with it.
  }
}
// Programs that the gateway starts choose for themselves.
if (argv[2] === "serve") delete env[COMPILER];

await runProgram(GATEWAY);
