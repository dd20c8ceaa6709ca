// Examples to copy, at the end of `--help`.

import type { Command } from "commander";

export function addExamples(
  command: Command,
  examples: ReadonlyArray<readonly [line: string, meaning: string]>,
): Command {
  const lines = examples.map(([line, meaning]) => `  # ${meaning}\n  ${line}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}
