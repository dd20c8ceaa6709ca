// Replaces the config file: under a lock, only with a text that is valid, and whole or not at all.
// What the new text is comes from edit.ts.

import { closeSync, fsyncSync, openSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { type FileLock, LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import { type Owner, removeDrafts, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import type { Catalog } from "../catalog.ts";
import { applyEdits, type Edit } from "../yaml/edit.ts";
import type { Environment } from "../yaml/expand.ts";
import { checkConfigText, readConfigText } from "./load.ts";
import { ConfigError } from "../yaml/problems.ts";

const LOCK_WAIT_MS = 30_000;
/** How often an edit starts again because a program without the lock, such as an editor, wrote in between. */
const ROUNDS = 5;

export interface EditOptions {
  /** How long one process may hold the lock before this one gives up. */
  readonly lockWaitMs?: number;
}

/** `decide` gets the file as it is while the lock is held. It returns what to change, and may throw to change nothing.
 *  Resolves with what the file means afterwards. */
export async function editConfig(
  path: string,
  env: Environment,
  decide: (catalog: Catalog) => readonly Edit[],
  { lockWaitMs = LOCK_WAIT_MS }: EditOptions = {},
): Promise<Catalog> {
  const { file, lock } = await lockConfig(path, lockWaitMs);
  try {
    removeDrafts(file);
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = readConfigText(file);
      const { catalog } = checkConfigText(before, path, env, { missing: "keep" });
      const after = applyEdits(before, decide(catalog));
      if (after === before) return catalog;
      const changed = checkConfigText(after, path, env, { missing: "keep" });
      // An editor takes no lock: what the user saved in the meantime must not be lost.
      if (readConfigText(file) !== before) continue;
      replaceConfig(file, after);
      return changed.catalog;
    }
  } finally {
    lock.release();
  }
  throw new ConfigError(`${path} keeps changing while it is being edited: try again.`);
}

/** Keeps other commands from changing the config and the files beside it. */
export async function lockConfig(
  path: string,
  waitMs = LOCK_WAIT_MS,
): Promise<{ readonly file: string; readonly owner: Owner; readonly lock: FileLock }> {
  readConfigText(path);
  // Resolved once: all other names are beside the file itself, and links there are not followed.
  const file = realpathSync(path);
  requireEditable(file);
  const owner = statSync(file);
  const place = nameLock(file);
  return { file, owner, lock: await waitForLock(place, () => takeLock(place, owner), waitMs) };
}

/** Beside the file itself, not beside a link to it, so that all ways to a file share one lock. */
export function nameLock(file: string): string {
  return join(dirname(file), `.${basename(file)}.lock`);
}

/** Waits while the lock passes from one process to the next, however slow the machine is. Gives up when one process
 *  has held it for `waitMs`: then it hangs, or waits for somebody. */
export async function waitForLock(path: string, take: () => FileLock, waitMs: number): Promise<FileLock> {
  let holder: string | null = null;
  let since = performance.now();
  for (;;) {
    try {
      return take();
    } catch (error) {
      const why = getErrorMessage(error);
      if (!isBusy(error)) throw new Error(`The lock ${path} cannot be taken: ${why}.`, { cause: error });
      const current: string | null = nameHolder(error) ?? holder;
      if (current !== holder) since = performance.now();
      else if (performance.now() - since > waitMs)
        throw new Error(`${why}: gave up waiting.`, { cause: error });
      holder = current;
    }
    await Bun.sleep(5 + Math.random() * 30);
  }
}

/** Null in the instant before the holder has written its name. */
function nameHolder(error: unknown): string | null {
  if (!(error instanceof LockHeld) || error.holder === null) return null;
  return `${error.holder.pid} ${error.holder.since}`;
}

function isBusy(error: unknown): boolean {
  return error instanceof LockHeld || /^SQLITE_(BUSY|LOCKED)/.test(getErrorCode(error));
}

/** Other hard links keep the old content: the new file takes over this name only. */
function requireEditable(file: string): void {
  try {
    requireOwn(file, true);
  } catch (error) {
    throw new Error(`${getErrorMessage(error)}. It stays as it was.`, { cause: error });
  }
}

/** After a crash at any instant the old file or the new one is there, whole. */
function replaceConfig(file: string, text: string): void {
  try {
    requireOwn(file, true);
    const before = statSync(file);
    replaceFile(file, text, { mode: before.mode & 0o777, owner: before, durable: true });
  } catch (error) {
    throw new Error(`${file} cannot be written, and stays as it was: ${getErrorMessage(error)}.`, {
      cause: error,
    });
  }
  syncFolder(dirname(file));
}

function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
}
