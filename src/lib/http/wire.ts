// One connection: what has come and was not read, what has not left, and one time limit. Calls, WebSockets and the dial read
// from it; the pool keeps it between two calls.

import { readSync } from "node:fs";
import type { Socket, SocketHandler } from "bun";
import { getErrorCode } from "../errors.ts";
import { Deadline } from "../time/deadline.ts";
import { BodyQueue } from "./body-queue.ts";
import type { UpstreamFault } from "./faults.ts";

/** Timers stand still while the machine sleeps, so the wall clock decides, with this tolerance. */
const TIMER_TOLERANCE_MS = 1000;

export const WIRE_EVENTS: SocketHandler<Wire> = {
  open: (socket) => socket.data.opened(socket),
  // Any one of the runtime's three signs of doubt is enough to refuse.
  handshake: ({ data, authorized }, isSecure, error) => data.shaken(isSecure && authorized, error),
  data: ({ data }, chunk) => data.receive(chunk),
  drain: ({ data }) => data.drain(),
  close: ({ data }, error) => data.ended(error ?? null),
  error: (socket) => socket.terminate(), // `close` reports the rest
  connectError: () => {}, // the promise of `connect` reports it too
};

export class Wire {
  /** Null while the runtime connects. That step cannot be interrupted. */
  socket: Socket<Wire> | null = null;
  isClosed = false;
  /** Of a connection that has ended with an error. */
  error: unknown = null;
  /** A byte has come since a call has begun to be sent. */
  hasAnswered = false;
  unsentBytes = 0;
  onDrained = (): void => {};
  /** `byPeer`: it was not closed here. */
  onClosed = (_byPeer: boolean): void => {};
  /** While it is read, and nothing comes in time; also while it is idle. */
  onLate = (): void => this.terminate();

  // Between two calls.
  isIdle = false;
  /** It has served a call, or begun to. */
  isUsed = false;
  idleSince = 0;
  idleUntil = 0;

  readonly #unsent: Uint8Array[] = [];
  readonly #secured = Promise.withResolvers<void>();
  readonly #deadline = new Deadline(() => this.onLate());
  #limitMs = 0;
  readonly #queue = new BodyQueue({
    pause: () => this.socket?.pause(),
    resume: () => this.socket?.resume(),
    awaitBytes: () => this.#deadline.arm(this.#limitMs),
  });

  constructor() {
    this.#secured.promise.catch(() => {}); // a plain connection has no handshake
  }

  /** The runtime has verified the chain and the name. */
  get secured(): Promise<void> {
    return this.#secured.promise;
  }

  /** Null: it has ended; `error` says how. The limit counts while bytes are awaited or leave slowly. Rejects with the fault
   *  with which it was terminated. */
  read(limitMs: number): Promise<Buffer | null> {
    this.#limitMs = limitMs;
    return this.#queue.read();
  }

  /** `read` says that it has ended. What is unsent still leaves. */
  stopReading(): void {
    this.#queue.end(null);
  }

  /** Returns true if the system has taken everything. The bytes must not change afterwards. */
  write(bytes: Uint8Array): boolean {
    this.#unsent.push(bytes);
    this.unsentBytes += bytes.length;
    return this.#unsent.length === 1 && this.#flush();
  }

  #flush(): boolean {
    for (let piece = this.#unsent[0]; piece !== undefined; piece = this.#unsent[0]) {
      const taken = Math.max(0, this.socket?.write(piece) ?? 0);
      this.unsentBytes -= taken;
      if (taken < piece.length) {
        this.#unsent[0] = piece.subarray(taken);
        return false;
      }
      this.#unsent.shift();
    }
    return true;
  }

  /** Bytes that nobody asks for end it from now on. */
  becomeIdle(ms: number): void {
    if (!this.#queue.isEmpty) return this.terminate();
    this.#queue.resume();
    this.isIdle = true;
    this.onLate = () => this.terminate();
    this.idleSince = Date.now();
    this.idleUntil = this.idleSince + ms;
    this.#deadline.arm(ms);
  }

  becomeBusy(): void {
    this.isIdle = false;
    this.#deadline.disarm();
  }

  /** The system does not know of an end of an idle one. */
  get isUsable(): boolean {
    return Date.now() <= this.idleUntil + TIMER_TOLERANCE_MS && !hasUnread(this.socket);
  }

  /** Ends it with a reset. With a fault, what was not read is forgotten. */
  terminate(fault: UpstreamFault | null = null): void {
    if (this.isClosed) return;
    if (fault !== null) this.#queue.clear();
    this.#end(fault, false);
    this.socket?.terminate();
  }

  // Called by the runtime.

  opened(socket: Socket<Wire>): void {
    this.socket = socket;
    if (this.isClosed) socket.terminate(); // too late
  }

  shaken(isSecure: boolean, error: Error | null): void {
    if (isSecure && error === null) this.#secured.resolve();
    else this.#secured.reject(error ?? new Error("the certificate could not be verified"));
  }

  receive(chunk: Buffer): void {
    if (this.isIdle) return this.terminate();
    this.hasAnswered = true;
    this.#deadline.disarm();
    this.#queue.push(chunk);
  }

  drain(): void {
    if (this.unsentBytes === 0) return;
    const isDrained = this.#flush();
    if (this.#queue.isAwaited) this.#deadline.arm(this.#limitMs);
    if (isDrained) this.onDrained();
  }

  ended(error: unknown): void {
    if (this.isClosed) return;
    this.error = error;
    this.#end(null, true);
  }

  #end(fault: UpstreamFault | null, byPeer: boolean): void {
    this.isClosed = true;
    this.#deadline.disarm();
    this.#secured.reject(new Error("the connection closed during the TLS handshake"));
    this.#queue.end(fault);
    this.onClosed(byPeer);
  }
}

const byte = Buffer.allocUnsafeSlow(1);

/** Asks the system, which knows before the event loop does, whether an idle connection has ended or has bytes that nobody
 *  asked for. This may consume a byte, so the connection must be closed then. On Windows a socket is not a file. */
export function hasUnread(socket: object | null): boolean {
  if (process.platform === "win32" || socket === null) return false;
  if (!("fd" in socket) || typeof socket.fd !== "number") return false;
  try {
    readSync(socket.fd, byte);
    return true;
  } catch (error) {
    const code = getErrorCode(error);
    return code !== "EAGAIN" && code !== "EWOULDBLOCK";
  }
}
