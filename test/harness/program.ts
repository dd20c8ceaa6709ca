// The program under test, as tests start it: the executable that `npm test` has built, or else the source.

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

/** What every program gets from its machine. Windows' own libraries read variables too. */
export const MACHINE: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && FROM_MACHINE.test(name) ? [[name, value] as const] : [],
  ),
);
