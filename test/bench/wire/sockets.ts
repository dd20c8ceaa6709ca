// Sockets of the benchmark's two ends, through libc. They cost about as much as in a C
// program, without a compiler, so that the benchmark measures the gateway and not
// the load. A process that uses this does nothing else: every call blocks.

import { ptr, type Pointer } from "bun:ffi";
import { MAC, openLibc } from "./libc.ts";

const libc = openLibc({
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
  accept: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i32" },
  send: { args: ["i32", "ptr", "u64", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
});

const SOL_SOCKET = MAC ? 0xffff : 1;
const SO_REUSEADDR = MAC ? 4 : 2;
const TCP = 6;
const TCP_NODELAY = 1;
const MSG_DONTWAIT = MAC ? 0x80 : 0x40;
const MSG_NOSIGNAL = MAC ? 0x80000 : 0x4000;

const ONE = new Int32Array([1]);

function writeAddress(port: number): Uint8Array {
  const family = MAC ? [16, 2] : [2, 0];
  return Uint8Array.of(...family, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0);
}

function openSocket(): number {
  return libc.socket(2, 1, 0);
}

function sendAtOnce(fd: number): number {
  libc.setsockopt(fd, TCP, TCP_NODELAY, ONE, 4);
  return fd;
}

export function listenOn(port: number): { fd: number; port: number } {
  const fd = openSocket();
  libc.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, ONE, 4);
  const address = writeAddress(port);
  if (libc.bind(fd, address, 16) !== 0 || libc.listen(fd, 4096) !== 0)
    throw new Error(`can't listen on ${port}`);
  libc.getsockname(fd, address, new Uint32Array([16]));
  return { fd, port: ((address[2] ?? 0) << 8) | (address[3] ?? 0) };
}

export function acceptFrom(listener: number): number {
  return sendAtOnce(libc.accept(listener, null, null));
}

/** -1 if nothing listens. */
export function tryConnect(port: number): number {
  const fd = openSocket();
  if (libc.connect(fd, writeAddress(port), 16) === 0) return sendAtOnce(fd);
  libc.close(fd);
  return -1;
}

export function connectTo(port: number): number {
  const fd = tryConnect(port);
  if (fd < 0) throw new Error(`nobody listens on ${port}`);
  return fd;
}

export function closeSocket(fd: number): void {
  libc.close(fd);
}

/** The bytes of the last read, from any socket: valid until the next read. */
export const inbox = Buffer.alloc(512 * 1024);
const inboxAt = ptr(inbox);

/** The number of bytes in `inbox`; 0 or less if the peer has closed. */
export function readSome(fd: number): number {
  return libc.recv(fd, inboxAt, inbox.length, 0);
}

/** Bytes with a fixed place, so that sending them makes no garbage. */
export interface Pinned {
  readonly bytes: Buffer;
  readonly at: Pointer;
}

export function pin(bytes: Uint8Array): Pinned {
  const held = Buffer.from(bytes);
  return { bytes: held, at: ptr(held) };
}

/** Waits until the kernel has accepted everything. False if the peer has closed. */
export function sendAll(fd: number, { bytes, at }: Pinned): boolean {
  return libc.send(fd, at, bytes.length, MSG_NOSIGNAL) === bytes.length;
}

/** How many bytes the kernel accepted at once; -1 for none. */
export function sendSome(fd: number, { bytes, at }: Pinned, from: number): number {
  const start = from === 0 ? at : ptr(bytes, from);
  return libc.send(fd, start, bytes.length - from, MSG_DONTWAIT | MSG_NOSIGNAL);
}

const CLOCK_MONOTONIC = MAC ? 6 : 1;
const time = new BigInt64Array(2);
const timeAt = ptr(time);

/** The machine's clock, the same for all processes; the runtime's own clock starts with its process. */
export function readMicros(): number {
  libc.clock_gettime(CLOCK_MONOTONIC, timeAt);
  return Number(time[0]) * 1e6 + Number(time[1]) / 1000;
}

export function sleep(ms: number): void {
  libc.poll(null, 0, ms);
}
