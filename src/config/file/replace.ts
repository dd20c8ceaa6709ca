// Replaces the config file:
// under a lock, by a valid text, completely or not at all.

import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, messageOf } from "../../lib/errors.ts";
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

/** If another process holds the lock for longer, this one gives up. */
const LOCK_WAIT_MS = 30_000;
/** Editors take no lock. If an editor has saved the file,
 *  the edit starts again. */
const ROUNDS = 5;

/** Called while the lock is held. If it throws, nothing changes. */
export type Decide = (catalog: Catalog) => readonly Edit[];

/** A running gateway uses the changed file before `edit` resolves. */
export interface ConfigFile {
  readonly path: string;
  edit(decide: Decide): Promise<Catalog>;
}

/** Does not wait until a gateway uses the change. */
export async function editConfig(path: string, env: Environment, decide: Decide) {
  const { file, lock } = await lockConfig(path);
  try {
    removeDrafts(file);
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = readConfigText(file);
      const { catalog } = checkConfigText(before, path, env, { missing: "keep" });
      const after = applyEdits(before, decide(catalog));
      if (after === before) return { catalog, sha256: sha256Hex(before) };
      const changed = checkConfigText(after, path, env, { missing: "keep" });
      if (readConfigText(file) !== before) continue;
      replaceConfig(file, after);
      return { catalog: changed.catalog, sha256: sha256Hex(after) };
    }
  } finally {
    lock.release();
  }
  throw new ConfigError(`${path} keeps changing while it is being edited: try again.`);
}

/** The lock also protects the files next to the config. */
export async function lockConfig(path: string) {
  readConfigText(path);
  const file = resolveLinks(path);
  requireEditable(file);
  const owner = whileReplaced(file, () => statSync(file));
  // The lock is next to the file, not to a link: all paths to it share the lock.
  return { file, owner, lock: await waitForLock(join(dirname(file), `.${basename(file)}.lock`), owner) };
}

/** With fixed pauses, fifty waiting processes would use one core. */
const MIN_PAUSE_MS = 30;
const MAX_PAUSE_MS = 400;
const PAUSE_GROWTH = 1.5;

async function waitForLock(path: string, owner: Owner): Promise<FileLock> {
  let holder: string | null = null;
  let since = performance.now();
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, MAX_PAUSE_MS)) {
    try {
      return takeLock(path, owner);
    } catch (error) {
      const why = messageOf(error);
      const isBusy = error instanceof LockHeld || /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error));
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

function nameHolder(error: unknown): string | null {
  if (!(error instanceof LockHeld) || error.holder === null) return null;
  return `${error.holder.pid} ${error.holder.since}`;
}

/** Refuses hard links: the other names would keep the old content. */
function requireEditable(file: string): void {
  try {
    requireOwn(file, true);
  } catch (error) {
    throw new Error(`${messageOf(error)}. The file stays as it was.`, { cause: error });
  }
}

function replaceConfig(file: string, text: string): void {
  try {
    const before = statSync(file);
    replaceFile(file, text, { mode: before.mode & 0o777, owner: before, durable: true, secret: true });
  } catch (error) {
    throw new Error(`${file} cannot be written, and stays as it was: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}
