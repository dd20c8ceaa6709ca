// One connection of a client: its requests, one after another, its unsent bytes, and its end. A client that closes its
// side while a reply is pending, even only its sending half, counts as gone.

import { Malformed } from "../../http/fields.ts";
import type { Wire, WireListener } from "../wire.ts";
import type { Socket } from "bun";
import { Deadline } from "../../time/deadline.ts";
import { atTurnEnd } from "../../time/next-turn.ts";
import { ByteCollector, Outbox } from "../packets.ts";
import { ServerExchange, type ReplyConnection } from "./exchange.ts";
import { readBodyLength, staysOpen } from "../framing.ts";
import { HeadSearch, parseRequest, requireRequestStart, skipEmptyLines, type RequestHead } from "../head.ts";
import { guessRequest, isRefusal, explainHeadRefusal } from "./refusal.ts";
import type { RequestRefusal } from "../../http/exchange.ts";
import { IncomingBody } from "./request-body.ts";
import { hasFilesLeft, FILES_RESERVED_FROM_CLIENTS } from "../shortage.ts";
import { SocketFlow } from "../socket-flow.ts";

/** What the connections of one server share. */
export interface ServerContext {
  readonly maxHeadBytes: number;
  readonly idleMs: number;
  readonly headMs: number;
  readonly stallMs: number;
  readonly stopping: boolean;
  start(exchange: ServerExchange): void;
  /** Lets the server answer a refusal. The connection ends after it. */
  refuse(exchange: ServerExchange, error: RequestRefusal): void;
  forget(connection: ClientConnection): void;
}

/** How long our closed side waits for the client to close its own. */
const LINGER_MS = 2_000;
/** How long a reset waits for bytes that the socket has not taken yet. */
const RESET_WAIT_MS = 1_000;
/** A reset discards what the kernel still holds. This gives those bytes time to leave. It is the shortest limit there is. */
const RESET_GRACE_MS = 1;
/** This much of pipelined requests waits here. The rest waits in the kernel. */
const MAX_WAITING_BYTES = 64 * 1024;
/** A longer packet leaves at once: it costs more than to wake a client. */
const MAX_HELD_BYTES = 64 * 1024;
const NOTHING = new Uint8Array(0);

/** The phases are drawn in ../README.md. */
type Phase = "head" | "exchange" | "ending" | "resetting" | "upgraded" | "lingering" | "closed";

/** The last packet of a reply. */
type LastPacket = readonly [head: string, payload: Uint8Array, tail: string];

/** Connections whose last packets leave at the end of this turn. */
let replying: ClientConnection[] = [];

function reply(): void {
  const leaving = replying;
  replying = [];
  for (const connection of leaving) connection.sendLast();
}

export class ClientConnection implements ReplyConnection {
  readonly #server: ServerContext;
  readonly #socket: Socket<ClientConnection>;
  /** 0 for a client that cannot be served because files are short. */
  readonly #maxHeadBytes: number;
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #waiting = new ByteCollector();
  readonly #search = new HeadSearch();
  /** Empty lines at the start of the waiting bytes. */
  #emptyBytes = 0;
  #phase: Phase = "head";
  #exchange: ServerExchange | null = null;
  /** Gets the bytes after an upgrade. */
  #listener: WireListener | null = null;
  readonly #outbox = new Outbox();
  #last: LastPacket | null = null;
  /** Waits for the outbox to be empty. */
  #onSent: (() => void) | null = null;
  #staysOpen = true;
  readonly #flow: SocketFlow;
  #advancing = false;
  #headBegun = false;

  constructor(server: ServerContext, socket: Socket<ClientConnection>) {
    this.#server = server;
    this.#socket = socket;
    this.#flow = new SocketFlow(socket);
    const servable = hasFilesLeft(socket, FILES_RESERVED_FROM_CLIENTS);
    this.#maxHeadBytes = servable ? server.maxHeadBytes : 0;
    this.#deadline.arm(servable ? server.idleMs : LINGER_MS);
  }

  // Called by the socket.

  receive(chunk: Buffer): void {
    this.#flow.noteRead(chunk.length);
    if (this.#phase === "upgraded") {
      this.#listener?.receive(chunk);
      return;
    }
    if (this.#phase === "lingering" || this.#phase === "resetting" || this.#phase === "closed") return;
    const body = this.#exchange?.body;
    const from = body === undefined || body.done ? 0 : this.#feedBody(body, chunk, 0);
    if (from < chunk.length) this.#waiting.add(from === 0 ? chunk : chunk.subarray(from));
    this.#advance();
    this.#pauseOrResume();
  }

  drain(): void {
    if (this.#outbox.size > 0) {
      if (!this.#outbox.flush(this.#socket)) {
        this.#awaitReader();
        return;
      }
      if (this.#isReplying) this.#deadline.disarm();
    }
    this.#reportSent();
    if (this.#phase === "ending" && this.#last === null) this.#afterReply();
    else if (this.#phase === "upgraded") this.#listener?.drain();
    else if (this.#phase === "resetting") this.#deadline.arm(RESET_GRACE_MS);
  }

  closed(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#deadline.disarm();
    this.#outbox.clear();
    this.#last = null;
    this.#waiting.clear();
    this.#server.forget(this);
    this.#exchange?.leave();
    this.#exchange = null;
    this.#reportSent();
    this.#listener?.closed();
  }

  // Called by the server.

  /** Ends the connection after the running exchange, or now if there is none. */
  stop(): void {
    this.#staysOpen = false;
    if (this.#phase === "head") this.#linger();
    else if (this.#phase === "upgraded") this.#listener?.stopping();
  }

  terminate(): void {
    // A reset would discard what the kernel still holds of a complete reply, for a client that reads slowly.
    if (this.#phase === "lingering") this.#socket.end();
    else this.#socket.terminate();
    this.closed();
  }

  // Called by the exchange.

  get mayStayOpen(): boolean {
    return this.#staysOpen && !this.#server.stopping;
  }

  send(head: string, payload: Uint8Array, tail: string): boolean {
    const wasEmpty = this.#outbox.size === 0;
    if (this.#outbox.send(this.#socket, head, payload, tail)) return true;
    if (wasEmpty) this.#awaitReader();
    return false;
  }

  onceSent(listener: () => void): void {
    if (this.#outbox.size === 0) listener();
    else this.#onSent = listener;
  }

  #reportSent(): void {
    const listener = this.#onSent;
    this.#onSent = null;
    listener?.();
  }

  awaitBody(): void {
    this.#deadline.arm(this.#server.headMs);
    this.#pauseOrResume();
  }

  endReply(stayOpen: boolean, head: string, payload: Uint8Array, tail: string): void {
    this.#staysOpen &&= stayOpen;
    this.#phase = "ending";
    this.#last = [head, payload, tail];
    if (this.#outbox.size > 0 || payload.length > MAX_HELD_BYTES) this.sendLast();
    else if (replying.push(this) === 1) atTurnEnd("answers", reply);
  }

  sendLast(): void {
    const last = this.#last;
    if (last === null) return;
    this.#last = null;
    const [head, payload, tail] = last;
    if (head.length + payload.length > 0) this.send(head, payload, tail);
    if (this.#outbox.size === 0) this.#afterReply();
    else this.#deadline.arm(this.#server.stallMs);
  }

  resetReply(): void {
    this.#exchange = null;
    this.#phase = "resetting";
    this.#flow.release();
    if (this.#socket.bytesWritten === 0) this.terminate();
    else this.#deadline.arm(this.#outbox.size === 0 ? RESET_GRACE_MS : RESET_WAIT_MS);
  }

  upgrade(listen: (wire: Wire) => WireListener): void {
    this.#exchange = null;
    this.#phase = "upgraded";
    this.#deadline.disarm();
    const listener = listen(this.#wire);
    this.#listener = listener;
    const early = this.#waiting.view();
    this.#waiting.clear();
    if (early.length > 0) listener.receive(Buffer.from(early));
    this.#flow.release();
    if (this.#server.stopping) listener.stopping();
  }

  /** What the listener of an upgraded connection gets of it. */
  get #wire(): Wire {
    const onceUpgraded = (act: () => void) => () => {
      if (this.#phase === "upgraded") act();
    };
    const unsent = (): number => this.#outbox.size;
    return {
      get unsentBytes() {
        return unsent();
      },
      write: (bytes) => this.#phase !== "upgraded" || this.send("", bytes, ""),
      pause: onceUpgraded(() => this.#flow.hold()),
      resume: onceUpgraded(() => this.#flow.release()),
      end: onceUpgraded(() => this.endReply(false, "", NOTHING, "")),
      reset: () => this.terminate(),
    };
  }

  // Steps.

  /** A client that reads nothing for this long keeps a reply, and the upstream behind it, open for nobody. */
  #awaitReader(): void {
    if (this.#phase === "ending" || this.#isReplying) this.#deadline.arm(this.#server.stallMs);
  }

  /** A body that is still awaited has its own limit. */
  get #isReplying(): boolean {
    return (
      this.#phase === "upgraded" || (this.#phase === "exchange" && this.#exchange?.body.awaited === false)
    );
  }

  #afterReply(): void {
    this.#exchange = null;
    if (!this.#staysOpen || this.#server.stopping) {
      this.#linger();
      return;
    }
    this.#phase = "head";
    this.#advance();
    this.#pauseOrResume();
  }

  /** Starts the exchanges whose heads have arrived. This is a loop, because a reply may end before `start` returns. */
  #advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      while (this.#phase === "head" && this.#startNext());
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#refuse(error);
    } finally {
      this.#advancing = false;
    }
  }

  #startNext(): boolean {
    const bytes = this.#waiting.view();
    const from = skipEmptyLines(bytes, this.#emptyBytes);
    this.#emptyBytes = from;
    const end = from === bytes.length ? -1 : this.#search.findEnd(bytes, from);
    if ((end < 0 ? bytes.length : end) > this.#maxHeadBytes) throw explainHeadRefusal(this.#maxHeadBytes);
    if (end < 0) {
      requireRequestStart(bytes[from]);
      this.#awaitHead(bytes.length);
      return false;
    }
    const head = parseRequest(bytes, from, end - 2);
    this.#open(head, bytes, end);
    return true;
  }

  /** An idle connection and an incomplete head have one limit each. Sending slowly does not extend the second one. */
  #awaitHead(waiting: number): void {
    if (waiting === 0) this.#deadline.arm(this.#server.idleMs);
    else if (!this.#headBegun) this.#deadline.arm(this.#server.headMs);
    this.#headBegun = waiting > 0;
  }

  #open(head: RequestHead, bytes: Buffer, from: number): void {
    const hosts = head.fields.getAll("host").length;
    if (hosts > 1 || (hosts === 0 && head.minor === 1)) throw new Malformed("not exactly one host");
    const length = readBodyLength(head.fields, head.minor);
    const body = new IncomingBody(length === "unknown" ? 0 : length);
    this.#headBegun = false;
    this.#emptyBytes = 0;
    this.#deadline.disarm();
    this.#staysOpen = staysOpen(head.fields, head.minor);
    const rest = body.done ? from : body.feed(bytes, from);
    this.#waiting.clear();
    if (rest < bytes.length) this.#waiting.add(bytes.subarray(rest));
    const exchange = new ServerExchange(this, head, body);
    this.#exchange = exchange;
    this.#phase = "exchange";
    this.#server.start(exchange);
  }

  /** Returns the index after the body's bytes. After a broken body nothing is left to read. */
  #feedBody(body: IncomingBody, chunk: Buffer, from: number): number {
    try {
      const rest = body.feed(chunk, from);
      if (body.awaited) this.#deadline.arm(this.#server.headMs);
      else if (this.#phase === "exchange") this.#deadline.disarm();
      return rest;
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.#staysOpen = false;
      if (body.awaited && this.#exchange?.begun === false) body.break(error.message);
      else this.#refuse(error);
      return chunk.length;
    }
  }

  /** Bytes that follow cannot be trusted, so no further request is read. */
  #refuse(error: RequestRefusal): void {
    const broken = this.#exchange;
    this.#exchange = null;
    this.#staysOpen = false;
    broken?.leave();
    if (broken?.begun === true) {
      this.terminate();
      return;
    }
    const head = broken?.head ?? guessRequest(this.#waiting.view().subarray(0, this.#server.maxHeadBytes));
    this.#waiting.clear();
    this.#deadline.disarm();
    this.#exchange = new ServerExchange(this, head, new IncomingBody(0));
    this.#phase = "exchange";
    this.#server.refuse(this.#exchange, error);
  }

  /** Closes our side and discards what still arrives. A reset now could overtake the reply. */
  #linger(): void {
    this.#phase = "lingering";
    this.#waiting.clear();
    this.#flow.release();
    this.#deadline.arm(LINGER_MS);
    this.#socket.shutdown();
  }

  #expire(): void {
    if (this.#phase === "head" && !this.#headBegun) this.#linger();
    else if (this.#phase === "head") this.#refuse(new Malformed("the head took too long", 408));
    else this.terminate();
  }

  #pauseOrResume(): void {
    const running = this.#phase === "exchange" || this.#phase === "ending";
    const full = this.#waiting.size > MAX_WAITING_BYTES || this.#exchange?.body.wantsMore === false;
    if (running && full) this.#flow.hold();
    else this.#flow.release();
  }
}
