// One request to one channel. It judges the beginning of the response: is it for the client, or is another channel tried?

import type { Purpose } from "../../dialects/dialect.ts";
import {
  type Answer,
  type Body,
  readUpTo,
  type SentRequest,
  UpstreamFault,
  type UpstreamResponse,
} from "../../lib/http/upstream.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { Request } from "../request.ts";
import { type ChannelResponse, knownResponse, readRequestId, resumeBody } from "../upstream/answer.ts";
import { decodeAnswer } from "../upstream/decode.ts";
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

/** An upstream sends a short error body at once. */
const MAX_ERROR_WAIT_MS = 10_000;
const MAX_ERROR_BYTES = 256 * 1024;

/** How much longer to hold a stream once a prelude event has come: clients show that event. */
const MAX_PRELUDE_MS = 1000;
/** Clients decide about retries by these, by the status and by the body. */
const REPEATED_FIELDS = new Set(["content-type", "x-should-retry"]);
const MAX_REPEATED_BYTES = 16 * 1024;

const GENERATING: ReadonlySet<Purpose> = new Set<Purpose>(["generate", "embed", "count"]);

/** Sends the request to its channels, one after the other, until one gives a response for the client. */
export async function sendRequest(r: Request, gateway: Gateway): Promise<ChannelResponse> {
  const failover = new Failover(r, gateway);
  for (let candidate = failover.next(); candidate !== null; candidate = failover.next()) {
    const response = await new Attempt(r, candidate, failover, gateway).run();
    if (response !== null) return response;
  }
  return failover.conclude();
}

class Attempt {
  readonly #r: Request;
  readonly #candidate: Candidate;
  readonly #failover: Failover;
  readonly #gateway: Gateway;
  readonly #started = performance.now();

  constructor(r: Request, candidate: Candidate, failover: Failover, gateway: Gateway) {
    this.#r = r;
    this.#candidate = candidate;
    this.#failover = failover;
    this.#gateway = gateway;
  }

  /** Null: the response is not for the client. */
  async run(): Promise<ChannelResponse | null> {
    const r = this.#r;
    const answer = await this.#send();
    if (answer === null) return null;
    const { head } = answer;
    if (this.#candidate.channel.usesLogin) r.paidBy = readPayer(head);
    r.upstreamRequestId = readRequestId(head, r.secrets);
    if (head.status === 404 || mayBlameChannel(head.status)) return await this.#readRefusal(answer);
    const [verdict, body] = await judgeBeginning(answer, this.#openBeginning(head));
    if (verdict.kind !== "good") return this.#loseTo(verdict, head.status);
    this.#note({ status: head.status });
    this.#reportAnswer();
    return { response: head, candidate: this.#candidate, body };
  }

  /** Null: there is no response. */
  async #send(): Promise<Answer | null> {
    const r = this.#r;
    const candidate = this.#candidate;
    try {
      const { leftMs } = this.#failover;
      const sent = this.#forward(leftMs);
      r.upstream = sent;
      return decodeAnswer(await sent.answer);
    } catch (fault) {
      if (!(fault instanceof UpstreamFault)) throw fault;
      r.upstream.cancel();
      this.#note({ error: fault.kind });
      if (fault.kind === "shortage") this.#gateway.raiseShortage(fault.message);
      return this.#lose({ failure: { kind: "fault", channel: candidate.channel.name, fault }, answer: null });
    }
  }

  #forward(leftMs: number): SentRequest {
    try {
      return forward(this.#r, { candidate: this.#candidate, leftMs }, this.#gateway);
    } catch (thrown) {
      if (this.#r.open) this.#gateway.channels.reportLeft(this.#candidate);
      throw thrown;
    }
  }

  /** What has to be held of a body until it can be judged; null: nothing. */
  #openBeginning(head: UpstreamResponse): Beginning | null {
    const { dialect, stream } = this.#r;
    if (head.status !== 200) return null;
    if (!this.#failover.isLast && stream) return new StreamBeginning(dialect);
    return this.#mayBeForeign(head) ? new BodyBeginning() : null;
  }

  /** These endpoints respond with JSON or an event stream. The head of an event stream is not held until its body comes. */
  #mayBeForeign(head: UpstreamResponse): boolean {
    const { target, stream } = this.#r;
    const isEventStream = head.field("content-type")?.startsWith("text/event-stream") === true;
    return GENERATING.has(target.endpoint.purpose) && !(stream && isEventStream);
  }

  #loseTo(verdict: Exclude<Verdict, { kind: "good" }>, status: number): null {
    const { name } = this.#candidate.channel;
    this.#r.upstream.cancel();
    if (verdict.kind === "error") {
      this.#note({ status, error: "error_event" });
      const failure = blame(name, verdict.status, verdict.message);
      return this.#lose({ failure: this.#r.secrets.removeIn(failure), answer: null });
    }
    this.#note({ status, error: `${verdict.kind}_body` });
    return this.#lose({ failure: blameBody(name, status, verdict.kind), answer: null });
  }

  /** The upstream refused. Its error body shows whether that is about the channel or about the request. */
  async #readRefusal(answer: Answer): Promise<ChannelResponse | null> {
    const { head } = answer;
    const { channel } = this.#candidate;
    this.#note({ status: head.status });
    const whole = this.#r.secrets.removeFrom(await this.#readError(answer));
    const { dialect } = this.#r;
    // What a client's own login is refused says nothing about the channel.
    const isForLogin = channel.usesLogin && head.status >= 400;
    const read = isForLogin
      ? null
      : readFailure(channel.name, head, whole, { dialect, now: this.#gateway.now() });
    const failure = read && {
      ...this.#r.secrets.removeIn(read),
      response: this.#keepResponse(head, whole),
    };
    const response = knownResponse(head, this.#candidate, whole);
    if (failure !== null || this.#mayBeElsewhere(head, whole))
      return this.#lose({ failure, answer: response });
    this.#reportAnswer();
    return response;
  }

  /** A body that cannot be read, or has not come in time, counts as empty. */
  async #readError(answer: Answer): Promise<Uint8Array> {
    const waitMs = Math.min(this.#failover.leftMs, MAX_ERROR_WAIT_MS);
    const timer = setTimeout(() => answer.cancel(), waitMs);
    const { bytes, fault } = await readUpTo(answer, MAX_ERROR_BYTES);
    clearTimeout(timer);
    return fault === null ? bytes : new Uint8Array(0);
  }

  #keepResponse({ status, fields }: UpstreamResponse, body: Uint8Array): RefusedResponse | null {
    if (body.length > MAX_REPEATED_BYTES) return null;
    const repeated = fields.copy((name) => (REPEATED_FIELDS.has(name) ? name : null));
    const dialect = this.#r.dialect.name;
    return { status, dialect, fields: this.#r.secrets.cleanFields(repeated), body };
  }

  /** Stored responses are known only to the channel that made them, and not every channel has every model. */
  #mayBeElsewhere({ status }: UpstreamResponse, whole: Uint8Array): boolean {
    if (this.#failover.isLast && !this.#failover.hasBetter) return false;
    const { purpose } = this.#r.target.endpoint;
    if (status === 404) return purpose === "resource" || GENERATING.has(purpose);
    const body = asBuffer(whole);
    return body.includes('"previous_response_not_found"') || body.includes('"model_not_found"');
  }

  #reportAnswer(): void {
    this.#failover.reportAnswer(this.#candidate, performance.now() - this.#started);
  }

  #lose(failed: FailedAttempt): null {
    this.#failover.reportFailure(this.#candidate, failed, performance.now() - this.#started);
    return null;
  }

  #note(what: { readonly status?: number; readonly error?: string }): void {
    this.#r.attempts.push({ channel: this.#candidate.channel.name, ...what });
  }
}

/** Holds the beginning of the body until it can be judged, or nothing has come for too long. What has begun well is for the
 *  client, who gets as much as there is. */
async function judgeBeginning(answer: Answer, beginning: Beginning | null): Promise<[Verdict, Body]> {
  if (beginning === null) return [{ kind: "good" }, answer];
  let until = performance.now() + beginning.silenceMs;
  for (;;) {
    const next = answer.read();
    const chunk = await awaitChunk(next, until);
    if (chunk === "silent") return [beginning.conclude(false), resumeBody(beginning.held, answer, next)];
    const verdict = chunk === null ? beginning.conclude(true) : beginning.add(chunk);
    if (verdict !== null) return [verdict, resumeBody(beginning.held, answer)];
    if (beginning.held.length === 1 && until !== Infinity) until = performance.now() + MAX_PRELUDE_MS;
  }
}

/** "silent": nothing has come by then, or the body has broken off. Its next reader learns of that. */
async function awaitChunk(next: Promise<Buffer | null>, until: number): Promise<Buffer | null | "silent"> {
  const late = Promise.withResolvers<"silent">();
  const resolve = (): void => late.resolve("silent");
  const timer = until === Infinity ? undefined : setTimeout(resolve, until - performance.now());
  try {
    return await Promise.race([next, late.promise]);
  } catch (fault) {
    if (fault instanceof UpstreamFault) return "silent";
    throw fault;
  } finally {
    clearTimeout(timer);
  }
}
