// The functions of node:fs that the gateway uses, on a simulated disk. All other functions of node:fs throw,
// so that a missing one is noticed.

import * as realFs from "node:fs";
import { basename, dirname } from "node:path";
import type { Inode } from "./disk.ts";
import type { SimProcess } from "./process.ts";

export interface OpenFile {
  readonly path: string;
  readonly inode: Inode;
  readonly appends: boolean;
  readonly writes: boolean;
  position: number;
}

const { constants } = realFs;

export function fail(code: string, call: string, path?: string): Error {
  const about = path === undefined ? "" : ` '${path}'`;
  // To make a stack would cost more than all other work. `call` says where the error came from.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(`${code}: ${call}${about}`);
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code, syscall: call, path });
}

function decode(bytes: Buffer, options?: string | { encoding?: string }): Buffer | string {
  const encoding = typeof options === "string" ? options : options?.encoding;
  return encoding === undefined ? Buffer.from(bytes) : bytes.toString("utf8");
}

type Flags = string | number;

const LETTERS: Readonly<Record<string, number>> = {
  r: constants.O_RDONLY,
  "r+": constants.O_RDWR,
  w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
  wx: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_EXCL,
  a: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
};

function readFlags(flags: Flags): number {
  const bits = typeof flags === "number" ? flags : LETTERS[flags];
  if (bits === undefined) throw new Error(`the simulator does not know the flags ${flags}`);
  return bits;
}

function writeStats({ number, size, mode, links, mtime, kind }: Inode, isBig = false): object {
  const numbers = {
    ino: number,
    dev: 1,
    size,
    mode,
    uid: USER,
    gid: USER,
    nlink: links,
    mtimeMs: mtime,
    ctimeMs: mtime,
  };
  const as = (value: number): number | bigint => (isBig ? BigInt(Math.round(value)) : value);
  const ns = BigInt(Math.round(mtime * 1000)) * 1000n;
  return {
    ...Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, as(value)])),
    mtime: new Date(mtime),
    mtimeNs: ns,
    ctimeNs: ns,
    isFile: () => kind === "file",
    isDirectory: () => kind === "folder",
    isSymbolicLink: () => false,
    isFIFO: () => false,
    isSocket: () => kind === "socket",
  };
}

/** The owner of every file on this disk. */
export const USER = 1000;

export function makeFiles(host: SimProcess): object {
  const files = new Files(host);
  const names = Object.getOwnPropertyNames(Files.prototype).filter((name) => !name.startsWith("_"));
  const replaced: Record<string, unknown> = { constants };
  for (const name of Object.keys(realFs)) {
    replaced[name] ??= () => {
      throw new Error(`the simulator does not replace node:fs.${name}`);
    };
  }
  for (const name of names) {
    const own: unknown = Reflect.get(files, name);
    if (name !== "constructor" && typeof own === "function") replaced[name] = own.bind(files);
  }
  return replaced;
}

interface StatOptions {
  readonly throwIfNoEntry?: boolean;
  readonly bigint?: boolean;
}

class Files {
  readonly #host: SimProcess;

  constructor(host: SimProcess) {
    this.#host = host;
  }

  openSync(path: string, flags: Flags = "r", mode = 0o666): number {
    this.#host.step(`open ${path}`);
    const { disk } = this.#host;
    const bits = readFlags(flags);
    const has = (bit: number): boolean => (bits & bit) !== 0;
    const writes = has(constants.O_WRONLY | constants.O_RDWR);
    const there = disk.find(path);
    if (there !== undefined && has(constants.O_EXCL)) throw fail("EEXIST", "open", path);
    if (there?.kind === "folder" && writes) throw fail("EISDIR", "open", path);
    const inode = there ?? this.#create(path, has(constants.O_CREAT), mode);
    if (has(constants.O_TRUNC) && inode.size > 0) inode.truncate(0);
    const fd = this.#host.takeFile();
    this.#host.files.set(fd, { path, inode, appends: has(constants.O_APPEND), writes, position: 0 });
    return fd;
  }

  #create(path: string, mayCreate: boolean, mode: number): Inode {
    const { disk } = this.#host;
    if (!mayCreate || disk.find(dirname(path))?.kind !== "folder") throw fail("ENOENT", "open", path);
    return disk.create(path, "file", mode, this.#host.wall());
  }

  closeSync(fd: number): void {
    const file = this.#take(fd, "close");
    this.#host.files.delete(fd);
    this.#host.freeFile(fd);
    // As in POSIX: closing any descriptor of a file releases the process's locks on it.
    if (file.inode.lock?.process === this.#host) file.inode.lock = null;
  }

  readSync(
    fd: number,
    into: Uint8Array,
    offset = 0,
    length = into.length,
    position: number | null = null,
  ): number {
    const file = this.#take(fd, "read");
    const from = position ?? file.position;
    const bytes = file.inode.content.subarray(from, from + length);
    into.set(bytes, offset);
    if (position === null) file.position += bytes.length;
    return bytes.length;
  }

  writeSync(
    fd: number,
    bytes: Uint8Array | string,
    offset = 0,
    length?: number,
    position: number | null = null,
  ): number {
    const file = this.#take(fd, "write");
    if (position !== null) file.position = position;
    const whole = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
    return this.#write(file, whole.subarray(offset, offset + (length ?? whole.length - offset)));
  }

  fstatSync(fd: number, { bigint = false } = {}): object {
    return writeStats(this.#take(fd, "fstat").inode, bigint);
  }

  fchmodSync(fd: number, mode: number): void {
    this.#take(fd, "fchmod").inode.mode = mode;
  }

  /** Changes nothing: every file belongs to one user. */
  fchownSync(fd: number): void {
    this.#take(fd, "fchown");
  }

  ftruncateSync(fd: number, size = 0): void {
    const { inode, path } = this.#take(fd, "ftruncate");
    this.#host.step(`truncate ${path}`);
    this.#change(inode);
    inode.truncate(size);
  }

  fdatasyncSync(fd: number): void {
    const { inode, path } = this.#take(fd, "fdatasync");
    this.#host.step(`sync ${path}`);
    const { disk } = this.#host;
    const fails = disk.random.chance(disk.trouble.failingSyncs);
    this.#host.beginSync(inode)(fails);
    if (fails) throw fail("EIO", "fdatasync");
  }

  fsyncSync(fd: number): void {
    this.fdatasyncSync(fd);
  }

  fdatasync(fd: number, done: (error: Error | null) => void): void {
    const file = this.#take(fd, "fdatasync");
    const { inode, path } = file;
    this.#host.step(`sync ${path}`);
    const { disk, scheduler } = this.#host;
    const takes = disk.random.between(50, Math.max(50, disk.trouble.slowSync));
    const end = this.#host.beginSync(inode);
    scheduler.after(takes, this.#host, `synced ${path}`, () => {
      // On a real disk, the sync may begin later, and would then sync another file that has got the
      // descriptor's number.
      if (this.#host.files.get(fd) !== file) throw new Error(`${path} was closed while its sync ran`);
      const fails = disk.random.chance(disk.trouble.failingSyncs);
      end(fails);
      done(fails ? fail("EIO", "fdatasync") : null);
    });
  }

  fsync(fd: number, done: (error: Error | null) => void): void {
    this.fdatasync(fd, done);
  }

  statSync(path: string, options: StatOptions = {}): object | undefined {
    const inode = this.#host.disk.find(path);
    if (inode !== undefined) return writeStats(inode, options.bigint);
    if (options.throwIfNoEntry === false) return undefined;
    throw fail("ENOENT", "stat", path);
  }

  lstatSync(path: string, options: StatOptions = {}): object | undefined {
    return this.statSync(path, options);
  }

  existsSync(path: string): boolean {
    return this.#host.disk.find(path) !== undefined;
  }

  readFileSync(path: string | number, options?: string | { encoding?: string }): Buffer | string {
    const asset = typeof path === "string" ? this.#host.assets.get(basename(path)) : undefined;
    if (asset !== undefined) return decode(asset, options);
    const inode = typeof path === "number" ? this.#take(path, "read").inode : this.#find(path, "open");
    return decode(inode.content, options);
  }

  writeFileSync(
    place: string | number,
    bytes: Uint8Array | string,
    options: { mode?: number; flag?: Flags } | string = {},
  ): void {
    const { mode = 0o666, flag = "w" } = typeof options === "string" ? {} : options;
    const fd = typeof place === "number" ? place : this.openSync(place, flag, mode);
    try {
      const whole = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
      for (let at = 0; at < whole.length;) at += this.writeSync(fd, whole, at);
    } finally {
      if (typeof place === "string") this.closeSync(fd);
    }
  }

  renameSync(from: string, to: string): void {
    this.#host.step(`rename ${from} to ${to}`);
    this.#find(from, "rename");
    if (this.#host.disk.find(to)?.kind === "folder") throw fail("EISDIR", "rename", to);
    this.#host.disk.rename(from, to);
  }

  rmSync(path: string, options: { force?: boolean } = {}): void {
    if (options.force === true && !this.existsSync(path)) return;
    this.#host.step(`remove ${path}`);
    this.#find(path, "rm");
    this.#host.disk.remove(path);
  }

  readdirSync(path: string): string[] {
    if (this.#find(path, "scandir").kind !== "folder") throw fail("ENOTDIR", "scandir", path);
    return this.#host.disk.list(path);
  }

  mkdirSync(path: string, options: { recursive?: boolean; mode?: number } = {}): void {
    const { disk } = this.#host;
    const there = disk.find(path);
    if (there?.kind === "folder" && options.recursive === true) return;
    if (there !== undefined) throw fail("EEXIST", "mkdir", path);
    if (options.recursive === true && disk.find(dirname(path)) === undefined)
      this.mkdirSync(dirname(path), options);
    disk.create(path, "folder", options.mode ?? 0o777, this.#host.wall());
  }

  chmodSync(path: string, mode: number): void {
    this.#find(path, "chmod").mode = mode;
  }

  realpathSync(path: string): string {
    this.#find(path, "realpath");
    return path;
  }

  readlinkSync(path: string): string {
    this.#find(path, "readlink");
    throw fail("EINVAL", "readlink", path);
  }

  #take(fd: number, call: string): OpenFile {
    const file = this.#host.files.get(fd);
    if (this.#host.dead) this.#host.step(call);
    if (file === undefined) throw fail("EBADF", call);
    return file;
  }

  #find(path: string, call: string): Inode {
    const inode = this.#host.disk.find(path);
    if (inode === undefined) throw fail("ENOENT", call, path);
    return inode;
  }

  #write(file: OpenFile, bytes: Uint8Array): number {
    const { disk } = this.#host;
    const { path } = file;
    if (!file.writes) throw fail("EBADF", "write");
    this.#host.step(`write ${bytes.length} to ${path}`);
    const { trouble, random } = disk;
    if (random.chance(trouble.failingWrites)) {
      // A write that fails may have written a part of the bytes all the same.
      if (random.chance(500)) this.#put(file, bytes.subarray(0, random.int(bytes.length)));
      throw fail("EIO", "write");
    }
    let taken = bytes.length;
    if (bytes.length > 1 && random.chance(trouble.shortWrites)) taken = random.between(1, bytes.length - 1);
    taken = Math.min(taken, trouble.room);
    if (taken <= 0 && bytes.length > 0) throw fail("ENOSPC", "write");
    trouble.room -= taken;
    this.#put(file, bytes.subarray(0, taken));
    return taken;
  }

  #put(file: OpenFile, bytes: Uint8Array): void {
    const { inode, path } = file;
    const at = file.appends ? inode.size : file.position;
    inode.write(at, bytes);
    file.position = at + bytes.length;
    this.#change(inode);
    this.#host.wrote(path, inode, bytes);
  }

  #change(inode: Inode): void {
    inode.mtime = this.#host.wall();
  }
}
