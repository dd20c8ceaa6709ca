#!/usr/bin/env -S bun --no-env-file --config=/dev/null
// These flags ignore .env and bunfig.toml:
// the current folder may be a stranger's repository.

import { runProgram } from "./cli/program.ts";
import { findOwnCommand } from "./cli/terminal/own-command.ts";
import { GATEWAY } from "./commands/commands.ts";

// A command ends too soon for compiled code to pay: decision 0030.
if (process.argv[2] !== "serve") Bun.unsafe.setJITPolicy(20);
// The last compiler (FTL) costs a server more than it saves.
// Freed memory is kept a second, for the next body: decision 0030.
const COMPILER = "BUN_JSC_useFTLJIT";
const SETTINGS = { [COMPILER]: "0", MIMALLOC_PURGE_DELAY: "1000" };
const { argv, env, execArgv } = process;
if (argv[2] === "serve" && process.platform !== "win32" && env[COMPILER] === undefined) {
  const [, ...main] = findOwnCommand();
  const words = [process.execPath, ...(main.length > 0 ? execArgv : []), ...main, ...argv.slice(2)];
  try {
    process.execve?.(process.execPath, words, { ...SETTINGS, ...env });
  } catch {
    // Then the server runs without these settings, which is slower.
  }
}
// The programs that the gateway starts must not get the variables.
if (argv[2] === "serve") for (const name of Object.keys(SETTINGS)) delete env[name];

await runProgram(GATEWAY);
