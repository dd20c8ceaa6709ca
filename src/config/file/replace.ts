// Replaces the config file: under a lock, only with a text that is valid, and whole or not at all.
// What the new text is comes from edit.ts.

import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { type FileLock, LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import { resolveLinks } from "../../lib/files/links.ts";
import {
  type Owner,
  removeDrafts,
  replaceFile,
  requireOwn,
  whileReplaced,
} from "../../lib/files/own-file.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { Catalog } from "../catalog.ts";
import { applyEdits, type Edit } from "../yaml/edit.ts";
import type { Environment } from "../yaml/expand.ts";
import { checkConfigText, readConfigText } from "./load.ts";
import { ConfigError } from "../yaml/problems.ts";

/** How long one process may hold the lock before this one gives up. */
const LOCK_WAIT_MS = 30_000;
/** How often an edit starts again because a program without the lock, such as an editor, wrote in between. */
const ROUNDS = 5;

/** Gets the file as it is while the lock is held. It returns what to change, and may throw to change nothing. */
export type Decide = (catalog: Catalog) => readonly Edit[];

/** A config file, as commands and the console's page change it: a running gateway uses the changed file before `edit`
 *  resolves. */
export interface ConfigFile {
  readonly path: string;
  /** Resolves with what the file means afterwards. */
  edit(decide: Decide): Promise<Catalog>;
}

export interface EditedConfig {
  readonly catalog: Catalog;
  /** The hash of the text as it is in the file. */
  readonly sha256: string;
}

/** Changes the file. It waits for no gateway: commands use `cli/access/config.ts`. */
export async function editConfig(path: string, env: Environment, decide: Decide): Promise<EditedConfig> {
  const { file, lock } = await lockConfig(path);
  try {
    removeDrafts(file);
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = readConfigText(file);
      const { catalog } = checkConfigText(before, path, env, { missing: "keep" });
      const after = applyEdits(before, decide(catalog));
      if (after === before) return { catalog, sha256: sha256Hex(before) };
      const changed = checkConfigText(after, path, env, { missing: "keep" });
      // An editor takes no lock: what the user saved in the meantime must not be lost.
      if (readConfigText(file) !== before) continue;
      replaceConfig(file, after);
      return { catalog: changed.catalog, sha256: sha256Hex(after) };
    }
  } finally {
    lock.release();
  }
  throw new ConfigError(`${path} keeps changing while it is being edited: try again.`);
}

/** Keeps other commands from changing the config and the files next to it. */
export async function lockConfig(
  path: string,
): Promise<{ readonly file: string; readonly owner: Owner; readonly lock: FileLock }> {
  readConfigText(path);
  // Resolved once: all other names are next to the file itself, and links there are not followed.
  const file = resolveLinks(path);
  requireEditable(file);
  const owner = whileReplaced(file, () => statSync(file));
  // Not next to a link to the file, so that all ways to it share one lock.
  return { file, owner, lock: await waitForLock(join(dirname(file), `.${basename(file)}.lock`), owner) };
}

/** A try costs about half a millisecond of the processor. With fixed pauses, fifty waiting processes would use one
 *  processor for their tries alone, and slow down the one that they wait for. */
const MIN_PAUSE_MS = 30;
const MAX_PAUSE_MS = 400;
const PAUSE_GROWTH = 1.5;

/** Waits while the lock passes from one process to the next, however slow the machine is. Gives up when one process
 *  has held it for long: then it hangs, or waits for somebody. */
async function waitForLock(path: string, owner: Owner): Promise<FileLock> {
  let holder: string | null = null;
  let since = performance.now();
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, MAX_PAUSE_MS)) {
    try {
      return takeLock(path, owner);
    } catch (error) {
      const why = getErrorMessage(error);
      const isBusy = error instanceof LockHeld || /^SQLITE_(BUSY|LOCKED)/.test(getErrorCode(error));
      if (!isBusy) throw new Error(`The lock ${path} cannot be taken: ${why}.`, { cause: error });
      const current: string | null = nameHolder(error) ?? holder;
      if (current !== holder) since = performance.now();
      else if (performance.now() - since > LOCK_WAIT_MS)
        throw new Error(`${why}: gave up waiting.`, { cause: error });
      holder = current;
    }
    await Bun.sleep(5 + Math.random() * pauseMs);
  }
}

/** Null in the instant before the holder has written its name. */
function nameHolder(error: unknown): string | null {
  if (!(error instanceof LockHeld) || error.holder === null) return null;
  return `${error.holder.pid} ${error.holder.since}`;
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
    const before = statSync(file);
    replaceFile(file, text, { mode: before.mode & 0o777, owner: before, durable: true, secret: true });
  } catch (error) {
    throw new Error(`${file} cannot be written, and stays as it was: ${getErrorMessage(error)}.`, {
      cause: error,
    });
  }
}
