// A disk: files as inodes under names, and their state after a power cut. Data is safe once its file was
// synced. Changes of names reach the disk in order, as in a file system with a journal: a sync of any file
// makes all earlier changes of names safe. File descriptors and the functions of node:fs are in files.ts.

import type { Random } from "./random.ts";

export type Kind = "file" | "folder" | "socket";

/** A change that is not safe yet. */
type Change = ({ readonly at: number; readonly bytes: Buffer } | { readonly size: number }) & {
  isForgotten?: true;
};

export class Inode {
  readonly number: number;
  readonly kind: Kind;
  mode: number;
  mtime: number;
  #bytes: Buffer = Buffer.alloc(0);
  #size = 0;
  /** The first `#safeSize` bytes of `#safe` are the safe content. */
  #safe: Buffer = Buffer.alloc(0);
  #safeSize = 0;
  #changes: Change[] = [];
  /** How many changes there have ever been. */
  #made = 0;
  /** The states of a database, of which a power cut leaves one. Null: the file is not a database. */
  #commits: readonly Buffer[] | null = null;
  /** The lock that a process has on the file, through SQLite. */
  lock: { readonly holder: object; readonly process: object } | null = null;
  /** How many names the file has: none if it was removed while a process still has it open. */
  links = 1;

  constructor(number: number, kind: Kind, mode: number, mtime: number) {
    this.number = number;
    this.kind = kind;
    this.mode = mode;
    this.mtime = mtime;
  }

  get size(): number {
    return this.#size;
  }

  /** A view of the current bytes. Do not keep it: a later write changes it. */
  get content(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  write(at: number, bytes: Uint8Array): void {
    const end = at + bytes.length;
    this.#grow(end);
    this.#bytes.set(bytes, at);
    this.#size = Math.max(this.#size, end);
    this.#changes.push({ at, bytes: Buffer.from(bytes) });
    this.#made += 1;
  }

  truncate(size: number): void {
    this.#grow(size);
    this.#bytes.fill(0, Math.min(size, this.#size));
    this.#size = size;
    this.#changes.push({ size });
    this.#made += 1;
  }

  /** Commits a database. As with SQLite's journal, a power cut leaves the whole commit or the one before.
   *  The disk keeps `bytes`, so the caller must not change them. Only this method writes into a database. */
  commit(bytes: Buffer): void {
    this.#commits = [this.content, bytes];
    this.#bytes = bytes;
    this.#size = bytes.length;
  }

  /** How many changes a sync would make safe if it began now. */
  get made(): number {
    return this.#made;
  }

  /** Makes the changes safe that were made before the sync began. `made` is their number. If a failed sync
   *  has forgotten a page, the page becomes safe only when it is written again. */
  sync(made = this.#made): void {
    const count = Math.max(0, made - (this.#made - this.#changes.length));
    const begun = this.#changes.slice(0, count);
    const written = new Set(begun.filter(({ isForgotten }) => !isForgotten).flatMap(listPages));
    for (const change of begun) this.#makeSafe(change.isForgotten ? keepPages(change, written) : change);
    this.#changes = this.#changes.slice(count);
  }

  /** Called when a sync has failed. As in Linux, its pages count as clean, and no later sync brings them to the disk. */
  forget(made: number): void {
    const count = Math.max(0, made - (this.#made - this.#changes.length));
    for (const change of this.#changes.slice(0, count)) change.isForgotten = true;
  }

  /** Cuts the power. Changes that are not safe may be lost wholly or in part: `tear` says what is left. */
  cutPower(random: Random): void {
    const safe = this.#commits === null ? this.#safe.subarray(0, this.#safeSize) : random.pick(this.#commits);
    this.#safe = this.#changes.length > 0 ? tear(safe, this.#changes, random) : Buffer.from(safe);
    this.#safeSize = this.#safe.length;
    this.#changes = [];
    this.#bytes = Buffer.from(this.#safe);
    this.#size = this.#safe.length;
    this.lock = null;
  }

  #makeSafe(change: Change): void {
    const end = "size" in change ? change.size : change.at + change.bytes.length;
    if (end > this.#safe.length) {
      const grown = Buffer.alloc(Math.max(end, 2 * this.#safe.length, 1024));
      grown.set(this.#safe.subarray(0, this.#safeSize));
      this.#safe = grown;
    }
    if ("size" in change) {
      this.#safe.fill(0, Math.min(end, this.#safeSize));
      this.#safeSize = end;
    } else {
      this.#safe.set(change.bytes, change.at);
      this.#safeSize = Math.max(this.#safeSize, end);
    }
  }

  #grow(size: number): void {
    if (size <= this.#bytes.length) return;
    const grown = Buffer.alloc(Math.max(size, 2 * this.#bytes.length, 1024));
    grown.set(this.content);
    this.#bytes = grown;
  }
}

function listPages(change: Change): number[] {
  if ("size" in change) return [];
  const first = Math.floor(change.at / PAGE);
  return Array.from(
    { length: Math.floor((change.at + change.bytes.length) / PAGE) - first + 1 },
    (_, at) => first + at,
  );
}

/** Keeps the bytes of the written pages. In all other pages, they become 0. */
function keepPages(change: Change, written: ReadonlySet<number>): Change {
  if ("size" in change) return change;
  const { at, bytes } = change;
  const kept = bytes.map((byte, index) => (written.has(Math.floor((at + index) / PAGE)) ? byte : 0));
  return { at, bytes: Buffer.from(kept) };
}

function apply(bytes: Buffer, change: Change): Buffer {
  if ("size" in change) {
    if (change.size <= bytes.length) return bytes.subarray(0, change.size);
    return Buffer.concat([bytes, Buffer.alloc(change.size - bytes.length)]);
  }
  const end = change.at + change.bytes.length;
  if (change.at === bytes.length) return Buffer.concat([bytes, change.bytes]);
  const changed = Buffer.alloc(Math.max(bytes.length, end));
  changed.set(bytes);
  changed.set(change.bytes, change.at);
  return changed;
}

const PAGE = 4096;
const SECTOR = 512;

/** A file system keeps truncations in order. After a truncation it writes into new blocks, so old bytes
 *  never come back. Each page that was written since the last truncation is old, new, or half of each. */
function tear(safe: Buffer, changes: readonly Change[], random: Random): Buffer {
  const cuts = changes.flatMap((change, index) => ("size" in change ? [index + 1] : []));
  const from = random.pick([0, ...cuts]);
  const next = cuts.find((cut) => cut > from) ?? changes.length + 1;
  const before = changes.slice(0, from).reduce(apply, safe);
  let after = before;
  const sizes = [before.length];
  for (const change of changes.slice(from, next - 1)) {
    after = apply(after, change);
    sizes.push(after.length);
  }
  const size = random.pick(sizes);
  const left = Buffer.alloc(size);
  for (let page = 0; page < size; page += PAGE) {
    const kept = random.int(10);
    // Mostly pages are written in order. It is rare that a later page is on the disk and an earlier one is not.
    const written = kept < 7 ? PAGE : kept < 9 ? SECTOR * random.int(PAGE / SECTOR) : 0;
    left.set(before.subarray(page, Math.min(page + PAGE, size)), page);
    left.set(after.subarray(page, Math.min(page + written, size)), page);
  }
  return left;
}

function unlink(inode: Inode | undefined): void {
  if (inode !== undefined) inode.links = 0;
}

type NameChange = (names: Map<string, Inode>) => void;

/** The current faults of the disk. */
export interface DiskTrouble {
  /** Writes fail after this many more bytes. */
  room: number;
  /** Per mille of writes, or syncs, that fail with EIO. */
  failingWrites: number;
  failingSyncs: number;
  /** Per mille of writes that take only a part. */
  shortWrites: number;
  /** Microseconds that a sync takes at most. */
  slowSync: number;
}

export class Disk {
  names = new Map<string, Inode>();
  #safeNames = new Map<string, Inode>();
  #nameChanges: NameChange[] = [];
  /** How many changes of names there have ever been. */
  #namesChanged = 0;
  #count = 2;
  readonly random: Random;
  readonly trouble: DiskTrouble = {
    room: Number.POSITIVE_INFINITY,
    failingWrites: 0,
    failingSyncs: 0,
    shortWrites: 0,
    slowSync: 2000,
  };

  constructor(random: Random) {
    this.random = random;
    for (const folder of ["/", "/home", "/home/user", "/tmp"])
      this.names.set(folder, new Inode(this.#count++, "folder", 0o755, 0));
    this.#startMachine();
    this.#safeNames = new Map(this.names);
  }

  find(path: string): Inode | undefined {
    return this.names.get(path);
  }

  create(path: string, kind: Kind, mode: number, now: number): Inode {
    const inode = new Inode(this.#count++, kind, mode, now);
    this.#change((names) => {
      unlink(names.get(path));
      names.set(path, inode);
    });
    return inode;
  }

  rename(from: string, to: string): void {
    this.#change((names) => {
      const inode = names.get(from);
      if (inode === undefined) return;
      unlink(names.get(to));
      names.delete(from);
      names.set(to, inode);
    });
  }

  remove(path: string): void {
    this.#change((names) => {
      unlink(names.get(path));
      names.delete(path);
    });
  }

  list(folder: string): string[] {
    const prefix = folder === "/" ? "/" : `${folder}/`;
    const found: string[] = [];
    for (const path of this.names.keys()) {
      if (path !== "/" && path.startsWith(prefix) && !path.includes("/", prefix.length))
        found.push(path.slice(prefix.length));
    }
    return found.sort();
  }

  /** Makes the data of one file safe, and all changes of names until now. */
  sync(inode: Inode): void {
    this.beginSync(inode)();
  }

  /** A sync takes time, and what is written meanwhile is not safe. Returns what to call at its end. */
  beginSync(inode: Inode): (fails?: boolean) => void {
    const { made } = inode;
    const names = this.#namesChanged;
    return (fails = false) => {
      if (fails) return inode.forget(made);
      inode.sync(made);
      const count = Math.max(0, names - (this.#namesChanged - this.#nameChanges.length));
      for (const change of this.#nameChanges.slice(0, count)) change(this.#safeNames);
      this.#nameChanges = this.#nameChanges.slice(count);
    };
  }

  cutPower(): void {
    const kept = this.random.int(this.#nameChanges.length + 1);
    for (const change of this.#nameChanges.slice(0, kept)) change(this.#safeNames);
    this.#nameChanges = [];
    this.names = new Map([...this.#safeNames].filter(([, inode]) => inode.kind !== "socket"));
    this.#safeNames = new Map(this.names);
    this.#startMachine();
    for (const inode of new Set(this.names.values())) {
      inode.links = 1;
      if (inode.kind === "file") inode.cutPower(this.random);
    }
  }

  /** Gives this start of the machine an id. */
  #startMachine(): void {
    const inode = new Inode(this.#count++, "file", 0o444, 0);
    inode.write(0, Buffer.from(`boot-${inode.number}\n`));
    inode.sync();
    this.names.set("/proc/sys/kernel/random/boot_id", inode);
  }

  /** Frees the locks of a process that has ended while the machine runs on. */
  freeLocks(process: object): void {
    for (const inode of this.names.values()) if (inode.lock?.process === process) inode.lock = null;
  }

  heal(): void {
    Object.assign(this.trouble, {
      room: Number.POSITIVE_INFINITY,
      failingWrites: 0,
      failingSyncs: 0,
      shortWrites: 0,
      slowSync: 2000,
    });
  }

  #change(change: NameChange): void {
    change(this.names);
    this.#nameChanges.push(change);
    this.#namesChanged += 1;
  }
}
