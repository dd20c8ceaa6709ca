// One request to one channel. It judges the beginning of the response: is it for the client, or is another channel tried?
// The socket pushes: each step runs when its bytes have come, and a response that is for the client goes on to deliver/.

import type { Purpose } from "../../dialects/dialect.ts";
import { type FaultKind, UpstreamFault } from "../../lib/http/faults.ts";
import { type BodyListener, type ResponseListener, type UpstreamResponse } from "../../lib/http/upstream.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { failRequest } from "../bill/fail.ts";
import { ConvertedStream } from "../deliver/converted-stream.ts";
import { beginDelivery } from "../deliver/delivery.ts";
import { PassedStream } from "../deliver/passed-stream.ts";
import { answerKnown, WholeResponse } from "../deliver/whole.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { Request } from "../request.ts";
import { type ChannelResponse, isJsonResponse, joinChunks, readRequestId } from "../upstream/answer.ts";
import { type BodyDecoder, openDecoder } from "../upstream/decode.ts";
import {
  blame,
  blameBody,
  mayBlameChannel,
  readFailure,
  type RefusedResponse,
} from "../upstream/failure-rules.ts";
import { readPayer } from "../upstream/login.ts";
import { type Beginning, BodyBeginning, StreamBeginning, type Verdict } from "../upstream/stream-head.ts";
import { type FailedAttempt, Failover } from "./failover.ts";
import { forward } from "./forward.ts";

/** Sends the request to its first channel. */
export function sendRequest(r: Request, gateway: Gateway): void {
  tryNext(r, new Failover(r, gateway), gateway);
}

function tryNext(r: Request, failover: Failover, gateway: Gateway): void {
  const candidate = failover.next();
  if (candidate === null) deliverKnown(r, failover.conclude(), gateway);
  else new Attempt(r, candidate, failover, gateway).start();
}

function deliverKnown(r: Request, { response, candidate, whole }: ChannelResponse, gateway: Gateway): void {
  beginDelivery(r, response, candidate, gateway);
  answerKnown(r, whole, gateway);
}

/** An upstream sends a short error body at once. */
const MAX_ERROR_WAIT_MS = 10_000;
const MAX_ERROR_BYTES = 256 * 1024;

/** Stop holding a stream of which nothing has come after this. */
const MAX_SILENCE_MS = 5000;
/** How much longer to hold a stream once a prelude event has come: clients show that event. */
const MAX_PRELUDE_MS = 1000;
/** Clients decide about retries by these, by the status and by the body. */
const REPEATED_FIELDS = new Set(["content-type", "x-should-retry"]);
const MAX_REPEATED_BYTES = 16 * 1024;

const GENERATING: ReadonlySet<Purpose> = new Set<Purpose>(["generate", "embed", "count"]);

/** For what comes after the response has been decided on. */
const NOBODY: BodyListener = { receive: () => {}, end: () => {}, fail: () => {} };

class Attempt implements ResponseListener {
  readonly #r: Request;
  readonly #candidate: Candidate;
  readonly #failover: Failover;
  readonly #gateway: Gateway;
  readonly #isLast: boolean;
  readonly #started = performance.now();
  #response: UpstreamResponse | null = null;
  /** Gets the bytes as they came, if they have a content coding. */
  #decoder: BodyDecoder | null = null;
  /** Gets the body: what reads a refusal, what judges a beginning, or what delivers it. Null before the head. */
  #receiver: BodyListener | null = null;
  #isForClient = false;
  #timer: Timer | null = null;

  constructor(r: Request, candidate: Candidate, failover: Failover, gateway: Gateway) {
    this.#r = r;
    this.#candidate = candidate;
    this.#failover = failover;
    this.#gateway = gateway;
    this.#isLast = failover.isLast;
  }

  start(): void {
    const r = this.#r;
    const candidate = this.#candidate;
    try {
      const { leftMs } = this.#failover;
      r.upstream = forward(r, { candidate, leftMs, listener: this }, this.#gateway);
    } catch (thrown) {
      if (r.open) this.#gateway.channels.reportLeft(this.#candidate);
      throw thrown;
    }
  }

  // Called by the HTTP client. What fails inside ends this request, and nothing else.

  begin(response: UpstreamResponse): void {
    this.#try(() => {
      const r = this.#r;
      this.#decoder = openDecoder(response);
      if (this.#decoder === null) return this.#begin(response);
      this.#decoder.start(r.upstream, {
        receive: (bytes) => this.#take(bytes),
        end: () => this.#finish(),
        fail: (fault) => this.#break(fault),
      });
      r.upstream = this.#decoder;
      this.#begin(this.#decoder.response);
    });
  }

  resent(): void {
    this.#noteFault("reset");
  }

  receive(bytes: Buffer): void {
    if (this.#decoder === null) this.#take(bytes);
    else this.#decoder.receive(bytes);
  }

  end(): void {
    if (this.#decoder === null) this.#finish();
    else this.#decoder.end();
  }

  fail(fault: UpstreamFault): void {
    if (this.#decoder === null) this.#break(fault);
    else this.#decoder.fail(fault);
  }

  // The body without its content coding.

  #take(bytes: Buffer): void {
    this.#try(() => this.#receiver?.receive(bytes));
  }

  #finish(): void {
    this.#try(() => this.#receiver?.end());
  }

  #break(fault: UpstreamFault): void {
    this.#try(() => {
      if (this.#receiver === null) this.#loseTo(fault);
      else this.#receiver.fail(fault);
    });
  }

  // Steps.

  #try(step: () => void): void {
    try {
      step();
    } catch (thrown) {
      this.#crash(thrown);
    }
  }

  #crash(thrown: unknown): void {
    this.#stop();
    if (!(thrown instanceof UpstreamFault) || this.#isForClient)
      return failRequest(this.#r, thrown, this.#gateway);
    this.#r.upstream.cancel();
    try {
      this.#loseTo(thrown);
    } catch (error) {
      failRequest(this.#r, error, this.#gateway);
    }
  }

  /** What still comes is for nobody. */
  #stop(): void {
    this.#decoder = null;
    this.#receiver = NOBODY;
    this.#wait(null, () => {});
  }

  #wait(ms: number | null, expire: () => void): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = ms === null ? null : setTimeout(() => this.#try(expire), ms);
  }

  #begin(response: UpstreamResponse): void {
    const r = this.#r;
    const { status } = response;
    this.#response = response;
    if (this.#candidate.channel.usesLogin) r.paidBy = readPayer(response);
    r.upstreamRequestId = readRequestId(response, this.#r.secrets);
    if (status === 404 || mayBlameChannel(status)) {
      this.#note(status);
      this.#receiver = this.#readRefusal();
      this.#wait(Math.min(this.#failover.leftMs, MAX_ERROR_WAIT_MS), () => r.upstream.cancel());
    } else if (!this.#isLast && r.stream && status === 200) {
      this.#judgeBody(new StreamBeginning(r.dialect), MAX_SILENCE_MS);
    } else if (status === 200 && this.#mayBeForeign(response)) {
      this.#judgeBody(new BodyBeginning(), null);
    } else {
      this.#accept([]);
    }
  }

  /** These endpoints respond with JSON or an event stream. The head of an event stream is not held until its body comes. */
  #mayBeForeign(response: UpstreamResponse): boolean {
    const { target, stream } = this.#r;
    const isEventStream = response.field("content-type")?.startsWith("text/event-stream") === true;
    return GENERATING.has(target.endpoint.purpose) && !(stream && isEventStream);
  }

  /** Holds the beginning of the body until it can be judged, or for `ms` of silence. */
  #judgeBody(beginning: Beginning, ms: number | null): void {
    const conclude = (hasEnded: boolean): void => this.#judge(beginning.conclude(hasEnded), beginning.held);
    this.#receiver = {
      receive: (bytes) => {
        const verdict = beginning.add(bytes);
        if (verdict !== null) this.#judge(verdict, beginning.held);
        else if (this.#timer !== null && beginning.held.length === 1)
          this.#wait(MAX_PRELUDE_MS, () => conclude(false));
      },
      end: () => {
        conclude(true);
        this.#receiver?.end();
      },
      // What has begun well is for the client, who gets as much as there is.
      fail: (fault) => {
        conclude(false);
        this.#receiver?.fail(fault);
      },
    };
    this.#wait(ms, () => conclude(false));
  }

  #judge(verdict: Verdict, held: readonly Buffer[]): void {
    if (verdict.kind === "good") return this.#accept(held);
    const { channel } = this.#candidate;
    const { status } = this.#begun;
    this.#stop();
    this.#r.upstream.cancel();
    if (verdict.kind === "error") {
      this.#note(status, "error_event");
      const failure = blame(channel.name, verdict.status, verdict.message);
      this.#lose({ failure: this.#r.secrets.removeIn(failure), answer: null });
    } else {
      this.#note(status, `${verdict.kind}_body`);
      this.#lose({ failure: blameBody(channel.name, status, verdict.kind), answer: null });
    }
  }

  /** The response is for the client. */
  #accept(held: readonly Buffer[]): void {
    const r = this.#r;
    const response = this.#begun;
    this.#wait(null, () => {});
    this.#isForClient = true;
    this.#note(response.status);
    this.#failover.reportAnswer(this.#candidate, performance.now() - this.#started);
    beginDelivery(r, response, this.#candidate, this.#gateway);
    this.#receiver = openReceiver(r, response, this.#gateway);
    for (const chunk of held) this.#receiver.receive(chunk);
  }

  #readRefusal(): BodyListener {
    const chunks: Buffer[] = [];
    let size = 0;
    return {
      receive: (bytes) => {
        chunks.push(bytes);
        size += bytes.length;
        if (size >= MAX_ERROR_BYTES) this.#refuse(joinChunks(chunks), true);
      },
      end: () => this.#refuse(joinChunks(chunks)),
      // A body that cannot be read, or has not come in time, counts as empty.
      fail: () => this.#refuse(new Uint8Array(0)),
    };
  }

  /** The upstream refused. Its error body shows whether that is about the channel or about the request. */
  #refuse(body: Uint8Array, isCut = false): void {
    const candidate = this.#candidate;
    const { channel } = candidate;
    const response = this.#begun;
    this.#stop();
    if (isCut) this.#r.upstream.cancel();
    const whole = this.#r.secrets.removeFrom(body);
    const { dialect } = this.#r;
    // What a client's own login is refused says nothing about the channel.
    const isForLogin = channel.usesLogin && response.status >= 400;
    const read = isForLogin
      ? null
      : readFailure(channel.name, response, whole, { dialect, now: this.#gateway.now() });
    const failure = read && {
      ...this.#r.secrets.removeIn(read),
      response: this.#keepResponse(response, whole),
    };
    const answer = { response, candidate, whole };
    if (failure !== null || this.#mayBeElsewhere(answer)) return this.#lose({ failure, answer });
    this.#failover.reportAnswer(candidate, performance.now() - this.#started);
    deliverKnown(this.#r, answer, this.#gateway);
  }

  #keepResponse({ status, fields }: UpstreamResponse, body: Uint8Array): RefusedResponse | null {
    if (body.length > MAX_REPEATED_BYTES) return null;
    const repeated = fields.copy((name) => (REPEATED_FIELDS.has(name) ? name : null));
    const dialect = this.#r.dialect.name;
    return { status, dialect, fields: this.#r.secrets.cleanFields(repeated), body };
  }

  /** Stored responses are known only to the channel that made them, and not every channel has every model. */
  #mayBeElsewhere({ response, whole }: ChannelResponse): boolean {
    if (this.#isLast && !this.#failover.hasBetter) return false;
    const { purpose } = this.#r.target.endpoint;
    if (response.status === 404) return purpose === "resource" || GENERATING.has(purpose);
    const body = asBuffer(whole);
    return body.includes('"previous_response_not_found"') || body.includes('"model_not_found"');
  }

  #loseTo(fault: UpstreamFault): void {
    const channel = this.#candidate.channel.name;
    this.#stop();
    this.#noteFault(fault.kind);
    if (fault.kind === "shortage") this.#gateway.raiseShortage(fault.message);
    this.#lose({ failure: { kind: "fault", channel, fault }, answer: null });
  }

  #lose(failed: FailedAttempt): void {
    const goesOn = this.#failover.reportFailure(this.#candidate, failed, performance.now() - this.#started);
    if (goesOn) tryNext(this.#r, this.#failover, this.#gateway);
    else deliverKnown(this.#r, this.#failover.conclude(), this.#gateway);
  }

  #note(status: number, error?: string): void {
    const channel = this.#candidate.channel.name;
    this.#r.attempts.push(error === undefined ? { channel, status } : { channel, status, error });
  }

  /** There was no response. */
  #noteFault(error: FaultKind): void {
    this.#r.attempts.push({ channel: this.#candidate.channel.name, error });
  }

  get #begun(): UpstreamResponse {
    if (this.#response === null) throw new Error("the response has not begun");
    return this.#response;
  }
}

function openReceiver(r: Request, response: UpstreamResponse, gateway: Gateway): BodyListener {
  const { bridge } = r;
  if (!r.streamed) return new WholeResponse(r, gateway);
  if (bridge === null) return new PassedStream(r, gateway);
  // Some upstreams always send a stream, and some a whole response where a stream was requested.
  if (!r.stream || isJsonResponse(response)) return new WholeResponse(r, gateway);
  return new ConvertedStream(r, bridge, gateway);
}
