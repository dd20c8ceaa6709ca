// Runs the program under test: the executable that `npm test` has built, or else the source.

import { tmpdir } from "node:os";
import { join } from "node:path";

export const MAIN = join(import.meta.dir, "../../src/main.ts");

const built = process.env["GATEWAY_TEST_EXECUTABLE"];

/** The words that begin each command line. The executable starts in a third of the time that the source needs. */
export const PROGRAM: readonly [string, ...string[]] =
  built === undefined || built === "" ? [process.execPath, MAIN] : [built];

/** The status of a program that was asked to end by SIGTERM. Windows has no such signal: there it is killed. */
export const STOPPED = process.platform === "win32" ? 143 : 0;

const FROM_MACHINE =
  process.platform === "win32"
    ? /^(?:path|te?mp|system(?:root|drive)|windir|comspec|user(?:name|domain|profile)|(?:local)?appdata|wine\w+)$/i
    : /^PATH$/;

/** The variables that every program gets from its machine. Windows' own libraries read variables too. */
export const MACHINE: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && FROM_MACHINE.test(name) ? [[name, value] as const] : [],
  ),
);

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Circumstances {
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** The folder in which the program starts. Absent: the test's folder. */
  readonly cwd?: string;
}

/** The environment of a program under test, without the machine's own settings. The config is the folder's gateway.yaml,
 *  unless `more` names another in GATEWAY_CONFIG; if this variable is empty, the program searches for one. HTTPS_PROXY is a
 *  port at which nobody listens: no check of a credential leaves the machine. Local model servers are not looked for. */
export function cleanEnv(
  folder: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    ...MACHINE,
    TMPDIR: tmpdir(),
    TZ: "UTC",
    HTTPS_PROXY: "http://127.0.0.1:9",
    GATEWAY_TEST_LOCAL_SERVERS: "",
    HOME: "/nonexistent",
    GATEWAY_CONFIG: join(folder, "gateway.yaml"),
    ...more,
  };
}

/** Runs the program without a terminal, in a process of its own. */
export async function runProcess(
  { folder, env, stdin, cwd = folder }: Circumstances,
  ...args: string[]
): Promise<Outcome> {
  const child = Bun.spawn([...PROGRAM, ...args], {
    cwd,
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
