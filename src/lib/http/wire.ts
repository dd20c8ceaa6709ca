// One connection: unread bytes, unsent bytes, and a time limit.

import type { Socket, SocketHandler } from "bun";
import { dlopen } from "bun:ffi";
import { Deadline } from "../time/deadline.ts";
import { type FaultKind, UpstreamFault } from "./upstream.ts";

/** Without this limit, one turn of the event loop
 *  could deliver many megabytes. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Timers stop while the machine sleeps, so the wall clock is asked, too,
 *  with this tolerance. */
const TIMER_TOLERANCE_MS = 1000;

export const WIRE_EVENTS: SocketHandler<Wire> = {
  open: (socket) => socket.data.opened(socket),
  handshake: ({ data, authorized }, isSecure, error) => data.shaken(isSecure && authorized, error),
  data: ({ data }, chunk) => data.receive(chunk),
  drain: ({ data }) => data.drain(),
  close: ({ data }, error) => data.ended(error ?? null),
  error: (socket) => socket.terminate(), // `close` reports it
  connectError: () => {}, // the promise of `connect` reports it too
};

export class Wire {
  /** Null while the runtime connects. That step cannot be interrupted. */
  socket: Socket<Wire> | null = null;
  isClosed = false;
  error: unknown = null;
  unreadBytes = 0;
  unsentBytes = 0;
  onClosed = (): void => {};

  /** Settles when the runtime has verified the certificate and its name. */
  readonly secured = Promise.withResolvers<void>();

  isIdle = false;
  isUsed = false;
  idleSince = 0;
  idleUntil = 0;

  readonly #unread: Buffer[] = [];
  #isPaused = false;
  #reader: PromiseWithResolvers<Buffer | null> | null = null;
  #limitMs = 0;
  #late: FaultKind | null = null;
  #fault: UpstreamFault | null = null;
  readonly #unsent: Uint8Array[] = [];
  #drained: PromiseWithResolvers<void> | null = null;
  readonly #deadline = new Deadline(() => this.#expire());

  /** Returns null if the connection has ended. Rejects with the fault
   *  that terminated it, or with a `late` fault after `limitMs`. */
  read(limitMs = Infinity, late: FaultKind | null = null): Promise<Buffer | null> {
    const chunk = this.#unread.shift();
    if (chunk !== undefined) {
      this.unreadBytes -= chunk.length;
      return Promise.resolve(chunk);
    }
    if (this.#fault !== null) return Promise.reject(this.#fault);
    if (this.isClosed) return Promise.resolve(null);
    this.#reader = Promise.withResolvers();
    this.#limitMs = limitMs;
    this.#late = late;
    this.#deadline.arm(limitMs);
    // Other work gets a turn of the event loop first.
    if (this.#isPaused) setImmediate(() => this.#resume());
    return this.#reader.promise;
  }

  /** The bytes must not change afterwards. */
  write(bytes: Uint8Array): void {
    this.#unsent.push(bytes);
    this.unsentBytes += bytes.length;
    if (this.#unsent.length === 1) this.#flush();
  }

  get unsent(): Promise<void> | null {
    if (this.unsentBytes === 0 || this.isClosed) return null;
    return (this.#drained ??= Promise.withResolvers()).promise;
  }

  /** While a connection is idle, any bytes that arrive end it. */
  becomeIdle(ms: number): void {
    this.#resume();
    this.isIdle = true;
    this.idleSince = Date.now();
    this.idleUntil = this.idleSince + ms;
    this.#late = null;
    this.#deadline.arm(ms);
  }

  becomeBusy(): void {
    this.isIdle = false;
    this.#deadline.disarm();
  }

  isUsable(now: number): boolean {
    return now <= this.idleUntil + TIMER_TOLERANCE_MS && !hasUnread(this.socket);
  }

  /** Resets the connection. With a fault, unread bytes are forgotten. */
  terminate(fault: UpstreamFault | null = null): void {
    if (this.isClosed) return;
    if (fault !== null) this.#unread.length = 0;
    this.#end(fault);
    this.socket?.terminate();
  }

  #expire(): void {
    const text = this.#late === "idle_timeout" ? "the response stopped arriving" : "no response in time";
    this.terminate(this.#late && new UpstreamFault(this.#late, text));
  }

  #flush(): void {
    for (let piece = this.#unsent[0]; piece !== undefined; piece = this.#unsent[0]) {
      const taken = Math.max(0, this.socket?.write(piece) ?? 0);
      this.unsentBytes -= taken;
      if (taken < piece.length) {
        this.#unsent[0] = piece.subarray(taken);
        return;
      }
      this.#unsent.shift();
    }
    this.#drained?.resolve();
    this.#drained = null;
  }

  #resume(): void {
    if (this.#isPaused && !this.isClosed) this.socket?.resume();
    this.#isPaused = false;
  }

  #end(fault: UpstreamFault | null): void {
    this.isClosed = true;
    this.#fault = fault;
    this.#deadline.disarm();
    this.secured.promise.catch(() => {}); // a plain connection has no handshake
    this.secured.reject(new Error("the connection closed during the TLS handshake"));
    this.#drained?.resolve();
    if (fault === null) this.#reader?.resolve(null);
    else this.#reader?.reject(fault);
    this.onClosed();
  }

  opened(socket: Socket<Wire>): void {
    this.socket = socket;
    if (this.isClosed) socket.terminate(); // too late
  }

  shaken(isSecure: boolean, error: Error | null): void {
    if (isSecure && error === null) this.secured.resolve();
    else this.secured.reject(error ?? new Error("the certificate could not be verified"));
  }

  receive(chunk: Buffer): void {
    if (this.isClosed) return;
    if (this.isIdle) return this.terminate();
    const reader = this.#reader;
    this.#reader = null;
    if (reader === null) {
      this.#unread.push(chunk);
      this.unreadBytes += chunk.length;
    } else {
      this.#deadline.disarm();
      reader.resolve(chunk);
    }
    if (this.#isPaused || Math.max(chunk.length, this.unreadBytes) < MAX_UNREAD_BYTES) return;
    this.#isPaused = true;
    this.socket?.pause();
  }

  drain(): void {
    if (this.unsentBytes === 0) return;
    this.#flush();
    if (this.#reader !== null) this.#deadline.arm(this.#limitMs);
  }

  ended(error: unknown): void {
    if (this.isClosed) return;
    this.error = error;
    this.#end(null);
  }
}

const polled = new Int32Array(2);
const READABLE = 1;
let poll: ((polled: Int32Array, count: number, waitMs: number) => number) | null = null;

/** Asks the system, which knows of new bytes before the runtime does.
 *  A `read` that finds none would take four times as long as `poll`. */
export function hasUnread(socket: object | null): boolean {
  if (process.platform === "win32" || socket === null) return false;
  if (!("fd" in socket) || typeof socket.fd !== "number") return false;
  polled[0] = socket.fd;
  polled[1] = READABLE;
  poll ??= loadPoll();
  return poll(polled, 1, 0) !== 0;
}

function loadPoll(): NonNullable<typeof poll> {
  // With musl, this name works, too.
  const library = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";
  try {
    return dlopen(library, { poll: { args: ["ptr", "u64", "int"], returns: "int" } }).symbols.poll;
  } catch {
    return () => 0;
  }
}
