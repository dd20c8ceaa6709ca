// Prints the lines of a running command: the log to stdout, and what is for people to stderr.

import { escapeLines } from "../../lib/text/printable.ts";
import { readRoom } from "../terminal/terminal.ts";

export interface LogScreen {
  /** Cells in a line. Infinite where nothing is cut. */
  readonly room: () => number;
  readonly print: (line: string) => void;
  /** For people. A message may name models, and what an upstream said. */
  readonly warn: (text: string) => void;
}

export function openLogScreen(): LogScreen {
  // The gateway must go on serving when nobody reads its log any more.
  process.stdout.on("error", () => {});
  return {
    room: readRoom,
    print: (line) => void process.stdout.write(`${line}\n`),
    warn: (text) => void process.stderr.write(`${escapeLines(text)}\n`),
  };
}
