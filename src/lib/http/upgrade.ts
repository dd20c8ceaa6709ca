// Opens a WebSocket to an upstream. Its connection serves nothing else from then on.

import type { Socket } from "bun";
import { findAcceptFault, startHandshake } from "../http1/websocket/handshake.ts";
import { FramedPeer } from "../http1/websocket/peer.ts";
import type { Wire, WireListener } from "../http1/wire.ts";
import { Deadline } from "../time/deadline.ts";
import { Call } from "./call.ts";
import type { SocketListener } from "./dial.ts";
import { Fields } from "./fields.ts";
import { Outbox } from "./outbox.ts";
import {
  type Answer,
  readUpTo,
  type SocketReply,
  type SocketRequest,
  type StartedSocket,
} from "./upstream.ts";

/** This much of a refusal's body is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** A connection that is closed waits this long for unsent bytes and for the other side. */
const CLOSE_WAIT_MS = 2_000;

/** `start` sends the call. */
export function openUpgrade(request: SocketRequest, start: (call: Call) => void): StartedSocket {
  const { key, fields } = startHandshake();
  const { promise, resolve, reject } = Promise.withResolvers<SocketReply>();
  promise.catch(() => {}); // nobody may be waiting
  let wire: SocketWire | null = null;
  const asking = { ...request, method: "GET", fields: Fields.of(request.fields).addAll(fields), body: null };
  const call = new Call(asking, {
    check: (reply) => {
      const fault = findAcceptFault(reply, key);
      return fault === null ? null : `an invalid WebSocket handshake: ${fault}`;
    },
    open: (socket, { status, fields: own }, rest) => {
      const opened = new SocketWire(socket, rest);
      wire = opened;
      const accept: SocketReply["accept"] = (limits, open) =>
        opened.start(new FramedPeer(opened, limits, open));
      resolve({ status, fields: own, body: new Uint8Array(0), accept });
    },
  });
  start(call);
  call.answer.then(readRefusal).then(resolve, reject);
  return { reply: promise, cancel: () => (wire === null ? call.cancel() : wire.reset()) };
}

/** A response that is not the 101. Its body may be cut. */
async function readRefusal(answer: Answer): Promise<SocketReply> {
  const { bytes } = await readUpTo(answer, MAX_REFUSAL_BYTES);
  const { status, fields } = answer.head;
  return { status, fields, body: bytes, accept: null };
}

/** The connection after the upgrade. It is not read before somebody listens. */
class SocketWire implements Wire, SocketListener {
  readonly #socket: Socket<SocketListener>;
  readonly #outbox = new Outbox();
  readonly #deadline = new Deadline(() => this.reset());
  readonly #early: Buffer;
  #listener: WireListener | null = null;
  #state: "open" | "ending" | "closed" = "open";

  constructor(socket: Socket<SocketListener>, early: Buffer) {
    this.#socket = socket;
    this.#early = early;
    socket.data = this;
    socket.pause();
  }

  start(listener: WireListener): void {
    this.#listener = listener;
    if (this.#state === "closed") return listener.closed();
    if (this.#early.length > 0) listener.receive(this.#early);
    this.#socket.resume();
  }

  // Called by the listener.

  get unsentBytes(): number {
    return this.#outbox.size;
  }

  write(bytes: Uint8Array): boolean {
    return this.#state !== "open" || this.#outbox.send(this.#socket, bytes);
  }

  pause(): void {
    if (this.#state === "open") this.#socket.pause();
  }

  resume(): void {
    if (this.#state === "open") this.#socket.resume();
  }

  end(): void {
    if (this.#state !== "open") return;
    this.#socket.resume();
    this.#state = "ending";
    this.#deadline.arm(CLOSE_WAIT_MS);
    if (this.#outbox.size === 0) this.#socket.shutdown();
  }

  reset(): void {
    this.#socket.terminate();
    this.closed();
  }

  // Called by the socket.

  receive(chunk: Buffer): void {
    if (this.#state === "open") this.#listener?.receive(chunk);
  }

  drain(): void {
    if (this.#outbox.size === 0 || !this.#outbox.flush(this.#socket)) return;
    if (this.#state === "ending") this.#socket.shutdown();
    else this.#listener?.drain();
  }

  closed(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#deadline.disarm();
    this.#listener?.closed();
  }
}
