// Folders and ledgers of tests.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder that `using` or `remove()` deletes. */
export interface TempFolder extends Disposable {
  readonly path: string;
  join(...parts: string[]): string;
  remove(): void;
}

export function makeTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "gateway-test-"));
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  return { path, join: (...parts) => join(path, ...parts), remove, [Symbol.dispose]: remove };
}

/** The folder of this test run: sweep.ts deletes it at the end. */
export const SWEPT = join(tmpdir(), `gateway-tests-${process.pid}`);

/** A folder that is deleted at the end of the run. */
export function makeSweptFolder(): string {
  mkdirSync(SWEPT, { recursive: true });
  return mkdtempSync(join(SWEPT, "folder-"));
}

/** The ledger's lines; throws if one is torn. */
export function readLedger(path: string): Record<string, unknown>[] {
  const text = readFileSync(path, "utf8");
  if (text !== "" && !text.endsWith("\n")) throw new Error(`the last line of ${path} is torn`);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
