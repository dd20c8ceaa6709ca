// The executable in its folder: replaced at once, with the one before beside it. A process that is killed at any instant
// leaves the old one or the new one at its place. On Windows, where a running program keeps its name, there is an instant
// between two renames in which neither is there: then `gateway.exe.previous` is the old one.

import {
  closeSync,
  copyFileSync,
  constants,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { CREATE_NEW, nameDraft, openOwn, removeDrafts, removeInUse } from "../../../lib/files/own-file.ts";
import { type FileLock, LockHeld, takeLock } from "../../../lib/files/file-lock.ts";
import { PLATFORM } from "../../../lib/files/platform.ts";
import { fail } from "../../terminal/terminal.ts";

const EXECUTABLE_MODE = 0o755;

export function namePrevious(executable: string): string {
  return `${executable}.previous`;
}

/** Keeps a second upgrade of the same executable out. */
export async function whileLocked(executable: string, act: () => Promise<void> | void): Promise<void> {
  const lock = lockExecutable(executable);
  try {
    await act();
  } finally {
    lock.release();
  }
}

function lockExecutable(executable: string): FileLock {
  try {
    return takeLock(`${executable}.lock`);
  } catch (error) {
    if (error instanceof LockHeld)
      return fail("Another upgrade of this executable runs now. Nothing was changed.");
    throw error;
  }
}

/** `fill` writes the file; `check` starts it. The caller holds the lock. */
export async function replaceExecutable(
  executable: string,
  fill: (take: (part: Uint8Array) => void) => Promise<void>,
  check: (draft: string) => void,
): Promise<void> {
  removeDrafts(executable);
  const draft = nameDraft(executable);
  try {
    const fd = openOwn(draft, { flags: CREATE_NEW, mode: 0o700 });
    try {
      await fill((part) => {
        for (let at = 0; at < part.length;) at += writeSync(fd, part, at);
      });
      fchmodSync(fd, EXECUTABLE_MODE);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    check(draft);
    keepPrevious(executable);
    renameSync(draft, executable);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A second name of the same file, so that the first one is never without a file. */
function keepPrevious(executable: string): void {
  const previous = namePrevious(executable);
  // A gateway may still run it.
  removeInUse(previous, executable);
  if (!PLATFORM.replacesOpen) return renameSync(executable, previous);
  try {
    linkSync(executable, previous);
  } catch {
    // Some file systems have no second names.
    copyFileSync(executable, previous, constants.COPYFILE_EXCL);
  }
}

/** The executable and the one before change places. */
export function swapPrevious(executable: string): void {
  const previous = namePrevious(executable);
  if (!existsSync(previous)) fail(`There is no ${previous}: nothing was upgraded here. Nothing was changed.`);
  const draft = nameDraft(executable);
  renameSync(previous, draft);
  try {
    keepPrevious(executable);
    renameSync(draft, executable);
  } catch (error) {
    renameSync(draft, previous);
    throw error;
  }
}
