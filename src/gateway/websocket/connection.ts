// Carries messages between a client's WebSocket and an upstream's,
// and keeps the turns.

import {
  CREATE,
  readSocketEvent,
  RECONNECT_CODE,
  type SocketEvent,
  writeErrorEvent,
} from "../../dialects/formats/responses-websocket.ts";
import { dropEnvelopes } from "../../bridges/neutral/envelope.ts";
import { GatewayError } from "../../lib/errors.ts";
import {
  CLOSE_CODES,
  type ClientListener,
  type Closing,
  isSendable,
  MAX_WAITING_BYTES,
  type Payload,
  type UpstreamSocket,
  type WebSocketPeer,
} from "../../lib/http/web-socket.ts";
import { scanMembers } from "../../lib/scan.ts";
import { nextTurn, runAtOnce } from "../../lib/time/next-turn.ts";
import { openBill } from "../bill/bill.ts";
import { describeFailure, finish } from "../bill/finish.ts";
import { readPrompt } from "../bill/miss.ts";
import type { Gateway } from "../gateway.ts";
import { admit } from "../intake/authenticate.ts";
import { scanBody } from "../intake/body.ts";
import type { Candidate } from "../intake/match.ts";
import { toGatewayError } from "../intake/refuse.ts";
import { findRoute } from "../pipeline.ts";
import { Request } from "../request.ts";
import { renameModel } from "../send/forward.ts";
import { dial, type OpenConnection } from "./dial.ts";
import { type Break, SocketTurn } from "./turn.ts";

export interface ConnectionOptions {
  readonly call: Request;
  readonly gateway: Gateway;
  readonly newId: () => string;
  /** Called when all responses have their ledger lines. */
  readonly ended: (responses: number) => void;
}

/** Each running response keeps its request in memory. */
const MAX_TURNS = 256;
/** Each message takes memory beside its bytes. */
const MESSAGE_BYTES = 256;
/** Some clients send these to a running response: decision 0021. */
const PASSED: ReadonlySet<string> = new Set(["response.inject", "response.interrupt"]);

export class SocketConnection implements ClientListener {
  readonly #options: ConnectionOptions;
  readonly #client: WebSocketPeer;
  #upstream: UpstreamSocket | null = null;
  #candidate: Candidate;
  #turns: SocketTurn[] = [];
  #responses = 0;
  #queue: Payload[] = [];
  #queuedBytes = 0;
  #isBusy = false;
  /** A response has begun on this connection. */
  #bound = false;
  #clientGone = false;
  #opening: Request | null = null;
  #stopping = false;
  #drain: Timer | null = null;
  #ended = false;
  readonly #onHalt = (): void => this.#abandon({ code: CLOSE_CODES.goingAway, reason: "" });

  constructor(options: ConnectionOptions, client: WebSocketPeer, upstream: OpenConnection) {
    this.#options = options;
    this.#client = client;
    this.#candidate = upstream.candidate;
    void this.#readUpstream(upstream);
  }

  async #readUpstream({ candidate, socket }: OpenConnection): Promise<void> {
    this.#candidate = candidate;
    this.#upstream = socket;
    for (;;) {
      const received = await socket.read();
      // A socket that was replaced is read to its end.
      const isCurrent = this.#upstream === socket;
      if ("closing" in received) return isCurrent ? this.#lose(received.closing) : undefined;
      if (isCurrent) await this.#pass(received.message);
    }
  }

  message(message: Payload): void {
    this.#queue.push(message);
    this.#queuedBytes += message.bytes.length + MESSAGE_BYTES;
    if (this.#queue.length === 1 || this.#queuedBytes <= MAX_WAITING_BYTES) void this.#handleQueue();
    // A client that reads nothing would not see a close frame.
    else if (this.#client.unsent !== null) this.#client.reset();
    else this.#client.close({ code: CLOSE_CODES.tooSlow, reason: "Too many messages wait" });
  }

  closed(closing: Closing): void {
    this.#clientGone = true;
    this.#opening?.endWait?.();
    this.#queue = [];
    const { catalog, halt } = this.#options.gateway;
    const { drainMs } = catalog.onDisconnect;
    if (this.#turns.length === 0 || drainMs === 0 || halt.aborted) return this.#abandon(closing);
    this.#drain = setTimeout(() => this.#abandon(closing), drainMs);
    halt.addEventListener("abort", this.#onHalt, { once: true });
  }

  stopping(): void {
    this.#stopping = true;
    this.#endIfIdle();
  }

  /** Handles one message after the other,
   *  because a message may depend on the one before. */
  async #handleQueue(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#queuedBytes -= next.bytes.length + MESSAGE_BYTES;
      await this.#handle(next);
      await this.#upstream?.unsent;
      await this.#client.unsent;
    }
    this.#isBusy = false;
    this.#endIfIdle();
  }

  async #handle(message: Payload): Promise<void> {
    const { call, gateway } = this.#options;
    const event = readSocketEvent(message.bytes);
    if (message.kind === "text" && event.type === CREATE) return this.#create(message.bytes, event);
    try {
      requireHarmless(message, event);
      // A key can be disabled, or its plan can end, during its connection.
      admit(call, gateway, gateway.now());
      void this.#upstream?.send(message);
    } catch (thrown) {
      this.#sendError(toGatewayError(thrown, call.exchange, gateway), event);
    }
  }

  async #create(bytes: Uint8Array, event: SocketEvent): Promise<void> {
    const { call, gateway, newId } = this.#options;
    const { exchange } = call;
    const arrival = { id: newId(), exchange, time: gateway.now(), arrived: performance.now() };
    const r = new Request(arrival, call, "websocket");
    gateway.finished.enter();
    let create: Uint8Array;
    try {
      create = await this.#begin(r, bytes);
    } catch (thrown) {
      const error = toGatewayError(thrown, exchange, gateway);
      this.#sendError(error, event);
      return finish(r, describeFailure(error, gateway), gateway);
    }
    this.#responses += 1;
    this.#turns.push(new SocketTurn(r, this.#candidate, event.streamId, gateway));
    this.#watchSilence(event.streamId);
    void this.#upstream?.send({ kind: "text", bytes: create });
  }

  async #begin(r: Request, bytes: Uint8Array): Promise<Uint8Array> {
    const { gateway } = this.#options;
    if (this.#stopping) throw this.#askToReconnect("The gateway is stopping.");
    if (this.#turns.length >= MAX_TURNS)
      throw new GatewayError(
        "rate_limited",
        `This connection has ${MAX_TURNS} unfinished responses. Wait for one, or open another connection.`,
      );
    admit(r, gateway);
    r.overrides = gateway.catalog.prices;
    gateway.recorder.open(r, bytes);
    r.body = { ...runAtOnce(scanBody(r, bytes, bytes, gateway.knownParts)), stream: true };
    await gateway.lists.learn(r.group);
    findRoute(r, gateway);
    const candidate = await this.#settleOnChannel(r);
    r.candidates = [candidate];
    this.#opening = r;
    try {
      await openBill(r, gateway);
    } finally {
      this.#opening = null;
    }
    r.cleared = true;
    if (this.#clientGone) throw new GatewayError("client_gone", "The client disconnected.");
    if (this.#upstream?.open !== true) throw this.#askToReconnect();
    gateway.channels.keepConversation(r, candidate);
    r.sentPrompt = readPrompt(r, gateway);
    const named = renameModel(r, candidate) ?? bytes;
    return (gateway.converts ? dropEnvelopes(named) : null) ?? named;
  }

  async #settleOnChannel(r: Request): Promise<Candidate> {
    const { call, gateway } = this.#options;
    const { channel } = this.#candidate;
    const own = r.candidates.find((candidate) => candidate.channel.name === channel.name);
    const { disabled } = gateway.channels.of(channel);
    if (own !== undefined && !disabled && this.#upstream?.open === true) return own;
    if (disabled || this.#bound || this.#turns.length > 0) throw this.#askToReconnect();
    const before = this.#upstream;
    const connection = await dial(call, r, gateway);
    void this.#readUpstream(connection);
    before?.close({ code: CLOSE_CODES.normal, reason: "" });
    // Messages that came with the 101 go to the client first.
    await nextTurn();
    return connection.candidate;
  }

  #askToReconnect(
    why = `The channel "${this.#candidate.channel.name}" of this connection cannot serve the request.`,
  ): GatewayError {
    const text = `${why} Open a new WebSocket connection to continue.`;
    return new GatewayError("unavailable", text, { wireCode: RECONNECT_CODE, retrySeconds: 1 });
  }

  #sendError(error: GatewayError, { streamId }: SocketEvent): void {
    void this.#client.send({ kind: "text", bytes: writeErrorEvent(error, streamId) });
    if (error.wireCode === RECONNECT_CODE && this.#turns.length === 0)
      this.#client.close({ code: CLOSE_CODES.goingAway, reason: "Open a new connection" });
  }

  async #pass({ kind, bytes: raw }: Payload): Promise<void> {
    const event = readSocketEvent(raw);
    const bytes = await this.#options.call.secrets.maskInTurns(raw);
    const slow = this.#client.send({ kind, bytes });
    const turn = this.#findTurn(event);
    if (turn !== undefined) this.#meter(turn, event, bytes);
    else if (event.type === "response.created") this.#refuseUnrequested();
    await slow;
  }

  #meter(turn: SocketTurn, event: SocketEvent, bytes: Uint8Array): void {
    turn.see(event, bytes);
    this.#bound = true;
    if (!turn.ended) return;
    this.#turns = this.#turns.filter((other) => other !== turn);
    this.#watchSilence(turn.streamId);
    this.#endIfIdle();
  }

  /** Cuts off a silent upstream:
   *  its late events could be taken for a later response. */
  #watchSilence(streamId: string | null): void {
    const turn = this.#turns.find((other) => other.streamId === streamId);
    turn?.watchSilence(() => {
      // The upstream may be waiting for the client to read.
      if (this.#client.unsent !== null) return turn.awaitEvent();
      turn.break("upstream_silent");
      this.#upstream?.reset();
    });
  }

  /** `response.created` and errors are for the stream's oldest unanswered request, if any. */
  #findTurn({ type, streamId }: SocketEvent): SocketTurn | undefined {
    if (type !== "error" && !type.startsWith("response.")) return undefined;
    const own = this.#turns.filter((turn) => turn.streamId === streamId);
    const waiting = own.find((turn) => !turn.begun);
    const running = own.find((turn) => turn.begun);
    return type === "response.created" || type === "error" ? (waiting ?? running) : (running ?? waiting);
  }

  /** The response is not billed. If the client has left, it may have requested
   *  the response, so there is no warning. */
  #refuseUnrequested(): void {
    const text = `The channel "${this.#candidate.channel.name}" sent a response that nobody requested. Its WebSocket was closed.`;
    if (!this.#clientGone) this.#options.gateway.observer.notice("warning", text);
    this.#upstream?.reset();
  }

  /** If the connection was not used, the client's WebSocket stays open.
   *  The client's next request dials again. */
  #lose({ code, reason }: Closing): void {
    this.#upstream = null;
    const isUsed = this.#bound || this.#turns.length > 0;
    this.#breakTurns("upstream_gone");
    const isTold = isSendable(code) || code === CLOSE_CODES.none;
    const text = isTold
      ? this.#options.call.secrets.maskText(reason)
      : `The connection to the channel "${this.#candidate.channel.name}" broke`;
    if (isUsed) this.#client.close({ code: isTold ? code : CLOSE_CODES.internal, reason: text });
    this.#endIfIdle();
  }

  #abandon({ code }: Closing): void {
    this.#breakTurns("client_left");
    this.#upstream?.close({ code: isSendable(code) ? code : CLOSE_CODES.goingAway, reason: "" });
    this.#endIfIdle();
  }

  #breakTurns(how: Break): void {
    const turns = this.#turns;
    this.#turns = [];
    for (const turn of turns) turn.break(how);
  }

  #endIfIdle(): void {
    if (this.#turns.length > 0 || this.#isBusy || this.#queue.length > 0) return;
    const { gateway, ended } = this.#options;
    const goingAway = CLOSE_CODES.goingAway;
    if (this.#stopping) this.#client.close({ code: goingAway, reason: "The gateway is stopping" });
    if (!this.#clientGone || this.#ended) return;
    this.#ended = true;
    if (this.#drain !== null) clearTimeout(this.#drain);
    gateway.halt.removeEventListener("abort", this.#onHalt);
    this.#upstream?.close({ code: goingAway, reason: "" });
    gateway.finished.flush();
    ended(this.#responses);
  }
}

/** Another parser must not find a `response.create` in an unbilled message. */
function requireHarmless({ kind, bytes }: Payload, { type }: SocketEvent): void {
  const refuse = (text: string): GatewayError => new GatewayError("bad_request", text, { param: "type" });
  if (kind === "binary" || type === "")
    throw refuse("A message must be a text with one JSON object that has one `type`.");
  const scan = scanMembers(bytes, [], ["type"]);
  if (scan === null || scan.isForeign || scan.spellings !== 1)
    throw refuse(
      "The message names its `type` more than once, in different spellings, or is not strict JSON.",
    );
  if (!PASSED.has(type))
    throw refuse(
      `The gateway does not pass on messages of this type: it could not bill them. It knows ${[CREATE, ...PASSED].join(", ")}.`,
    );
}
