// The functions of node:fs that the gateway uses, on a simulated disk. Any other one throws, so that a missing one is
// noticed.

import * as realFs from "node:fs";
import { basename, dirname } from "node:path";
import type { Disk, Inode } from "./disk.ts";
import type { Owner, Scheduler } from "./scheduler.ts";

export interface FileHost extends Owner {
  readonly disk: Disk;
  readonly scheduler: Scheduler;
  takeFile(): number;
  freeFile(fd: number): void;
  step(what: string): void;
  /** Wall clock, in milliseconds. */
  wall(): number;
  readonly files: Map<number, OpenFile>;
  readonly assets: ReadonlyMap<string, Buffer>;
  /** Called after each write, so that checks know what was written when. */
  wrote(path: string, inode: Inode, bytes: Uint8Array): void;
  /** Begins a sync, and lets checks know of it. Returns what to call at its end. */
  beginSync(inode: Inode): (fails?: boolean) => void;
}

export interface OpenFile {
  readonly path: string;
  readonly inode: Inode;
  readonly appends: boolean;
  readonly writes: boolean;
  position: number;
}

const { constants } = realFs;

const MESSAGES: Readonly<Record<string, string>> = {
  ENOENT: "no such file or directory",
  EEXIST: "file already exists",
  EBADF: "bad file descriptor",
  ENOSPC: "no space left on device",
  EIO: "i/o error",
  EISDIR: "illegal operation on a directory",
  ENOTDIR: "not a directory",
  EINVAL: "invalid argument",
  EMFILE: "too many open files",
  EAGAIN: "resource temporarily unavailable",
  ECONNRESET: "connection reset by peer",
};

export function fail(code: string, call: string, path?: string): Error {
  const about = path === undefined ? "" : ` '${path}'`;
  // Where it came from is in `call`; to find it again for a stack costs more than all that is around it.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(`${code}: ${MESSAGES[code] ?? code}, ${call}${about}`);
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code, syscall: call, path });
}

function decode(bytes: Buffer, options?: string | { encoding?: string }): Buffer | string {
  const encoding = typeof options === "string" ? options : options?.encoding;
  return encoding === undefined ? Buffer.from(bytes) : bytes.toString("utf8");
}

type Flags = string | number;

interface Wish {
  readonly creates: boolean;
  readonly exclusive: boolean;
  readonly truncates: boolean;
  readonly appends: boolean;
  readonly writes: boolean;
}

function readFlags(flags: Flags): Wish {
  const bits = typeof flags === "number" ? flags : LETTERS[flags];
  if (bits === undefined) throw new Error(`the simulator does not know the flags ${flags}`);
  return {
    creates: (bits & constants.O_CREAT) !== 0,
    exclusive: (bits & constants.O_EXCL) !== 0,
    truncates: (bits & constants.O_TRUNC) !== 0,
    appends: (bits & constants.O_APPEND) !== 0,
    writes: (bits & (constants.O_WRONLY | constants.O_RDWR)) !== 0,
  };
}

const LETTERS: Readonly<Record<string, number>> = {
  r: constants.O_RDONLY,
  "r+": constants.O_RDWR,
  w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
  wx: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_EXCL,
  a: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
};

class Stats {
  readonly ino: number | bigint;
  readonly dev: number | bigint;
  readonly size: number | bigint;
  readonly mode: number | bigint;
  readonly uid: number | bigint;
  readonly gid: number | bigint;
  readonly nlink: number | bigint;
  readonly mtimeMs: number | bigint;
  readonly ctimeMs: number | bigint;
  readonly #time: number;
  readonly #kind: Inode["kind"];

  constructor(inode: Inode, big = false) {
    const as = (value: number): number | bigint => (big ? BigInt(Math.round(value)) : value);
    this.ino = as(inode.number);
    this.dev = as(1);
    this.size = as(inode.size);
    this.mode = as(inode.mode);
    this.uid = as(USER);
    this.gid = as(USER);
    this.nlink = as(inode.links);
    this.mtimeMs = as(inode.mtime);
    this.ctimeMs = as(inode.mtime);
    this.#time = inode.mtime;
    this.#kind = inode.kind;
  }

  get mtime(): Date {
    return new Date(this.#time);
  }
  get mtimeNs(): bigint {
    return BigInt(Math.round(this.#time * 1000)) * 1000n;
  }
  get ctimeNs(): bigint {
    return this.mtimeNs;
  }

  isFile(): boolean {
    return this.#kind === "file";
  }
  isDirectory(): boolean {
    return this.#kind === "folder";
  }
  isSymbolicLink(): boolean {
    return false;
  }
  isFIFO(): boolean {
    return false;
  }
  isSocket(): boolean {
    return this.#kind === "socket";
  }
}

/** The owner of every file on this disk. */
export const USER = 1000;

export function makeFiles(host: FileHost): object {
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
  readonly #host: FileHost;

  constructor(host: FileHost) {
    this.#host = host;
  }

  openSync(path: string, flags: Flags = "r", mode = 0o666): number {
    this.#host.step(`open ${path}`);
    const wish = readFlags(flags);
    const there = this.#host.disk.find(path);
    if (there !== undefined && wish.creates && wish.exclusive) throw fail("EEXIST", "open", path);
    if (there?.kind === "folder" && wish.writes) throw fail("EISDIR", "open", path);
    const inode = there ?? this.#create(path, wish, mode);
    if (wish.truncates && inode.size > 0) inode.truncate(0);
    const fd = this.#host.takeFile();
    this.#host.files.set(fd, { path, inode, appends: wish.appends, writes: wish.writes, position: 0 });
    return fd;
  }

  #create(path: string, wish: Wish, mode: number): Inode {
    const { disk } = this.#host;
    if (!wish.creates || disk.find(dirname(path))?.kind !== "folder") throw fail("ENOENT", "open", path);
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

  fstatSync(fd: number, { bigint = false } = {}): Stats {
    return new Stats(this.#take(fd, "fstat").inode, bigint);
  }

  fchmodSync(fd: number, mode: number): void {
    this.#take(fd, "fchmod").inode.mode = mode;
  }

  /** Everything belongs to one user. */
  fchownSync(fd: number): void {
    this.#take(fd, "fchown");
  }

  ftruncateSync(fd: number, size = 0): void {
    const { inode, path } = this.#take(fd, "ftruncate");
    this.#host.step(`truncate ${path}`);
    this.#change(inode);
    inode.truncate(size);
  }

  truncateSync(path: string, size = 0): void {
    this.#host.step(`truncate ${path}`);
    const inode = this.#find(path, "truncate");
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
      // On a real disk, the sync of this descriptor may not have begun, and would be that of the file that has it now.
      if (this.#host.files.get(fd) !== file) throw new Error(`${path} was closed while its sync ran`);
      const fails = disk.random.chance(disk.trouble.failingSyncs);
      end(fails);
      done(fails ? fail("EIO", "fdatasync") : null);
    });
  }

  fsync(fd: number, done: (error: Error | null) => void): void {
    this.fdatasync(fd, done);
  }

  statSync(path: string, options: StatOptions = {}): Stats | undefined {
    const inode = this.#host.disk.find(path);
    if (inode !== undefined) return new Stats(inode, options.bigint);
    if (options.throwIfNoEntry === false) return undefined;
    throw fail("ENOENT", "stat", path);
  }

  lstatSync(path: string, options: StatOptions = {}): Stats | undefined {
    return this.statSync(path, options);
  }

  existsSync(path: string): boolean {
    return this.#host.disk.find(path) !== undefined;
  }

  accessSync(path: string): void {
    this.#find(path, "access");
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

  appendFileSync(path: string, bytes: Uint8Array | string): void {
    this.writeFileSync(path, bytes, { flag: "a" });
  }

  renameSync(from: string, to: string): void {
    this.#host.step(`rename ${from} to ${to}`);
    this.#find(from, "rename");
    if (this.#host.disk.find(to)?.kind === "folder") throw fail("EISDIR", "rename", to);
    this.#host.disk.rename(from, to);
  }

  unlinkSync(path: string): void {
    this.#host.step(`remove ${path}`);
    this.#find(path, "unlink");
    this.#host.disk.remove(path);
  }

  rmSync(path: string, options: { force?: boolean } = {}): void {
    if (options.force === true && !this.existsSync(path)) return;
    this.unlinkSync(path);
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
    const { inode, path } = file;
    if (inode.kind === "device") return bytes.length;
    if (!file.writes) throw fail("EBADF", "write");
    this.#host.step(`write ${bytes.length} to ${path}`);
    const { trouble, random } = disk;
    if (random.chance(trouble.failingWrites)) {
      // A part of it may have been written anyway.
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
