// Sends a request to one channel, and decides whether to try another.

import type { Payer } from "../../billing/ledger/line.ts";
import { FOR_MODELS } from "../../dialects/dialect.ts";
import {
  type Answer,
  type Body,
  readUpTo,
  UpstreamFault,
  type UpstreamResponse,
} from "../../lib/http/upstream.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Gateway } from "../gateway.ts";
import { storeId } from "../intake/client.ts";
import type { Candidate } from "../intake/match.ts";
import type { ChannelResponse, Request } from "../request.ts";
import { decodeAnswer } from "../upstream/decode.ts";
import {
  type Failure,
  blamesChannel,
  failureOf,
  failureOfStatus,
  mayRefuse,
  readFailure,
  type RefusedResponse,
} from "../upstream/failures.ts";
import { resumeBody } from "./answer.ts";
import { type BadBeginning, Beginning, GOOD, type BeginningVerdict } from "./beginning.ts";
import { forward } from "./forward.ts";

/** How an attempt ended. failover.ts has a row for each kind. */
export interface Attempted {
  readonly kind: "answered" | "elsewhere" | "failed" | "broken" | "short" | "left";
  /** `answered` has a failure only if the error says
   *  that the account has no credit. */
  readonly failure: Failure | null;
  readonly answer: ChannelResponse | null;
}

/** Upstreams send short error bodies at once. */
const MAX_ERROR_WAIT_MS = 10_000;
const MAX_ERROR_BYTES = 256 * 1024;
/** Events such as `response.created`, which clients show,
 *  wait at most this long. */
const MAX_PRELUDE_MS = 1000;
/** Clients decide about retries by these fields,
 *  together with the status and the body. */
const REPEATED_FIELDS = new Set(["content-type", "x-should-retry"]);
const MAX_REPEATED_BYTES = 16 * 1024;

export async function attempt(
  r: Request,
  candidate: Candidate,
  isLast: boolean,
  gateway: Gateway,
): Promise<Attempted> {
  const { channel } = candidate;
  let answer: Answer;
  try {
    const sent = (r.upstream = forward(r, candidate, gateway));
    r.upstream = answer = decodeAnswer(await sent.answer);
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) {
      if (r.isTelling) gateway.channels.setTrial(candidate, null);
      throw fault;
    }
    r.upstream.cancel();
    r.attempts.push({ channel: channel.name, error: fault.kind });
    if (fault.kind === "shortage") gateway.raiseShortage(fault.message);
    return { kind: kindOf(fault), failure: failureOf(channel.name, fault), answer: null };
  }
  const { head } = answer;
  if (channel.usesLogin) r.paidBy = readPayer(head);
  r.upstreamRequestId = readRequestId(head, r);
  if (mayRefuse(head.status)) return await judgeRefusal(r, candidate, answer, gateway);
  const [verdict, body] = await judgeBeginning(r, answer, isLast);
  if (verdict.kind !== "good") return refuseBeginning(r, channel.name, head, verdict);
  r.attempts.push({ channel: channel.name, status: head.status });
  return { kind: "answered", failure: null, answer: { response: head, candidate, body } };
}

function kindOf({ kind, sent }: UpstreamFault): "failed" | "broken" | "short" | "left" {
  if (kind === "cancelled" || kind === "withdrawn") return "left";
  if (kind === "shortage") return "short";
  return sent === "yes" ? "broken" : "failed";
}

/** Claude Code (2.1.197) tells by the `unified` fields whether "usage credits" pay. ChatGPT does
 *  not say who pays. If a window is used up and there are credits, we assume they pay. */
function readPayer(head: UpstreamResponse): Payer {
  const { fields, status } = head;
  const unified = (name: string) => fields.get(`anthropic-ratelimit-unified-${name}`) ?? "";
  const isOver = unified("status") === "rejected" && unified("overage-status").startsWith("allowed");
  const codex = (name: string) => fields.get(`x-codex-${name}`) ?? "";
  const windows = ["primary", "secondary"];
  const isUsedUp = windows.some((name) => Number(codex(`${name}-used-percent`)) >= 100);
  const hasCredits = codex("credits-has-credits").toLowerCase() === "true";
  const isBilled = isOver || unified("overage-in-use") === "true" || (isUsedUp && hasCredits);
  return status < 400 && isBilled ? "plan_overage" : "plan";
}

const REQUEST_ID_FIELDS = ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid"];

function readRequestId(head: UpstreamResponse, { secrets }: Request): string | undefined {
  for (const name of REQUEST_ID_FIELDS) {
    const id = storeId(head.fields.get(name));
    if (id !== undefined) return secrets.holds(id) ? undefined : id;
  }
  return undefined;
}

/** An unreadable or late body counts as empty. */
export async function readError({ secrets }: Request, answer: Answer): Promise<Uint8Array> {
  const timer = setTimeout(() => answer.cancel(), MAX_ERROR_WAIT_MS);
  try {
    const body = await readUpTo(answer, MAX_ERROR_BYTES);
    const isCut = body.length >= MAX_ERROR_BYTES || answer.head.closeDelimited;
    return await secrets.maskInTurns(body, isCut);
  } catch (fault) {
    if (fault instanceof UpstreamFault) return new Uint8Array(0);
    throw fault;
  } finally {
    clearTimeout(timer);
  }
}

async function judgeRefusal(
  r: Request,
  candidate: Candidate,
  answer: Answer,
  { now }: Pick<Gateway, "now">,
): Promise<Attempted> {
  const { channel } = candidate;
  const { head } = answer;
  const { status, fields } = head;
  r.attempts.push({ channel: channel.name, status });
  const whole = await readError(r, answer);
  const body = resumeBody(whole.length === 0 ? [] : [asBuffer(whole)]);
  const refusal = { response: head, candidate, body };
  // A refusal of a client's own login says nothing about the channel.
  const isForLogin = channel.usesLogin && status >= 400;
  const text = new TextDecoder().decode(whole);
  const read = isForLogin ? null : readFailure(channel.name, head, text, now());
  if (read === null) {
    const kind = lacksModel(r, candidate, status, text) ? "elsewhere" : "answered";
    return { kind, failure: null, answer: refusal };
  }
  const repeated = fields.copy((name, value) =>
    REPEATED_FIELDS.has(name) && !r.secrets.hasWhole(value) ? name : null,
  );
  const response: RefusedResponse | null =
    whole.length > MAX_REPEATED_BYTES
      ? null
      : { status, dialect: r.upstreamDialect.name, fields: repeated, body: whole };
  const goesOn = blamesChannel(status) || read.cause === "credential";
  return { kind: goesOn ? "failed" : "answered", failure: { ...read, response }, answer: refusal };
}

/** Other 404s are about the path, a file or a stored response. */
function lacksModel({ target }: Request, { model }: Candidate, status: number, text: string): boolean {
  if (status !== 404 || !FOR_MODELS.has(target.endpoint.purpose)) return false;
  const isPage = text.trimStart().startsWith("<");
  // A short name is inside many words.
  const name = RegExp.escape(model ?? "model");
  const named = new RegExp(`model|deployment|(?<![\\w.-])${name}(?![\\w-]|\\.\\w)`, "i");
  return !isPage && named.test(text);
}

function refuseBeginning(
  r: Request,
  channel: string,
  { status }: UpstreamResponse,
  verdict: BadBeginning,
): Attempted {
  r.upstream.cancel();
  if (verdict.kind === "error") {
    r.attempts.push({ channel, status, error: "error_event" });
    const failure = failureOfStatus(channel, verdict.status, r.secrets.maskText(verdict.message));
    return { kind: "failed", failure, answer: null };
  }
  r.attempts.push({ channel, status, error: `${verdict.kind}_body` });
  const what = verdict.kind === "empty" ? "with an empty body" : "with neither JSON nor an event stream";
  return { kind: "failed", failure: failureOfStatus(channel, status, what), answer: null };
}

type Judged = readonly [BeginningVerdict, Body];

function judgeBeginning(
  { target, stream }: Request,
  answer: Answer,
  isLast: boolean,
): Judged | Promise<Judged> {
  const { head, whole } = answer;
  // On the last channel, a stream's head does not wait for the body.
  const isEventStream = head.fields.get("content-type")?.startsWith("text/event-stream") === true;
  const isStream = !isLast && stream;
  const mayBeForeign = FOR_MODELS.has(target.endpoint.purpose) && !(stream && isEventStream);
  if (head.status !== 200 || !(isStream || mayBeForeign)) return [GOOD, answer];
  const beginning = new Beginning(isStream ? "stream" : "any");
  if (whole === undefined) return holdBeginning(answer, beginning);
  return [beginning.add(whole) ?? beginning.conclude(true), answer];
}

async function holdBeginning(answer: Answer, beginning: Beginning): Promise<Judged> {
  const { held, silenceMs } = beginning;
  let until = performance.now() + silenceMs;
  for (;;) {
    const next = answer.read();
    try {
      const chunk = await (silenceMs === Infinity ? next : awaitChunk(next, until));
      if (chunk === "silent") return [beginning.conclude(false), resumeBody(held, answer, next)];
      const verdict = chunk === null ? beginning.conclude(true) : beginning.add(chunk);
      if (verdict !== null) return [verdict, resumeBody(held, answer)];
    } catch (fault) {
      if (!(fault instanceof UpstreamFault)) throw fault;
      // The body broke off: its next reader learns that.
      return [beginning.conclude(false), resumeBody(held, answer, next)];
    }
    if (held.length === 1) until = performance.now() + MAX_PRELUDE_MS;
  }
}

function awaitChunk(next: Promise<Buffer | null>, until: number): Promise<Buffer | null | "silent"> {
  const late = Promise.withResolvers<"silent">();
  const timer = setTimeout(late.resolve, until - performance.now(), "silent");
  return Promise.race([next, late.promise]).finally(() => clearTimeout(timer));
}
