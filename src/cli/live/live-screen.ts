// Uses the whole terminal for a while: the alternate screen, key presses and resizes.
// Restores the terminal however the program ends. The caller decides what to show.

import { ATOMIC } from "./log-screen.ts";
import { readSize } from "../terminal/terminal.ts";

/** `key`: q ends this view. `interrupt`: Ctrl-C or a signal ends the program. */
export type ExitCause = "key" | "interrupt";

interface LiveScreen {
  readonly columns: () => number;
  readonly rows: () => number;
  /** Shows these lines from the top. Writes only lines that have changed. */
  readonly draw: (lines: readonly string[]) => void;
  /** Resolves when the user or the system wants to leave. */
  readonly left: Promise<ExitCause>;
  /** Resolves after this time, or as soon as the user leaves. */
  readonly pause: (ms: number) => Promise<void>;
  readonly close: () => void;
}

/** The alternate screen, with the cursor hidden and long lines cut, not wrapped. */
const CLEAR = "\u001B[2J";
const ENTER = `\u001B[?1049h\u001B[?25l\u001B[?7l${CLEAR}`;
const LEAVE = "\u001B[?7h\u001B[?25h\u001B[?1049l";
const EXIT_KEYS = ["q", "Q", "\u0004"];
const INTERRUPT_KEY = "\u0003";
const SUSPEND_KEY = "\u001A";

/** Calls `redraw` when the size has changed. */
function openLiveScreen(redraw: () => void): LiveScreen {
  const { stdin: input, stdout: out } = process;
  const left = Promise.withResolvers<ExitCause>();
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
    // An arrow key sends several bytes, some of which are letters.
    const text = Bun.stripANSI(keys.toString("latin1"));
    if (text.includes(INTERRUPT_KEY)) interrupt();
    else if (EXIT_KEYS.some((key) => text.includes(key))) left.resolve("key");
    if (!text.includes(SUSPEND_KEY)) return;
    restore();
    process.kill(0, "SIGTSTP");
  };
  const resume = (): void => {
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
    ...(["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => listen(process, signal, interrupt)),
    listen(process, "SIGCONT", resume),
    listen(process, "exit", restore),
    listen(out, "resize", resize),
    ...(input.isTTY ? [listen(input, "data", press), () => input.pause()] : []),
  ];
  // An earlier prompt may have paused it.
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

const REFRESH_MS = 500;

export interface LiveView<T> {
  readonly first: T;
  readonly look: (signal: AbortSignal) => Promise<T>;
  readonly see: (seen: T) => void;
  readonly draw: (columns: number, rows: number) => readonly string[];
}

/** Shows what `look` finds until the user leaves. */
export async function watchLive<T>({ first, look, see, draw }: LiveView<T>): Promise<ExitCause> {
  const redraw = (): void => screen.draw(draw(screen.columns(), screen.rows()));
  const screen = openLiveScreen(redraw);
  const ended = new AbortController();
  const left = screen.left.then(() => {
    ended.abort();
    return null;
  });
  try {
    let seen: { readonly found: T } | null = { found: first };
    while (seen !== null) {
      see(seen.found);
      redraw();
      await screen.pause(REFRESH_MS);
      seen = await Promise.race([left, look(ended.signal).then((found) => ({ found }))]);
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    screen.close();
  }
  return screen.left;
}

/** Clears the timer, which would otherwise keep the program running. */
async function wait(ms: number, left: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  await Promise.race([over.promise, left]);
  clearTimeout(timer);
}

/** Returns a function that removes the listener. */
function listen(source: NodeJS.EventEmitter, event: string, listener: (data: Buffer) => void): () => void {
  source.on(event, listener);
  return () => source.off(event, listener);
}

function writeChanges(before: readonly string[], after: readonly string[]): string {
  const count = Math.max(before.length, after.length);
  return (
    Array.from({ length: count }, (_, row) => row)
      .filter((row) => before[row] !== after[row])
      // Erase first: after a line of the full width, the cursor is on its last character, which would go.
      .map((row) => `\u001B[${row + 1};1H\u001B[K${after[row] ?? ""}`)
      .join("")
  );
}
