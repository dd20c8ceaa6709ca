// The only place that opens the gateway's own files for writing. Where others can write
// to the folder, a link could lead to any file of the user. So no link is followed,
// and an opened file must be a plain file of this user: decision 0013.

import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../errors.ts";
import { PLATFORM } from "./platform.ts";
import { randomHex } from "../secret.ts";
import { quoteWord } from "../text/shell-word.ts";

/** The message says what is there and what to do. */
export class ForeignFile extends Error {
  override readonly name = "ForeignFile";
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface OpenOptions {
  readonly flags: number;
  readonly mode?: number;
  /** Allows a hard link. The caller then checks what the file is. */
  readonly shared?: boolean;
}

export function openOwn(path: string, { flags, mode = 0o600, shared = false }: OpenOptions): number {
  const before = requireOwn(path, shared);
  let fd: number;
  try {
    fd = whileReplaced(path, () => openSync(path, flags | PLATFORM.noFollow | PLATFORM.noBlock, mode));
  } catch (error) {
    // Someone may have created the file since the check.
    if (codeOf(error) !== "EEXIST") requireOwn(path, shared);
    throw error;
  }
  try {
    const found = fstatSync(fd, { bigint: true });
    refuseForeign(path, found, shared);
    if (PLATFORM.noFollow === 0 && before !== null && !isSame(before, found))
      throw new ForeignFile(`${path} was replaced while it was being opened: try again`);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Returns null if nothing is there.
 *  Throws ForeignFile if the gateway must not write to the path. */
export function requireOwn(path: string, shared = false): BigIntStats | null {
  const look = () => lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  const found = look() ?? (returns(path) ? look() : null);
  if (found !== null) refuseForeign(path, found, shared);
  return found;
}

function refuseForeign(path: string, found: BigIntStats, shared: boolean): void {
  const fault = describeForeign(path, found, shared);
  if (fault !== null) throw new ForeignFile(`${path} ${fault}`);
}

function describeForeign(path: string, found: BigIntStats, shared: boolean): string | null {
  if (found.isSymbolicLink())
    return `is a link${describeTarget(path)}, and the gateway follows no link here: rm ${quoteWord(path)}`;
  if (!found.isFile()) return "is not a regular file: move it away";
  if (!isOurs(found)) return `belongs to user ${found.uid}, not to you: move it away, or change its owner`;
  if (!shared && found.nlink > 1n)
    return `is a hard link: the file has another name, too. Put a copy in its place, or rm ${quoteWord(path)}`;
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

/** The administrator may write the files of any user. */
export function isOurs({ uid }: { readonly uid: number | bigint }): boolean {
  const own = process.geteuid?.();
  return own === undefined || own === 0 || Number(uid) === own;
}

export function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** Opens only plain files:
 *  a pipe would stop the gateway until somebody writes. */
export function openPlain(path: string): number {
  const fd = whileReplaced(path, () => openSync(path, constants.O_RDONLY | PLATFORM.noBlock));
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new ForeignFile(`${path} is not a regular file: move it away`);
}

export function readPlain(path: string): string {
  return readAndClose(openPlain(path));
}

function readAndClose(fd: number): string {
  try {
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

/** Returns null if the file does not exist, or is not the gateway's. */
export function readOwn(path: string): string | null {
  try {
    return readAndClose(openOwn(path, { flags: constants.O_RDONLY }));
  } catch (error) {
    if (error instanceof ForeignFile || codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

const KEY_BYTES = 32;

/** A random key that only this user can read. A damaged file is replaced. */
export function openKeyFile(path: string): Buffer {
  const known = readKey(path);
  if (known !== null) return known;
  replaceFile(path, `${randomHex(KEY_BYTES)}\n`, { mode: 0o600, durable: true });
  const made = readKey(path);
  if (made === null) throw new Error(`${path} could not be written`);
  return made;
}

function readKey(path: string): Buffer | null {
  const text = readOwn(path)?.trim() ?? "";
  return /^[0-9a-f]{64}$/.test(text) ? Buffer.from(text, "hex") : null;
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
  /** Whose file it is, if the administrator writes it. */
  readonly owner?: Owner;
  /** Writes the file to the disk before it gets its name. */
  readonly durable?: boolean;
  /** Holds secrets.
   *  On Windows, an access list first gives the empty file to this user alone. */
  readonly secret?: boolean;
}

/** A crash leaves the old file or the new one, complete.
 *  A link is replaced, not followed. */
export function replaceFile(path: string, text: string | Uint8Array, options: WriteOptions = {}): void {
  const draft = nameDraft(path);
  try {
    createFile(draft, text, options);
    replaceName(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Creates the complete file or nothing. Throws EEXIST if it exists. */
export function createFile(
  path: string,
  text: string | Uint8Array,
  { mode, owner, durable, secret }: WriteOptions = {},
): void {
  const fd = openOwn(path, { flags: CREATE_NEW, ...(mode !== undefined && { mode }) });
  try {
    if (owner !== undefined) keepOwner(fd, owner);
    if (secret === true && !PLATFORM.hasModes) keepOthersOut(path);
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

/** A name that nobody can guess. */
export function nameDraft(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.${randomHex(4)}.tmp`);
}

const DRAFT_TAIL = /^\d+\.[0-9a-f]{8}\.tmp$/;

/** Removes the drafts of killed commands.
 *  A lock of the caller must keep other writers out. */
export function removeDrafts(path: string): void {
  const prefix = `.${basename(path)}.`;
  try {
    for (const name of readdirSync(dirname(path))) {
      if (!name.startsWith(prefix) || !DRAFT_TAIL.test(name.slice(prefix.length))) continue;
      removeOwn(join(dirname(path), name));
    }
  } catch {
    // Old drafts do no harm.
  }
}

export function removeOwn(path: string): void {
  if (requireOwn(path) === null) return;
  clearFormer(path);
  rmSync(path, { force: true });
}

function keepOthersOut(path: string): void {
  const { username } = userInfo();
  const { exitCode, stderr } = Bun.spawnSync(["icacls", path, "/inheritance:r", "/grant:r", `${username}:F`]);
  if (exitCode !== 0)
    throw new Error(`icacls could not keep other users out of ${path}: ${stderr.toString()}`);
}

// ── Windows ── There, an open file cannot be replaced, only renamed. So the old file
// becomes `PATH.former`, and then the new file gets the path. In between, readers
// wait. If the process is killed then, the next reader renames the old file back.

function replaceName(draft: string, path: string): void {
  try {
    renameSync(draft, path);
  } catch (error) {
    if (PLATFORM.replacesOpen || !isInUse(error, path)) throw error;
    retryInUse(() => replaceOpen(draft, path));
  }
}

/** ENOENT: a reader has just renamed the old file back. */
const IN_USE = new Set(["EPERM", "EACCES", "EBUSY", "EEXIST", "ENOENT"]);

function isInUse(error: unknown, path: string): boolean {
  return IN_USE.has(codeOf(error)) && lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function replaceOpen(draft: string, path: string): void {
  restoreFormer(path);
  clearFormer(path);
  const former = nameFormer(path);
  renameSync(path, former);
  try {
    renameSync(draft, path);
  } catch (error) {
    // A reader may have renamed the old file back, and have it open now.
    restoreFormer(path);
    throw error;
  }
  clearFormer(path);
}

/** A virus scanner may hold the file for a moment. */
const IN_USE_TRIES = 8;
const IN_USE_PAUSE_MS = 25;

function retryInUse(act: () => void): void {
  for (let left = IN_USE_TRIES; ; left -= 1) {
    try {
      return act();
    } catch (error) {
      if (left === 0 || !IN_USE.has(codeOf(error))) throw error;
      Bun.sleepSync(IN_USE_PAUSE_MS);
    }
  }
}

function nameFormer(path: string): string {
  return `${path}.former`;
}

/** A removed file keeps its name while somebody has it open.
 *  So it is first renamed to a draft of `path`. */
function clearFormer(path: string): void {
  if (PLATFORM.replacesOpen || !existsSync(nameFormer(path))) return;
  const draft = nameDraft(path);
  renameSync(nameFormer(path), draft);
  try {
    rmSync(draft, { force: true });
  } catch {
    // `removeDrafts` removes the draft.
  }
}

export function whileReplaced<T>(path: string, look: () => T): T {
  for (let left = IN_USE_TRIES; ; left -= 1) {
    try {
      return look();
    } catch (error) {
      if (left === 0 || codeOf(error) !== "ENOENT" || !returns(path)) throw error;
    }
  }
}

/** Waits while somebody replaces the file. */
function returns(path: string): boolean {
  if (PLATFORM.replacesOpen) return false;
  for (let left = IN_USE_TRIES; left > 0 && existsSync(nameFormer(path)); left -= 1) {
    if (existsSync(path)) return true;
    Bun.sleepSync(IN_USE_PAUSE_MS);
  }
  return restoreFormer(path) || existsSync(path);
}

function restoreFormer(path: string): boolean {
  if (PLATFORM.replacesOpen || existsSync(path)) return false;
  try {
    renameSync(nameFormer(path), path);
    return true;
  } catch {
    // Nothing was replaced.
    return false;
  }
}

/** Removes a temporary folder.
 *  If Windows keeps it, its files are removed: they may hold a key. */
export function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    if (PLATFORM.replacesOpen) throw error;
    for (const each of readdirSync(path, { withFileTypes: true })) {
      const place = join(path, each.name);
      if (each.isDirectory()) removeFolder(place);
      else retryInUse(() => rmSync(place, { force: true }));
    }
    retryInUse(() => rmdirSync(path));
  }
}

/** On Windows, a descriptor for appending cannot cut the file. */
export function truncateOwn(fd: number, path: string, size: number): void {
  if (PLATFORM.replacesOpen) return ftruncateSync(fd, size);
  const writer = openOwn(path, { flags: constants.O_RDWR, shared: true });
  try {
    if (!isSame(fstatSync(writer, { bigint: true }), fstatSync(fd, { bigint: true })))
      throw new ForeignFile(`${path} was replaced while it was open: try again`);
    ftruncateSync(writer, size);
  } finally {
    closeSync(writer);
  }
}

export function keepOwner(fd: number, { uid, gid }: Owner): void {
  if (process.getuid?.() === 0) fchownSync(fd, uid, gid);
}
