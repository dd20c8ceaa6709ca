// What `--help` shows after the options: remarks, and examples to copy.

import type { Command } from "commander";
import { readSize } from "./terminal.ts";
import { wrapWords } from "./text.ts";

/** For `addHelpText("after", …)`: Commander wraps only what it writes itself. */
export function remark(text: string): () => string {
  return () => `\n${wrapWords(text, readSize().columns).join("\n")}`;
}

/** An example is not wrapped: a line break in a command would end it. */
export function addExamples(
  command: Command,
  examples: ReadonlyArray<readonly [line: string, meaning: string]>,
): Command {
  const lines = examples.map(([line, meaning]) => `  # ${meaning}\n  ${line}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}
