// Runs the program as people and scripts do: in this process, in a child process, with pipes or on a real terminal.

import { Readable, Writable } from "node:stream";
import { runProgram } from "../../src/cli/program.ts";
import { GATEWAY } from "../../src/commands/commands.ts";
import { type Circumstances, cleanEnv, MAIN, type Outcome, PROGRAM, runProcess } from "../harness/program.ts";

export { type Outcome, runProcess } from "../harness/program.ts";

/** These commands do not run in this process: they start programs, or their tests are about a process. */
const OWN_PROCESS = new Set(["run", "serve", "statusline", "service"]);

/** Runs a command without a terminal. Commands run in this process in turn, unless they need a process of their own. */
export async function run(circumstances: Circumstances, ...args: string[]): Promise<Outcome> {
  const needsProcess = OWN_PROCESS.has(args[0] ?? "") || circumstances.env?.["TZ"] !== undefined;
  return needsProcess ? runProcess(circumstances, ...args) : runHere(circumstances, ...args);
}

let queue: Promise<unknown> = Promise.resolve();

/** Runs a command in this process. A program that the command starts would write to the output of this process. */
export function runHere(circumstances: Circumstances, ...args: string[]): Promise<Outcome> {
  const outcome = queue.then(() => runInside(circumstances, args));
  queue = outcome.catch(() => {});
  return outcome;
}

/** Replaces this process's streams, arguments, variables, folder and exit status while the command runs. */
async function runInside({ folder, env, stdin }: Circumstances, args: readonly string[]): Promise<Outcome> {
  const [stdout, stderr] = [openSink(), openSink()];
  const before = {
    env: { ...process.env },
    cwd: process.cwd(),
    argv: process.argv,
    exitCode: process.exitCode,
  };
  const streams = { stdin: Readable.from(stdin === undefined ? [] : [stdin]), stdout, stderr };
  const own = Object.keys(streams).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  for (const [name, value] of Object.entries(streams))
    Object.defineProperty(process, name, { value, configurable: true });
  replaceEnv(cleanEnv(folder, env));
  process.chdir(folder);
  process.argv = [process.execPath, MAIN, ...args];
  process.exitCode = 0;
  try {
    await runProgram(GATEWAY);
    return { status: process.exitCode, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    for (const [name, descriptor] of own) Object.defineProperty(process, name, descriptor ?? {});
    process.chdir(before.cwd);
    process.argv = before.argv;
    replaceEnv(before.env);
    process.exitCode = before.exitCode ?? 0;
  }
}

function replaceEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}

function openSink(): Writable & { readonly text: () => string } {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write: (chunk: Buffer, _, done) => {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  return Object.assign(sink, { text: () => Buffer.concat(chunks).toString("utf8") });
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
  /** Resolves when the text has appeared after the last key press. Rejects if the program ends first. */
  shows(text: string): Promise<void>;
  press(keys: string): void;
  /** All that was written, escapes included. */
  readonly raw: () => string;
  readonly status: Promise<number>;
}

/** Runs a command on a terminal of 100 columns. If `captured` is given, stream `what` goes into that file. */
export function runOnTerminal(
  { folder, env, captured, what = 1 }: Circumstances & { captured?: string; what?: 1 | 2 },
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
  const shell = ["sh", "-c", `out=$1; shift; exec "$@" ${what}> "$out"`, "sh", captured ?? "", ...command];
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
