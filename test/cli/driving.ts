// Drives the executable as people and scripts do: in a child process, with pipes
// or on a real terminal.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROGRAM } from "../harness/program.ts";

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Circumstances {
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** What a test's machine has set must not leak in. The config is the folder's gateway.yaml, unless GATEWAY_CONFIG is
 *  another or empty, which leaves it to the search. */
function cleanEnv(folder: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const config = join(folder, "gateway.yaml");
  const found = { PATH: process.env["PATH"] ?? "", TMPDIR: tmpdir() };
  return { ...found, HOME: "/nonexistent", GATEWAY_CONFIG: config, ...more };
}

/** Without a terminal. */
/** For commands that would check a credential: nobody listens at this proxy, so nothing leaves the machine. */
export const OFFLINE = { HTTPS_PROXY: "http://127.0.0.1:9" };

export async function run({ folder, env, stdin }: Circumstances, ...args: string[]): Promise<Outcome> {
  const child = Bun.spawn([...PROGRAM, ...args], {
    cwd: folder,
    env: cleanEnv(folder, env),
    stdin: stdin === undefined ? "ignore" : new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

export const KEYS = {
  up: "\u001B[A",
  down: "\u001B[B",
  enter: "\r",
  space: " ",
  backspace: "\u007F",
  interrupt: "\u0003",
} as const;

export interface TerminalRun {
  /** Resolves when the screen has shown the text since the last key; rejects when the program ends before. */
  shows(text: string): Promise<void>;
  press(keys: string): void;
  /** All that was written, escapes included. */
  readonly raw: () => string;
  readonly status: Promise<number>;
}

/** On a terminal of 100 columns. `captured`: stdout goes to this file, as in `$(gateway …)`. */
export function runOnTerminal(
  { folder, env, captured }: Circumstances & { captured?: string },
  ...args: string[]
): TerminalRun {
  let raw = "";
  let since = 0;
  let over = false;
  let wake = Promise.withResolvers<void>();
  const decoder = new TextDecoder();
  const stir = () => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  const command = [...PROGRAM, ...args];
  const shell = ["sh", "-c", 'out=$1; shift; exec "$@" > "$out"', "sh", captured ?? "", ...command];
  const child = Bun.spawn(captured === undefined ? command : shell, {
    cwd: folder,
    env: cleanEnv(folder, { TERM: "xterm-256color", ...env }),
    terminal: {
      cols: 100,
      rows: 30,
      data: (_, bytes) => {
        raw += decoder.decode(bytes, { stream: true });
        stir();
      },
    },
  });
  const status = child.exited.then((code) => {
    over = true;
    child.terminal?.close();
    stir();
    return code;
  });
  return {
    raw: () => raw,
    status,
    press: (keys) => {
      since = raw.length;
      child.terminal?.write(keys);
    },
    shows: async (text) => {
      while (!Bun.stripANSI(raw.slice(since)).includes(text)) {
        if (over) throw new Error(`the program ended without showing ${JSON.stringify(text)}:\n${raw}`);
        await wake.promise;
      }
    },
  };
}
