// Runs the command tree: what goes wrong becomes a sentence on stderr and an exit status.

import { type Command, CommanderError } from "commander";

/** 0 done; 1 it failed; 2 wrong usage or a bad config file. */
export async function runProgram(program: Command): Promise<void> {
  prepare(program);
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
}

/** Commander's own exits would cut off what is still to be written. */
function prepare(command: Command): void {
  command.exitOverride().showSuggestionAfterError();
  command.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "gateway: ")) });
  command.commands.forEach(prepare);
}

function reportFailure(error: unknown): number {
  // Commander has told it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`gateway: ${message}\n`);
  const named = error instanceof Error && "exitStatus" in error ? error.exitStatus : 1;
  return typeof named === "number" ? named : 1;
}
