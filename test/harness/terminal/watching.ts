// Runs the executable on a terminal, and reads its screen as a person does.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { createScreen, type Screen } from "./screen.ts";
import { PROGRAM } from "../program.ts";

export interface Watched {
  readonly screen: Screen;
  /** Resolves as soon as the screen shows `what`. Rejects with the screen when the program ends before. */
  readonly until: (what: string | RegExp | ((rows: readonly string[]) => boolean)) => Promise<void>;
  readonly press: (keys: string) => void;
  readonly resize: (columns: number, rows: number) => void;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Closes the terminal's window. */
  readonly hangUp: () => void;
  readonly status: Promise<number>;
}

export interface Watching {
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
}

export function watch(
  { folder, env, columns = 100, rows = 24 }: Watching,
  ...args: readonly string[]
): Watched {
  const screen = createScreen(columns, rows);
  const decoder = new TextDecoder();
  let held = "";
  let over = false;
  let wake = Promise.withResolvers<void>();
  const stir = (): void => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  const see = (text: string): void => {
    held += text;
    const end = findEnd(held);
    screen.write(held.slice(0, end));
    held = held.slice(end);
    stir();
  };
  const child = Bun.spawn([...PROGRAM, ...args], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"] ?? "",
      TMPDIR: tmpdir(),
      HOME: folder,
      GATEWAY_CONFIG: join(folder, "gateway.yaml"),
      TERM: "xterm-256color",
      ...env,
    },
    terminal: { cols: columns, rows, data: (_, bytes) => see(decoder.decode(bytes, { stream: true })) },
  });
  const status = child.exited.then((code) => {
    over = true;
    child.terminal?.close();
    stir();
    return code;
  });
  return {
    screen,
    status,
    until: async (what) => {
      const fits = (): boolean => {
        const seen = screen.rows();
        if (typeof what === "function") return what(seen);
        const text = seen.join("\n");
        return typeof what === "string" ? text.includes(what) : what.test(text);
      };
      while (!fits()) {
        if (over)
          throw new Error(`the program ended without showing ${String(what)}:\n${screen.rows().join("\n")}`);
        await wake.promise;
      }
    },
    press: (keys) => void child.terminal?.write(keys),
    resize: (newColumns, newRows) => {
      screen.resize(newColumns, newRows);
      child.terminal?.resize(newColumns, newRows);
    },
    signal: (name) => child.kill(name),
    hangUp: () => child.terminal?.close(),
  };
}

/** How much of the text can be shown: an escape, or rows that are drawn together, may still be incomplete at its end. */
function findEnd(text: string): number {
  const begun = text.lastIndexOf("\u001B[?2026h");
  if (begun > text.lastIndexOf("\u001B[?2026l")) return begun;
  const escape = text.lastIndexOf("\u001B");
  return escape >= 0 && /^.(?:\[[?\d;]*)?$/s.test(text.slice(escape)) ? escape : text.length;
}
