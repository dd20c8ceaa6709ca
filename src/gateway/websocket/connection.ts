// A client's WebSocket and its upstream's: messages in both directions, and the turns that run on them.

import {
  CREATE,
  isErrorEvent,
  readSocketEvent,
  RECONNECT_CODE,
  type SocketEvent,
  writeErrorEvent,
} from "../../dialects/formats/responses-websocket.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { scanMembers } from "../../lib/scan.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";
import {
  CLOSE_CODES,
  type ClientListener,
  type Closing,
  isSendable,
  MAX_WAITING_BYTES,
  type Message,
  type UpstreamSocket,
  type WebSocketPeer,
} from "../../lib/http/web-socket.ts";
import { openBill } from "../bill/bill.ts";
import { readPrompt } from "../bill/miss.ts";
import { describeFailure, finish } from "../bill/finish.ts";
import type { Gateway } from "../gateway.ts";
import { admit } from "../intake/authenticate.ts";
import { scanBody } from "../intake/body.ts";
import type { Candidate, Match } from "../intake/match.ts";
import { toGatewayError } from "../intake/refuse.ts";
import { findRoute } from "../pipeline.ts";
import { Request } from "../request.ts";
import { renameModel } from "../send/forward.ts";
import { SocketTurn } from "./turn.ts";

/** A WebSocket that the upstream has accepted. */
export interface OpenConnection {
  readonly candidate: Candidate;
  /** The fields of the upstream's 101, for the client. */
  readonly fields: Fields;
  readonly socket: UpstreamSocket;
}

type OpenUpstream = (call: Request, match: Match, gateway: Gateway) => Promise<OpenConnection>;

export interface ConnectionOptions {
  /** The request for the upgrade. */
  readonly call: Request;
  readonly gateway: Gateway;
  readonly newId: () => string;
  /** Opens a WebSocket to the first channel of a match that accepts. */
  readonly openUpstream: OpenUpstream;
  /** Called once, with the number of responses, when both sides have ended and every turn has its line. */
  readonly ended: (responses: number) => void;
}

/** Each running response keeps its request in memory. */
const MAX_TURNS = 256;

export class SocketConnection implements ClientListener {
  readonly #options: ConnectionOptions;
  readonly #client: WebSocketPeer;
  /** Null: it has ended. */
  #upstream: UpstreamSocket | null = null;
  #candidate: Candidate;
  #turns: SocketTurn[] = [];
  #responses = 0;
  /** Messages of the client that wait for an earlier one, or until both sides have read enough. */
  #queue: Message[] = [];
  #queuedBytes = 0;
  #isBusy = false;
  /** A response has begun here, so the connection stays on its channel. */
  #bound = false;
  #clientGone = false;
  /** What the client has asked for, until it is sent. */
  #opening: Request | null = null;
  /** The log has said that a message was refused. */
  #hasRefused = false;
  #stopping = false;
  #drain: Timer | null = null;
  #ended = false;
  readonly #onHalt = (): void => this.#abandon({ code: CLOSE_CODES.goingAway, reason: "" });

  constructor(options: ConnectionOptions, client: WebSocketPeer, upstream: OpenConnection) {
    this.#options = options;
    this.#client = client;
    this.#candidate = upstream.candidate;
    this.#attach(upstream);
  }

  #attach({ candidate, socket }: OpenConnection): void {
    this.#candidate = candidate;
    this.#upstream = socket;
    void this.#readUpstream(socket);
  }

  /** At the pace of the client. */
  async #readUpstream(upstream: UpstreamSocket): Promise<void> {
    for (;;) {
      const received = await upstream.read();
      // Another channel may have taken the place of this one.
      if (this.#upstream !== upstream) return;
      if ("closing" in received) return this.#lose(received.closing);
      await this.#pass(received.message);
    }
  }

  // From the client.

  message(message: Message): void {
    this.#queue.push(message);
    this.#queuedBytes += weigh(message);
    if (this.#queue.length > 1 && this.#queuedBytes > MAX_WAITING_BYTES) this.#refuseMore();
    else void this.#handleQueue();
  }

  closed(closing: Closing): void {
    this.#clientGone = true;
    this.#opening?.endWait?.();
    this.#queue = [];
    const { gateway } = this.#options;
    const { drainMs } = gateway.catalog.onDisconnect;
    if (this.#turns.length === 0 || drainMs === 0 || gateway.halt.aborted) return this.#abandon(closing);
    this.#drain = setTimeout(() => this.#abandon(closing), drainMs);
    gateway.halt.addEventListener("abort", this.#onHalt, { once: true });
  }

  stopping(): void {
    this.#stopping = true;
    this.#endIfIdle();
  }

  /** One message after another: the next one may depend on what the one before leads to. A client whose messages lead to more
   *  than it or the upstream reads must wait. */
  async #handleQueue(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#queuedBytes -= weigh(next);
      await this.#handle(next);
      await this.#upstream?.unsent;
      await this.#client.unsent;
    }
    this.#isBusy = false;
    this.#endIfIdle();
  }

  /** One that reads nothing would not see a close frame. */
  #refuseMore(): void {
    if (this.#client.unsent !== null) this.#client.reset();
    else this.#client.close({ code: CLOSE_CODES.tooSlow, reason: "Too many messages wait" });
  }

  async #handle(message: Message): Promise<void> {
    const { call, gateway } = this.#options;
    const event = readSocketEvent(message.bytes);
    if (message.kind === "text" && event.type === CREATE) return this.#create(message.bytes, event);
    try {
      requireOneType(message, event);
      if (!PASSED.has(event.type)) throw this.#refuseUnknown(event);
      // A key can be disabled, or its plan can end, while its connection lives.
      admit(call, gateway, gateway.now());
      void this.#upstream?.send(message);
    } catch (thrown) {
      this.#sendError(toGatewayError(thrown, call.exchange, gateway.observer), event);
    }
  }

  #refuseUnknown({ type }: SocketEvent): GatewayError {
    const { call, gateway } = this.#options;
    // Anything else may hold a secret.
    const name = KNOWN_FORM.test(type) ? `"${type}"` : "of an unknown type";
    if (!this.#hasRefused)
      gateway.observer.notice(
        "warning",
        `WebSocket of the key "${call.key.name}": a message ${name} was refused`,
      );
    this.#hasRefused = true;
    return refuseType(
      `The gateway does not pass on a message ${name}, because it could not be billed. It knows ${KNOWN}.`,
    );
  }

  async #create(bytes: Uint8Array, event: SocketEvent): Promise<void> {
    const { call, gateway, newId } = this.#options;
    const { exchange } = call;
    const arrival = { id: newId(), exchange, time: gateway.now(), arrived: performance.now() };
    const r = new Request(arrival, call, "websocket");
    gateway.finished.enter();
    let create: Uint8Array;
    try {
      create = await this.#begin(r, bytes, event);
    } catch (thrown) {
      const error = toGatewayError(thrown, r.exchange, gateway.observer);
      this.#sendError(error, event);
      return finish(r, describeFailure(error, gateway), gateway);
    }
    this.#watchSilence(event.streamId);
    void this.#upstream?.send({ kind: "text", bytes: create });
  }

  /** The steps of pipeline.ts, with a message in place of a request. Returns what goes upstream. From then on the turn ends
   *  the request. */
  async #begin(r: Request, bytes: Uint8Array, event: SocketEvent): Promise<Uint8Array> {
    const { gateway } = this.#options;
    const { catalog } = gateway;
    if (this.#stopping) throw askToReconnect("The gateway is stopping.");
    if (this.#turns.length >= MAX_TURNS)
      throw new GatewayError(
        "rate_limited",
        `This connection has ${MAX_TURNS} responses that have not ended. Wait for one of them, or open another connection.`,
      );
    admit(r, gateway);
    r.overrides = catalog.prices;
    gateway.recorder?.openTurn(r, bytes);
    r.body = { ...scanBody(r, bytes, bytes, gateway.knownParts), stream: true };
    findRoute(r, gateway);
    const candidate = await this.#settleOnChannel(r);
    r.candidates = [candidate];
    await this.#openBill(r);
    r.held = true;
    if (this.#clientGone) throw new GatewayError("client_gone", "The client disconnected.");
    if (this.#upstream?.open !== true)
      throw askToReconnect(`The connection to the channel "${candidate.channel.name}" has ended.`);
    this.#responses += 1;
    const create = renameModel(r, candidate) ?? bytes;
    r.sentPrompt = readPrompt(r, gateway);
    this.#turns.push(new SocketTurn(r, candidate, event.streamId, gateway));
    return create;
  }

  async #openBill(r: Request): Promise<void> {
    this.#opening = r;
    try {
      await openBill(r, this.#options.gateway);
    } finally {
      this.#opening = null;
    }
  }

  /** The connection's channel, if it serves the model. Before the first response, another channel may take its place. */
  async #settleOnChannel(match: Match): Promise<Candidate> {
    const { call, gateway, openUpstream } = this.#options;
    const { name } = this.#candidate.channel;
    const own = match.candidates.find(({ channel }) => channel.name === name);
    const isDisabled = gateway.channels.isDisabled(this.#candidate.channel);
    if (own !== undefined && !isDisabled && this.#upstream?.open === true) return own;
    if (isDisabled) throw askToReconnect(`The channel "${name}" of this connection is disabled.`);
    if (this.#bound || this.#turns.length > 0) {
      throw askToReconnect(
        own === undefined
          ? `The channel "${name}" of this connection does not serve the model "${match.model}".`
          : `The connection to the channel "${name}" has ended.`,
      );
    }
    const before = this.#upstream;
    const connection = await openUpstream(call, match, gateway);
    this.#attach(connection);
    before?.close({ code: CLOSE_CODES.normal, reason: "" });
    // What came with its 101 belongs to no request.
    await nextTurn();
    return connection.candidate;
  }

  #sendError(error: GatewayError, { streamId }: SocketEvent): void {
    void this.#client.send({ kind: "text", bytes: writeErrorEvent(error, streamId) });
    if (error.wireCode === RECONNECT_CODE && this.#turns.length === 0)
      this.#client.close({ code: CLOSE_CODES.goingAway, reason: "Open a new connection" });
  }

  // From the upstream.

  /** Returns a promise if the client reads slowly. */
  #pass({ kind, bytes: raw }: Message): Promise<void> | null {
    const event = readSocketEvent(raw);
    const { secrets } = this.#options.call;
    const bytes = isErrorEvent(event) ? secrets.removeFrom(raw) : secrets.mask(raw);
    const slow = this.#client.send({ kind, bytes });
    this.#meter(event, bytes);
    return slow;
  }

  #meter(event: SocketEvent, bytes: Uint8Array): void {
    const turn = this.#findTurn(event);
    if (turn === undefined) {
      if (event.type === "response.created") this.#refuseUnrequested();
      return;
    }
    turn.see(event, bytes);
    this.#bound ||= turn.begun;
    if (!turn.ended) return;
    this.#turns = this.#turns.filter((other) => other !== turn);
    this.#watchSilence(turn.streamId);
    this.#endIfIdle();
  }

  /** On one stream the upstream is at work on the first response that has not ended. */
  #watchSilence(streamId: string | null): void {
    const turn = this.#turns.find((other) => other.streamId === streamId);
    turn?.watchSilence(() => this.#endSilence(turn));
  }

  /** What the upstream still sent could be taken for a later response, so the connection ends with it. */
  #endSilence(turn: SocketTurn): void {
    // The upstream may be waiting for the client to read.
    if (this.#client.unsent !== null) return turn.awaitEvent();
    turn.break("upstream_silent");
    this.#upstream?.reset();
  }

  /** On one stream, responses come one after another. An error belongs to the newest request, if nothing has answered it. */
  #findTurn({ type, streamId }: SocketEvent): SocketTurn | undefined {
    if (type !== "error" && !type.startsWith("response.")) return undefined;
    const own = this.#turns.filter((turn) => turn.streamId === streamId);
    const waiting = own.find((turn) => !turn.begun);
    const running = own.find((turn) => turn.begun);
    return type === "response.created" || type === "error" ? (waiting ?? running) : (running ?? waiting);
  }

  /** Nobody could bill it. After the client has left, it may be what the client had requested. */
  #refuseUnrequested(): void {
    const { observer } = this.#options.gateway;
    const { name } = this.#candidate.channel;
    if (this.#clientGone) return this.#upstream?.reset();
    observer.notice(
      "warning",
      `The channel "${name}" sent a response that nobody requested. Its WebSocket was closed.`,
    );
    this.#upstream?.reset();
  }

  // Ends.

  /** The upstream's connection has ended. */
  #lose({ code, reason }: Closing): void {
    this.#upstream = null;
    const isUnused = !this.#bound && this.#turns.length === 0;
    this.#breakTurns("upstream_gone");
    const { channel } = this.#candidate;
    // An unused connection that ends is replaced at the next request.
    if (!isUnused)
      this.#client.close(
        isSendable(code) || code === CLOSE_CODES.none
          ? { code, reason: this.#options.call.secrets.remove(reason) }
          : { code: CLOSE_CODES.internal, reason: `The connection to the channel "${channel.name}" broke` },
      );
    this.#endIfIdle();
  }

  #abandon(closing: Closing): void {
    this.#breakTurns("client_left");
    const upstream = this.#upstream;
    const code = isSendable(closing.code) ? closing.code : CLOSE_CODES.goingAway;
    upstream?.close({ code, reason: "" });
    this.#endIfIdle();
  }

  #breakTurns(how: "client_left" | "upstream_gone"): void {
    const turns = this.#turns;
    this.#turns = [];
    for (const turn of turns) turn.break(how);
  }

  #endIfIdle(): void {
    if (this.#turns.length > 0 || this.#isBusy || this.#queue.length > 0) return;
    if (this.#stopping)
      this.#client.close({ code: CLOSE_CODES.goingAway, reason: "The gateway is stopping" });
    if (!this.#clientGone || this.#ended) return;
    this.#ended = true;
    if (this.#drain !== null) clearTimeout(this.#drain);
    this.#options.gateway.halt.removeEventListener("abort", this.#onHalt);
    this.#upstream?.close({ code: CLOSE_CODES.goingAway, reason: "" });
    // Its responses have their lines then.
    this.#options.gateway.finished.flush();
    this.#options.ended(this.#responses);
  }
}

/** Short messages take memory, too. */
const MESSAGE_BYTES = 256;

function weigh({ bytes }: Message): number {
  return bytes.length + MESSAGE_BYTES;
}

/** Messages that begin no response: what the newest clients send. The SDKs for OpenAI give a running response further input,
 *  which its usage counts; Codex 0.169 ends one. */
const PASSED: ReadonlySet<string> = new Set(["response.inject", "response.interrupt"]);
const KNOWN = [CREATE, ...PASSED].map((type) => `\`${type}\``).join(", ");

const KNOWN_FORM = /^[a-z._]{1,64}$/;

/** Another parser must not find a `response.create` in what passes without a bill. */
function requireOneType({ kind, bytes }: Message, { type }: SocketEvent): void {
  if (kind === "binary" || type === "")
    throw refuseType("A message must be a text with one JSON object that has one `type`.");
  const scan = scanMembers(bytes, [], ["type"]);
  if (scan === null || scan.isForeign || scan.spellings !== 1)
    throw refuseType(
      "The message names its `type` more than once, in different spellings, or is not strict JSON.",
    );
}

function refuseType(text: string): GatewayError {
  return new GatewayError("bad_request", text, { param: "type" });
}

function askToReconnect(why: string): GatewayError {
  return new GatewayError("unavailable", `${why} Open a new WebSocket connection to continue.`, {
    wireCode: RECONNECT_CODE,
    retryAfterSeconds: 1,
  });
}
