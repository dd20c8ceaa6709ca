// Where the lines of a running command go: down the terminal, over a status line
// that stays at the bottom; into a pipe as they are.
//
// The cursor rests at the start of an empty line above the status line. So what
// the user types or the terminal reflows is below or at it, and erasing from it
// downwards takes away the status line however it was wrapped, and nothing of the log.

import { readFileSync } from "node:fs";
import { cutText } from "../text.ts";
import { paint, readSize } from "../terminal.ts";

export interface LogScreen {
  /** Cells in a line; infinite where nothing is cut. */
  readonly room: () => number;
  readonly print: (line: string) => void;
  /** For people: to stderr, where that is not the same terminal. */
  readonly warn: (line: string) => void;
  readonly close: () => void;
}

/** `status` is asked for once a second, and drawn when it has changed. Null: there is no status line. */
export function openLogScreen(status: ((room: number) => string) | null): LogScreen {
  // Requests are served whether or not somebody reads of them.
  process.stdout.on("error", () => {});
  const isLive = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  return isLive && status !== null ? openLive(status) : PLAIN;
}

const PLAIN: LogScreen = {
  room: () => (process.stdout.isTTY ? readSize().columns : Number.POSITIVE_INFINITY),
  print: (line) => void process.stdout.write(`${line}\n`),
  warn: (line) => void process.stderr.write(`${line}\n`),
  close: () => {},
};

const ERASE_BELOW = "\r\u001B[J";
const UP = "\u001B[A";
/** Terminals that know it show everything between the two at once. */
export const ATOMIC = { begin: "\u001B[?2026h", end: "\u001B[?2026l" } as const;
const TICK_MS = 1000;
/** Lines that come closer than this are written at once: a busy log is no flicker. */
const GATHER_MS = 30;
/** A lower terminal is left to the log. */
const LOWEST = 4;

function openLive(status: (room: number) => string): LogScreen {
  const out = process.stdout;
  /** One less than there is, lest the cursor wait in the next line. */
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
    shown = text !== "" && rows >= LOWEST && isForeground();
    const below = shown ? `\n${paint("dim", cutText(text, columns - 1))}\r${UP}` : "";
    out.write(`${ATOMIC.begin}${erase}${pending}${below}${ATOMIC.end}`);
    pending = "";
  };
  const print = (line: string): void => {
    pending += `${line}\n`;
    flushing ??= setTimeout(flush, GATHER_MS);
  };
  const renew = (): void => {
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
  const timer = setInterval(renew, TICK_MS);
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

/** A command put in the background must not draw over what the shell asks. Only Linux tells. */
function isForeground(): boolean {
  try {
    const fields = readFileSync("/proc/self/stat", "latin1").split(") ").at(-1)?.split(" ") ?? [];
    const [, , group, , , foreground] = fields;
    return foreground === "-1" || group === foreground;
  } catch {
    return true;
  }
}
