// One connection of a client: its requests strictly one after another, its
// unsent bytes, its end. A client that closes its side, even half, while a
// reply is pending has left. What this file does not own: listening
// (server.ts), the framing of a reply (exchange.ts).

import type { Socket } from "bun";
import { Deadline } from "../../deadline.ts";
import { Gathering, writePacket, writeRest } from "../bytes.ts";
import { ServerExchange, type ReplyLine } from "./exchange.ts";
import { readLength, staysOpen } from "../framing.ts";
import { findHeadEnd, parseRequest, requireBeginning, skipEmptyLines, type RequestHead } from "../head.ts";
import { Malformed } from "../malformed.ts";
import { guessRequest, isRefusal, type Refusal, refuseHead } from "./refusal.ts";
import { RequestBody } from "./request-body.ts";
import { leavesRoom, SPARED_FROM_CLIENTS } from "../shortage.ts";

/** What the connections of one server share. */
export interface ServerPart {
  readonly maxHeadBytes: number;
  readonly idleMs: number;
  readonly headMs: number;
  readonly stallMs: number;
  readonly stopping: boolean;
  start(exchange: ServerExchange): void;
  /** Has it answered: the connection ends after it. */
  refuse(exchange: ServerExchange, error: Refusal): void;
  forget(connection: ClientConnection): void;
}

/** How long a closed connection waits for the client to take the reply and close as well. */
const LINGER_MS = 2_000;
/** How long a reset waits for bytes that the socket hasn't taken yet. */
const RESET_WAIT_MS = 1_000;
/** A reset throws away what the kernel still holds: time for it to leave. The shortest limit there is. */
const RESET_GRACE_MS = 1;
/** Pipelined requests wait here; more of them wait in the kernel. */
const MAX_PARKED_BYTES = 64 * 1024;

/** `ending`: the reply is whole but not all sent. `resetting`: the same, and then a reset. */
type Phase = "head" | "exchange" | "ending" | "resetting" | "lingering" | "closed";

export class ClientConnection implements ReplyLine {
  readonly #server: ServerPart;
  readonly #socket: Socket<ClientConnection>;
  /** Of a client that cannot be served for want of files: 0. */
  readonly #maxHeadBytes: number;
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #parked = new Gathering();
  #phase: Phase = "head";
  #exchange: ServerExchange | null = null;
  #unsent: Buffer | null = null;
  #draining: PromiseWithResolvers<void> | null = null;
  #staysOpen = true;
  #paused = false;
  #advancing = false;
  #headBegun = false;

  constructor(server: ServerPart, socket: Socket<ClientConnection>) {
    this.#server = server;
    this.#socket = socket;
    const welcome = leavesRoom(socket, SPARED_FROM_CLIENTS);
    this.#maxHeadBytes = welcome ? server.maxHeadBytes : 0;
    this.#deadline.arm(welcome ? server.idleMs : LINGER_MS);
  }

  // What the socket reports.

  receive(chunk: Buffer): void {
    if (this.#phase === "lingering" || this.#phase === "resetting" || this.#phase === "closed") return;
    const body = this.#exchange?.body;
    const from = body === undefined || body.done ? 0 : this.#feedBody(body, chunk, 0);
    if (from < chunk.length) this.#parked.add(from === 0 ? chunk : chunk.subarray(from));
    this.#advance();
    this.#pauseOrResume();
  }

  drain(): void {
    if (this.#unsent !== null) {
      this.#unsent = writeRest(this.#socket, this.#unsent);
      if (this.#unsent !== null) {
        this.#awaitReader();
        return;
      }
      if (this.#isReplying) this.#deadline.disarm();
    }
    this.#draining?.resolve();
    this.#draining = null;
    if (this.#phase === "ending") this.#afterReply();
    else if (this.#phase === "resetting") this.#deadline.arm(RESET_GRACE_MS);
  }

  closed(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#deadline.disarm();
    this.#unsent = null;
    this.#parked.clear();
    this.#server.forget(this);
    this.#exchange?.leave();
    this.#exchange = null;
    this.#draining?.resolve();
    this.#draining = null;
  }

  // What the server asks.

  /** Ends as soon as the running exchange, if there is one, has ended. */
  stop(): void {
    this.#staysOpen = false;
    if (this.#phase === "head") this.#linger();
  }

  terminate(): void {
    this.#socket.terminate();
    this.closed();
  }

  // What the exchange asks.

  get mayStayOpen(): boolean {
    return this.#staysOpen && !this.#server.stopping;
  }

  send(head: string, payload: Uint8Array, tail: string): boolean {
    if (this.#unsent === null) {
      this.#unsent = writePacket(this.#socket, head, payload, tail);
      if (this.#unsent === null) return true;
      this.#awaitReader();
      return false;
    }
    this.#unsent = Buffer.concat([
      this.#unsent,
      Buffer.from(head, "latin1"),
      payload,
      Buffer.from(tail, "latin1"),
    ]);
    return false;
  }

  drained(): Promise<void> {
    if (this.#unsent === null) return Promise.resolve();
    this.#draining ??= Promise.withResolvers<void>();
    return this.#draining.promise;
  }

  awaitBody(): void {
    this.#deadline.arm(this.#server.headMs);
    this.#pauseOrResume();
  }

  endReply(stayOpen: boolean): void {
    this.#staysOpen &&= stayOpen;
    this.#phase = "ending";
    if (this.#unsent === null) this.#afterReply();
    else this.#deadline.arm(this.#server.idleMs);
  }

  resetReply(): void {
    this.#exchange = null;
    this.#phase = "resetting";
    this.#resume();
    if (this.#socket.bytesWritten === 0) this.terminate();
    else this.#deadline.arm(this.#unsent === null ? RESET_GRACE_MS : RESET_WAIT_MS);
  }

  // Steps.

  /** Whoever takes nothing for so long holds a reply, and what it comes from, for nobody. */
  #awaitReader(): void {
    if (this.#phase === "ending") this.#deadline.arm(this.#server.idleMs);
    else if (this.#isReplying) this.#deadline.arm(this.#server.stallMs);
  }

  /** A body that is still awaited has a limit of its own. */
  get #isReplying(): boolean {
    return this.#phase === "exchange" && this.#exchange?.body.awaited === false;
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

  /** Starts the exchanges whose heads have come, in a loop: a reply may end before `start` returns. */
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
    const bytes = this.#parked.view();
    const from = bytes.length === 0 ? 0 : skipEmptyLines(bytes, 0);
    const end = from === bytes.length ? -1 : findHeadEnd(bytes, from);
    if ((end < 0 ? bytes.length : end) > this.#maxHeadBytes) throw refuseHead(this.#maxHeadBytes);
    if (end < 0) {
      requireBeginning(bytes[from]);
      this.#awaitHead(bytes.length);
      return false;
    }
    const head = parseRequest(bytes.toString("latin1", from, end - 4));
    this.#open(head, bytes, end);
    return true;
  }

  /** A connection at rest and a head that has begun to come have a limit each; a slow sender doesn't move it. */
  #awaitHead(parked: number): void {
    if (parked === 0) this.#deadline.arm(this.#server.idleMs);
    else if (!this.#headBegun) this.#deadline.arm(this.#server.headMs);
    this.#headBegun = parked > 0;
  }

  #open(head: RequestHead, bytes: Buffer, from: number): void {
    const hosts = head.fields.reduce((count, [name]) => (name === "host" ? count + 1 : count), 0);
    if (hosts > 1 || (hosts === 0 && head.minor === 1)) throw new Malformed("not exactly one host");
    const length = readLength(head.fields, head.minor);
    const body = new RequestBody(length === "unsaid" ? 0 : length);
    this.#headBegun = false;
    this.#deadline.disarm();
    this.#staysOpen = staysOpen(head.fields, head.minor);
    const rest = body.done ? from : body.feed(bytes, from);
    this.#parked.clear();
    if (rest < bytes.length) this.#parked.add(bytes.subarray(rest));
    const exchange = new ServerExchange(this, head, body);
    this.#exchange = exchange;
    this.#phase = "exchange";
    this.#server.start(exchange);
  }

  /** Returns where the body's bytes end; of a broken body they have none. */
  #feedBody(body: RequestBody, chunk: Buffer, from: number): number {
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

  /** Nothing that follows can be trusted, or answered. */
  #refuse(error: Refusal): void {
    const broken = this.#exchange;
    this.#exchange = null;
    this.#staysOpen = false;
    broken?.leave();
    if (broken?.begun === true) {
      this.terminate();
      return;
    }
    const head = broken?.head ?? guessRequest(this.#parked.view().subarray(0, this.#server.maxHeadBytes));
    this.#parked.clear();
    this.#deadline.disarm();
    this.#exchange = new ServerExchange(this, head, new RequestBody(0));
    this.#phase = "exchange";
    this.#server.refuse(this.#exchange, error);
  }

  /** Closes our side and drops what still comes, so that no reset overtakes the reply. */
  #linger(): void {
    this.#phase = "lingering";
    this.#parked.clear();
    this.#resume();
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
    const full = this.#parked.size > MAX_PARKED_BYTES || this.#exchange?.body.wantsMore === false;
    if (!running || !full) {
      this.#resume();
    } else if (!this.#paused) {
      this.#paused = true;
      this.#socket.pause();
    }
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }
}
