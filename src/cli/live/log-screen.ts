// Prints the lines of a running command: on a terminal above a status line that stays
// at the bottom, into a pipe unchanged.
//
// The cursor stays at the start of an empty line above the status line. Anything that
// the user types, and any reflow after a resize, is then at or below the cursor. Erasing
// from the cursor downwards removes the status line, however it was wrapped, and
// nothing of the log.

import { readFileSync } from "node:fs";
import { escapeLines } from "../../lib/text/printable.ts";
import { cutText } from "../terminal/text.ts";
import { paint, readRoom, readSize } from "../terminal/terminal.ts";

export interface LogScreen {
  /** Cells in a line. Infinite where nothing is cut. */
  readonly room: () => number;
  readonly print: (line: string) => void;
  /** For people. Goes to stderr, unless that is the same terminal. */
  readonly warn: (text: string) => void;
  readonly close: () => void;
}

/** Calls `status` once a second and draws the result if it has changed. Null: no status line. */
export function openLogScreen(status: ((room: number) => string) | null): LogScreen {
  // The gateway must go on serving when nobody reads its log any more.
  process.stdout.on("error", () => {});
  const isLive = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  const screen = isLive && status !== null ? openLive(status) : PLAIN;
  // A message may name models, and what an upstream said. The lines of requests are escaped by their table.
  return { ...screen, warn: (text) => screen.warn(escapeLines(text)) };
}

const PLAIN: LogScreen = {
  room: readRoom,
  print: (line) => void process.stdout.write(`${line}\n`),
  warn: (line) => void process.stderr.write(`${line}\n`),
  close: () => {},
};

const ERASE_BELOW = "\r\u001B[J";
const UP = "\u001B[A";
/** Terminals that support it show everything between these two at once, without flicker. */
export const ATOMIC = { begin: "\u001B[?2026h", end: "\u001B[?2026l" } as const;
const TICK_MS = 1000;
/** Collects lines for this long and writes them together, so that a busy log does not flicker. */
const FLUSH_DELAY_MS = 30;
/** A terminal with fewer rows shows the log alone. */
const MIN_ROWS = 4;

function openLive(status: (room: number) => string): LogScreen {
  const out = process.stdout;
  /** One cell less than the width, so that the cursor does not wrap to the next line. */
  const readStatus = (): string => status(readSize().columns - 1);
  let text = readStatus();
  let pending = "";
  let flushing: Timer | null = null;
  let shown = false;
  const flush = (): void => {
    if (flushing !== null) clearTimeout(flushing);
    flushing = null;
    const erase = shown ? ERASE_BELOW : "";
    const { columns, rows } = readSize();
    shown = text !== "" && rows >= MIN_ROWS && isForeground();
    const below = shown ? `\n${paint("dim", cutText(text, columns - 1))}\r${UP}` : "";
    out.write(`${ATOMIC.begin}${erase}${pending}${below}${ATOMIC.end}`);
    pending = "";
  };
  const print = (line: string): void => {
    pending += `${line}\n`;
    flushing ??= setTimeout(flush, FLUSH_DELAY_MS);
  };
  const refreshStatus = (): void => {
    const next = readStatus();
    if (next === text) return;
    text = next;
    flush();
  };
  const redraw = (): void => {
    text = readStatus();
    flush();
  };
  const hide = (): void => {
    text = "";
    flush();
  };
  const suspend = (): void => {
    hide();
    process.kill(process.pid, "SIGSTOP");
  };
  const timer = setInterval(refreshStatus, TICK_MS);
  out.on("resize", redraw);
  process.on("SIGTSTP", suspend);
  process.on("SIGCONT", redraw);
  return {
    room: () => readSize().columns,
    print,
    warn: (line) => (process.stderr.isTTY ? print(line) : PLAIN.warn(line)),
    close: () => {
      clearInterval(timer);
      out.off("resize", redraw);
      process.off("SIGTSTP", suspend);
      process.off("SIGCONT", redraw);
      hide();
    },
  };
}

/** A command in the background must not draw over the shell's prompt. Only Linux shows who is in the foreground. */
function isForeground(): boolean {
  try {
    const fields = readFileSync("/proc/self/stat", "latin1").split(") ").at(-1)?.split(" ") ?? [];
    const [, , group, , , foreground] = fields;
    return foreground === "-1" || group === foreground;
  } catch {
    return true;
  }
}
