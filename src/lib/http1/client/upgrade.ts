// Opens a WebSocket to an upstream, on a connection that serves nothing else.

import type { Socket } from "bun";
import { Deadline } from "../../time/deadline.ts";
import { openDecoder, readBodyLength, type BodyDecoder } from "../framing.ts";
import { HeadSearch, MAX_HEAD_BYTES, parseResponse, type ResponseHead } from "../head.ts";
import { ByteCollector, Outbox } from "../packets.ts";
import {
  type Deadlines,
  type FaultKind,
  type SocketReply,
  type SocketRequest,
  type StartedSocket,
  UpstreamFault,
} from "../../http/upstream.ts";
import { findAcceptFault } from "../websocket/handshake.ts";
import { FramedPeer } from "../websocket/peer.ts";
import { Malformed } from "../../http/fields.ts";
import type { Wire, WireListener } from "../wire.ts";
import type { Dial, SocketListener } from "./dial.ts";
import type { Pool } from "./pool.ts";

/** What the handshake needs: the head of its request, and the key in it. */
interface Handshake {
  readonly head: string;
  readonly key: string;
}

/** This much of a refusal's body is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** A connection that is closed waits this long for unsent bytes and for the other side. */
const CLOSE_WAIT_MS = 2_000;
const MAX_INTERIM_RESPONSES = 32;

export function openUpgrade(request: SocketRequest, handshake: Handshake, pool: Pool): StartedSocket {
  return new UpgradingConnection(request, handshake, pool);
}

/** `waiting`: for the reply. `refusal`: its body arrives. `held`: a 101 has come, but no listener yet. */
type Phase = "waiting" | "refusal" | "held" | "open" | "ending" | "closed";

class UpgradingConnection implements StartedSocket, SocketListener, Wire {
  readonly #handshake: Handshake;
  readonly #deadlines: Deadlines;
  readonly #reply = Promise.withResolvers<SocketReply>();
  readonly #received = new ByteCollector();
  readonly #search = new HeadSearch();
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #dial: Dial;
  #socket: Socket<SocketListener> | null = null;
  #phase: Phase = "waiting";
  #refused: ResponseHead | null = null;
  #decoder: BodyDecoder | null = null;
  #body: Uint8Array[] = [];
  #bodyBytes = 0;
  #listener: WireListener | null = null;
  readonly #outbox = new Outbox();
  #paused = false;
  #interimResponses = 0;

  constructor({ deadlines }: SocketRequest, handshake: Handshake, pool: Pool) {
    this.#handshake = handshake;
    this.#deadlines = deadlines;
    this.#dial = pool.dialAlone(deadlines.connectMs, {
      connected: (socket) => this.#start(socket),
      failed: (kind, message, cause) => this.#fail(kind, message, cause),
    });
  }

  get reply(): Promise<SocketReply> {
    return this.#reply.promise;
  }

  cancel(): void {
    if (this.#socket === null) {
      this.#dial.cancel();
      this.#fail("withdrawn", "the connection is no longer needed");
    } else {
      this.#fail("cancelled", "the connection is no longer needed");
      this.reset();
    }
  }

  // Called by the listener.

  get unsentBytes(): number {
    return this.#outbox.size;
  }

  write(bytes: Uint8Array): boolean {
    if (this.#phase !== "open" || this.#socket === null) return true;
    return this.#outbox.send(this.#socket, "", bytes, "");
  }

  pause(): void {
    if (this.#paused || this.#phase !== "open") return;
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket?.resume();
  }

  end(): void {
    if (this.#phase !== "open") return;
    this.#phase = "ending";
    this.resume();
    this.#deadline.arm(CLOSE_WAIT_MS);
    if (this.#outbox.size === 0) this.#socket?.shutdown();
  }

  reset(): void {
    this.#socket?.terminate();
    this.closed(null);
  }

  // Called by the socket.

  receive(chunk: Buffer): void {
    if (this.#phase === "open") {
      this.#listener?.receive(chunk);
    } else if (this.#phase === "held") {
      this.#received.add(chunk);
    } else if (this.#phase === "waiting" || this.#phase === "refusal") {
      try {
        if (this.#phase === "waiting") this.#readHead(chunk);
        else this.#readRefusal(chunk, 0);
      } catch (error) {
        if (!(error instanceof Malformed)) throw error;
        this.#fail("malformed", error.message);
        this.reset();
      }
    }
  }

  drain(): void {
    if (this.#outbox.size === 0 || this.#socket === null) return;
    if (!this.#outbox.flush(this.#socket)) return;
    if (this.#phase === "ending") this.#socket.shutdown();
    else if (this.#phase === "open") this.#listener?.drain();
  }

  closed(error: unknown): void {
    if (this.#phase === "closed") return;
    if (this.#phase === "refusal") this.#finishRefusal();
    this.#fail("reset", "the upstream closed the connection before its response", error ?? undefined);
    this.#phase = "closed";
    this.#deadline.disarm();
    this.#outbox.clear();
    this.#listener?.closed();
  }

  // Steps.

  #start(socket: Socket<SocketListener>): SocketListener {
    this.#socket = socket;
    this.#outbox.send(socket, this.#handshake.head, new Uint8Array(0), "");
    this.#deadline.arm(this.#deadlines.firstByteMs);
    return this;
  }

  #readHead(chunk: Buffer): void {
    this.#received.add(chunk);
    const bytes = this.#received.view();
    const end = this.#search.findEnd(bytes, 0);
    if (end < 0) {
      if (bytes.length > MAX_HEAD_BYTES) throw new Malformed("the head is too large");
      return;
    }
    const head = parseResponse(bytes, 0, end - 2);
    const rest = Buffer.from(bytes.subarray(end));
    this.#received.clear();
    this.#search.reset();
    if (head.status === 101) this.#hold(head, rest);
    else if (head.status < 200) this.#readAfterInterim(rest);
    else this.#beginRefusal(head, rest);
  }

  #readAfterInterim(rest: Buffer): void {
    if (++this.#interimResponses > MAX_INTERIM_RESPONSES) throw new Malformed("too many interim responses");
    if (rest.length > 0) this.#readHead(rest);
  }

  #hold({ status, fields }: ResponseHead, rest: Buffer): void {
    this.#deadline.disarm();
    const fault = findAcceptFault(fields, this.#handshake.key);
    if (fault !== null) throw new Malformed(`an invalid WebSocket handshake: ${fault}`);
    this.#phase = "held";
    if (rest.length > 0) this.#received.add(rest);
    this.#reply.resolve({
      status,
      fields,
      body: new Uint8Array(0),
      accept: (limits, open) =>
        this.#accept((wire) => new FramedPeer(wire, { side: "client", ...limits }, open)),
    });
  }

  #accept(listen: (wire: Wire) => WireListener): void {
    const isHeld = this.#phase === "held";
    if (isHeld) this.#phase = "open";
    const listener = listen(this);
    this.#listener = listener;
    const early = Buffer.from(this.#received.view());
    this.#received.clear();
    if (!isHeld) listener.closed();
    else if (early.length > 0) listener.receive(early);
  }

  #beginRefusal(head: ResponseHead, rest: Buffer): void {
    const length = readBodyLength(head.fields, head.minor);
    this.#refused = head;
    this.#decoder = openDecoder(length);
    this.#phase = "refusal";
    this.#deadline.arm(this.#deadlines.idleMs);
    this.#readRefusal(rest, 0);
  }

  #readRefusal(bytes: Buffer, from: number): void {
    const decoder = this.#decoder;
    if (decoder === null) return;
    const piece = decoder.decode(bytes, from);
    if (piece !== null) {
      this.#body.push(piece);
      this.#bodyBytes += piece.length;
    }
    if (decoder.done || this.#bodyBytes >= MAX_REFUSAL_BYTES) this.reset(); // `closed` reports the refusal
  }

  #finishRefusal(): void {
    const head = this.#refused;
    if (head === null) return;
    const body = Buffer.concat(this.#body).subarray(0, MAX_REFUSAL_BYTES);
    this.#reply.resolve({ status: head.status, fields: head.fields, body, accept: null });
  }

  #expire(): void {
    if (this.#phase === "waiting") this.#fail("first_byte_timeout", "no response in time");
    this.reset();
  }

  /** Does nothing after the reply. */
  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    this.#reply.promise.catch(() => {}); // nobody may be waiting
    this.#reply.reject(new UpstreamFault(kind, message, this.#phase !== "waiting", cause));
  }
}
