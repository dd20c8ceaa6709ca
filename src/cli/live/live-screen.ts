// A terminal of one's own for a while: the other screen, its keys and sizes, and
// the terminal as it was, however it ends. What is shown is the caller's.

import { ATOMIC } from "./log-screen.ts";
import { readSize } from "../terminal.ts";

/** By a key that leaves, or by Ctrl-C or a signal, which end more than this. */
export type Leaving = "key" | "interrupt";

export interface LiveScreen {
  readonly columns: () => number;
  readonly rows: () => number;
  /** Shows these lines from the top; writes those that have changed. */
  readonly draw: (lines: readonly string[]) => void;
  /** Resolves when the user or the system wants to leave. */
  readonly left: Promise<Leaving>;
  /** Resolves after so long, or when somebody leaves. */
  readonly pause: (ms: number) => Promise<void>;
  readonly close: () => void;
}

/** The other screen, cursor hidden, lines cut instead of wrapped. */
const CLEAR = "\u001B[2J";
const ENTER = `\u001B[?1049h\u001B[?25l\u001B[?7l${CLEAR}`;
const LEAVE = "\u001B[?7h\u001B[?25h\u001B[?1049l";
const LEAVING_KEYS = ["q", "Q", "\u0004"];
const INTERRUPT_KEY = "\u0003";
const SUSPEND_KEY = "\u001A";

/** `redraw` is called when the size has changed. */
export function openLiveScreen(redraw: () => void): LiveScreen {
  const { stdin: input, stdout: out } = process;
  const left = Promise.withResolvers<Leaving>();
  let shown: readonly string[] = [];
  const setRaw = (raw: boolean): void => {
    if (input.isTTY) input.setRawMode(raw);
  };
  const enter = (): void => {
    shown = [];
    setRaw(true);
    out.write(ENTER);
  };
  const restore = (): void => {
    out.write(LEAVE);
    setRaw(false);
  };
  const interrupt = (): void => left.resolve("interrupt");
  const press = (keys: Buffer): void => {
    // Arrows and the like are several bytes, letters among them.
    const text = Bun.stripANSI(keys.toString("latin1"));
    if (text.includes(INTERRUPT_KEY)) interrupt();
    else if (LEAVING_KEYS.some((key) => text.includes(key))) left.resolve("key");
    if (!text.includes(SUSPEND_KEY)) return;
    restore();
    process.kill(0, "SIGTSTP");
  };
  const goOn = (): void => {
    enter();
    redraw();
  };
  const resize = (): void => {
    shown = [];
    out.write(CLEAR);
    redraw();
  };
  enter();
  const stops = [
    ...(["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => hear(process, signal, interrupt)),
    hear(process, "SIGCONT", goOn),
    hear(process, "exit", restore),
    hear(out, "resize", resize),
    ...(input.isTTY ? [hear(input, "data", press), () => input.pause()] : []),
  ];
  // Prompts before this may have left it paused.
  if (input.isTTY) input.resume();
  return {
    columns: () => readSize().columns,
    rows: () => readSize().rows,
    draw: (lines) => {
      const change = writeChanges(shown, lines);
      shown = lines;
      if (change !== "") out.write(ATOMIC.begin + change + ATOMIC.end);
    },
    left: left.promise,
    pause: (ms) => wait(ms, left.promise),
    close: () => {
      for (const stop of stops) stop();
      restore();
    },
  };
}

/** A timer that nobody waits for would keep the program. */
async function wait(ms: number, left: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  await Promise.race([over.promise, left]);
  clearTimeout(timer);
}

/** Returns what ends it. */
function hear(source: NodeJS.EventEmitter, event: string, listener: (told: Buffer) => void): () => void {
  source.on(event, listener);
  return () => source.off(event, listener);
}

function writeChanges(before: readonly string[], after: readonly string[]): string {
  const count = Math.max(before.length, after.length);
  return Array.from({ length: count }, (_, row) => row)
    .filter((row) => before[row] !== after[row])
    .map((row) => `\u001B[${row + 1};1H${after[row] ?? ""}\u001B[K`)
    .join("");
}
