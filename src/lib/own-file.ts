// The only place that opens the gateway's own files for writing: ledger, journal, locks, sums and drafts. They stand
// in folders where others may be able to put files too (a shared folder, a cloned repository). A link there would
// lead the gateway into any file of its user. So nothing is followed, and a descriptor is used only once it is known
// to be a plain file of this user. The checks are made when a file is opened, never again for each write.

import { randomBytes } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "./error-code.ts";
import { quoteWord } from "./shell-word.ts";

/** Says what stands at the path, and what to do about it. */
export class ForeignFile extends Error {
  override readonly name = "ForeignFile";
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface OpenOptions {
  /** Of `node:fs`; without O_CREAT the file has to be there. */
  readonly flags: number;
  readonly mode?: number;
  /** May have other hard links: for a file whose content shows that the gateway wrote it. */
  readonly shared?: boolean;
}

/** Windows has no such flag. There the file is compared with what the path named before and after. */
const NO_FOLLOW: number = process.platform === "win32" ? 0 : constants.O_NOFOLLOW;
/** A pipe would wait for its other end before it could be seen to be one. */
const NO_WAIT: number = process.platform === "win32" ? 0 : constants.O_NONBLOCK;

/** A descriptor of a plain file of this user. Throws ForeignFile when something else stands at the path. */
export function openOwn(path: string, { flags, mode = 0o600, shared = false }: OpenOptions): number {
  const before = requireOwn(path, shared);
  let fd: number;
  try {
    fd = openSync(path, flags | NO_FOLLOW | NO_WAIT, mode);
  } catch (error) {
    // It may have been put there since.
    if (codeOf(error) !== "EEXIST") requireOwn(path, shared);
    throw error;
  }
  try {
    const found = fstatSync(fd, { bigint: true });
    refuseForeign(path, found, shared);
    if (NO_FOLLOW === 0 && before !== null && !isSame(before, found))
      throw new ForeignFile(`${path} was replaced while it was being opened: try again`);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** What stands at the path without following it; null: nothing. Throws ForeignFile when the gateway must not write to it. */
export function requireOwn(path: string, shared = false): BigIntStats | null {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  if (found !== null) refuseForeign(path, found, shared);
  return found;
}

function refuseForeign(path: string, found: BigIntStats, shared: boolean): void {
  const fault = describeForeign(path, found, shared);
  if (fault !== null) throw new ForeignFile(`${path} ${fault}`);
}

function describeForeign(path: string, found: BigIntStats, shared: boolean): string | null {
  if (found.isSymbolicLink())
    return `is a link${describeTarget(path)}, and the gateway writes through no link: remove it with rm ${quoteWord(path)}`;
  if (!found.isFile()) return "is no regular file: move it away";
  if (!isOurs(found)) return `belongs to user ${found.uid}, not to you: move it away, or change its owner`;
  if (!shared && found.nlink > 1n)
    return `is a hard link: the same file has another name too. If it is not the gateway's, rm ${quoteWord(path)}; if it is, put a copy in its place`;
  return null;
}

function describeTarget(path: string): string {
  try {
    // Somebody else may have chosen the name.
    return ` to ${readlinkSync(path).replaceAll(/\p{C}/gu, "?")}`;
  } catch {
    return "";
  }
}

/** The administrator works on the files of any user. */
function isOurs({ uid }: BigIntStats): boolean {
  const own = process.geteuid?.();
  return own === undefined || own === 0 || uid === BigInt(own);
}

export function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** Null when there is no such file, or when it is not the gateway's. */
export function readOwn(path: string): string | null {
  let fd: number;
  try {
    fd = openOwn(path, { flags: constants.O_RDONLY });
  } catch (error) {
    if (error instanceof ForeignFile || codeOf(error) === "ENOENT") return null;
    throw error;
  }
  try {
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

export function appendOwn(path: string, bytes: Uint8Array): void {
  const fd = openOwn(path, { flags: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT });
  try {
    writeFileSync(fd, bytes);
  } finally {
    closeSync(fd);
  }
}

export interface WriteOptions {
  readonly mode?: number;
  /** Where the administrator writes a user's file, it stays the user's. */
  readonly owner?: Owner;
  /** On the disk before it gets its name. */
  readonly durable?: boolean;
}

/** After a crash at any instant the old file or the new one is there, whole. What stood at the path loses its name and
 *  is otherwise left alone: a link is replaced, never followed. */
export function replaceFile(path: string, text: string, options: WriteOptions = {}): void {
  const draft = nameDraft(path);
  try {
    createFile(draft, text, options);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Whole or not at all. Throws EEXIST when there is one. */
export function createFile(path: string, text: string, { mode, owner, durable }: WriteOptions = {}): void {
  const fd = openOwn(path, { flags: CREATE_NEW, ...(mode !== undefined && { mode }) });
  try {
    if (owner !== undefined) keepOwner(fd, owner);
    writeFileSync(fd, text);
    if (durable === true) fsyncSync(fd);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

export const CREATE_NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

/** A name beside the file that nobody can guess. */
export function nameDraft(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`);
}

const DRAFT_TAIL = /^\d+\.[0-9a-f]{8}\.tmp$/;

/** Those of commands that were killed. Only for a caller whose lock keeps other writers of this file out. */
export function removeDrafts(path: string): void {
  const prefix = `.${basename(path)}.`;
  try {
    for (const name of readdirSync(dirname(path))) {
      if (!name.startsWith(prefix) || !DRAFT_TAIL.test(name.slice(prefix.length))) continue;
      removeOwn(join(dirname(path), name));
    }
  } catch {
    // Nothing depends on it.
  }
}

/** Throws ForeignFile, and leaves it, when it is not the gateway's. */
export function removeOwn(path: string): void {
  if (requireOwn(path) !== null) rmSync(path, { force: true });
}

/** The administrator may write a user's file without taking it from them. */
export function keepOwner(fd: number, { uid, gid }: Owner): void {
  if (process.getuid?.() === 0) fchownSync(fd, uid, gid);
}
