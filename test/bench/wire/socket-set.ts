// The sockets of one process. On Linux it waits with epoll, whose cost does not
// grow with idle connections: a proxy keeps hundreds of them, and
// with poll they would make the upstream the bottleneck. Elsewhere it uses poll.

import { ptr } from "bun:ffi";
import { openLibc } from "./libc.ts";

export const READABLE = 1;
export const WRITABLE = 4;
/** Always reported: an error, or the peer has closed. */
export const BROKEN = 8 | 16;

export interface Watched {
  readonly fd: number;
}

/** Handles a ready socket; it may remove and close that socket, and add others. */
type Each<T> = (item: T, events: number) => void;

interface SocketSet<T extends Watched> {
  readonly items: ReadonlyMap<number, T>;
  /** Waits for it to be readable. */
  add(item: T): void;
  watch(item: T, events: number): void;
  /** Before it is closed. */
  remove(item: T): void;
  wait(ms: number, each: Each<T>): void;
}

export function openSet<T extends Watched>(): SocketSet<T> {
  return process.platform === "linux" ? new EpollSet() : new PollSet();
}

const MAX_EVENTS = 512;
const [ADD, REMOVE, CHANGE] = [1, 2, 3];
/** An event's size, and the place of the socket's number in it, in 32-bit words: packed on x86 alone. */
const [EVENT_WORDS, FD_WORD] = process.arch === "x64" ? [3, 1] : [4, 2];

class EpollSet<T extends Watched> implements SocketSet<T> {
  readonly items = new Map<number, T>();
  readonly #libc = openLibc({
    epoll_create1: { args: ["i32"], returns: "i32" },
    epoll_ctl: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" },
    epoll_wait: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
  });
  readonly #fd = this.#libc.epoll_create1(0);
  readonly #events = new Int32Array(MAX_EVENTS * EVENT_WORDS);
  readonly #at = ptr(this.#events);
  readonly #change = new Int32Array(EVENT_WORDS);

  add(item: T): void {
    this.items.set(item.fd, item);
    this.#control(ADD, item.fd, READABLE);
  }

  watch({ fd }: T, events: number): void {
    this.#control(CHANGE, fd, events);
  }

  remove({ fd }: T): void {
    this.items.delete(fd);
    this.#control(REMOVE, fd, 0);
  }

  #control(operation: number, fd: number, events: number): void {
    this.#change[0] = events;
    this.#change[FD_WORD] = fd;
    this.#libc.epoll_ctl(this.#fd, operation, fd, this.#change);
  }

  wait(ms: number, each: Each<T>): void {
    const count = this.#libc.epoll_wait(this.#fd, this.#at, MAX_EVENTS, ms);
    for (let at = 0; at < count * EVENT_WORDS; at += EVENT_WORDS) {
      const item = this.items.get(this.#events[at + FD_WORD] ?? -1);
      if (item !== undefined) each(item, this.#events[at] ?? 0);
    }
  }
}

class PollSet<T extends Watched> implements SocketSet<T> {
  readonly items = new Map<number, T>();
  readonly #libc = openLibc({ poll: { args: ["ptr", "u64", "i32"], returns: "i32" } });
  readonly #asked = new Map<T, number>();

  add(item: T): void {
    this.items.set(item.fd, item);
    this.watch(item, READABLE);
  }

  watch(item: T, events: number): void {
    this.#asked.set(item, events);
  }

  remove(item: T): void {
    this.items.delete(item.fd);
    this.#asked.delete(item);
  }

  wait(ms: number, each: Each<T>): void {
    const asked = [...this.#asked];
    const entries = Int32Array.from(asked.flatMap(([{ fd }, events]) => [fd, events]));
    this.#libc.poll(entries, asked.length, ms);
    for (const [slot, [item]] of asked.entries()) {
      const events = (entries[2 * slot + 1] ?? 0) >>> 16;
      if (events !== 0) each(item, events);
    }
  }
}
