// Tries the channels in their order until one responds. This ends before the first byte of a response reaches the
// client; delivery/relay.ts does the rest.

import { UpstreamFault, type UpstreamResponse } from "../../lib/http1/types.ts";
import {
  type ChannelResponse,
  isJsonResponse,
  readErrorBody,
  readRequestId,
  repeatResponse,
} from "../upstream/answer.ts";
import type { Purpose } from "../../dialects/dialect.ts";
import type { Bill } from "../bill/bill.ts";
import type { Job } from "../upstream/job.ts";
import { decodeResponse } from "../upstream/decode.ts";
import { forward } from "./forward.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import { type BodyStart, judgeWhole, readBodyStart, readStreamHead } from "../upstream/stream-head.ts";
import { redactErrorBody, redactFailure, redactFields } from "../upstream/redact.ts";
import {
  blame,
  blameBody,
  describeFailure,
  type Failure,
  isForClient,
  isShortage,
  mayBlameChannel,
  readFailure,
  type RefusedResponse,
} from "../upstream/failure-rules.ts";

type FailedAttempt =
  | {
      readonly failure: Failure;
      /** The upstream's response, if there is one that a client can get. */
      readonly answer: ChannelResponse | null;
    }
  /** The channel works, but another one may have the model, or what the client refers to. */
  | { readonly failure: null; readonly answer: ChannelResponse };

type StartedAnswer = ChannelResponse | FailedAttempt;

/** One request to one channel, and its circumstances. */
interface Attempt {
  readonly job: Job;
  readonly candidate: Candidate;
  readonly bill: Bill;
  readonly gateway: Gateway;
  /** How long the whole job may still take. */
  readonly leftMs: number;
  /** No other channel can be tried after this one. */
  readonly isLast: boolean;
}

export async function failover(job: Job, bill: Bill, gateway: Gateway): Promise<ChannelResponse> {
  const { channels, catalog } = gateway;
  const choice = channels.choose(job, bill.match, gateway.now());
  const most = Math.min(catalog.failover.attempts, choice.candidates.length);
  const deadline = performance.now() + catalog.failover.totalMs;
  let last: FailedAttempt | null = null;
  let tried = 0;
  for (const candidate of choice.candidates) {
    const leftMs = deadline - performance.now();
    if (tried >= most || leftMs <= 0) break;
    // A cooldown may have begun while another channel was tried.
    if (last !== null && !channels.admits(candidate, gateway.now())) continue;
    const isLast = ++tried === most;
    const attempt: Attempt = { job, candidate, bill, gateway, leftMs, isLast };
    reportStart(attempt);
    const started = performance.now();
    const result = await send(attempt);
    // Requests that are not billed say little about a channel, because not every upstream serves them.
    if (bill.open) reportResult(attempt, result, performance.now() - started);
    if (!("failure" in result)) {
      if (bill.open) channels.keepConversation(choice, candidate, job, bill.match);
      return result;
    }
    last = result;
    if (endsJob(result.failure)) break;
  }
  return last === null ? repeatFailure(job, bill, gateway) : concludeFailure(last);
}

/** All channels failed. The client gets the last response, or an error of the gateway. */
function concludeFailure(last: FailedAttempt): ChannelResponse {
  if (last.failure === null) return last.answer;
  const { failure, answer } = last;
  if (answer !== null && failure.kind === "status" && isForClient(failure)) return answer;
  throw describeFailure(failure);
}

/** No channel can be tried now. If there is only one, the client gets its last error again, with the remaining time. */
function repeatFailure(job: Job, bill: Bill, { channels, now }: Gateway): ChannelResponse {
  const [candidate] = bill.match.candidates;
  const only = channels.findOnlyFailure(bill.match, now());
  if (only?.failure.kind !== "status" || candidate === undefined)
    throw channels.explainNone(bill.match, now());
  const { failure, waitMs } = only;
  if (!isForClient(failure)) throw describeFailure({ ...failure, waitMs });
  if (failure.response?.dialect !== job.dialect.name) throw channels.explainNone(bill.match, now());
  return repeatResponse(failure.response, candidate, waitMs);
}

/** Nothing more is sent if the client has disconnected or the upstream had begun to respond. */
function endsJob(failure: Failure | null): boolean {
  return failure?.kind === "fault" && (hasLeft(failure) || failure.fault.answered);
}

function hasLeft(failure: Failure): boolean {
  return (
    failure.kind === "fault" && (failure.fault.kind === "cancelled" || failure.fault.kind === "withdrawn")
  );
}

function reportStart({ candidate, bill, gateway }: Attempt): void {
  const isFirst = bill.attempts.length === 0;
  const isNamed = isFirst && candidate === bill.match.candidates[0];
  if (bill.open && !isNamed) gateway.ledger.attempt(bill.call.id, candidate.channel.name, isFirst);
  if (bill.open) gateway.channels.reportStart(candidate, gateway.now());
  bill.requested = candidate.model;
}

function reportResult({ candidate, gateway }: Attempt, result: StartedAnswer, ms: number): void {
  const { channels } = gateway;
  if (!("failure" in result) || result.failure === null) {
    channels.reportAnswer(candidate, ms, gateway.now());
  } else if (hasLeft(result.failure) || isShortage(result.failure)) {
    channels.reportLeft(candidate);
  } else {
    channels.reportFailure(candidate, result.failure, gateway.now());
  }
}

async function send(attempt: Attempt): Promise<StartedAnswer> {
  const { job, candidate, bill, gateway } = attempt;
  const { name } = candidate.channel;
  bill.upstreamRequestId = undefined;
  try {
    const onResend = (): void => void bill.attempts.push({ channel: name, error: "reset" });
    const sent = forward(job, candidate, gateway, { leftMs: attempt.leftMs, onResend });
    job.running = sent;
    const response = decodeResponse(await sent.head);
    job.running = response;
    bill.upstreamRequestId = readRequestId(response, candidate.channel);
    const answer: ChannelResponse = { response, candidate, whole: null };
    if (response.status === 404 || mayBlameChannel(response.status))
      return await readRefusal(attempt, answer);
    if (!attempt.isLast && job.body.stream && response.status === 200) return await readHead(attempt, answer);
    if (response.status === 200 && mayBeForeign(attempt, response)) return await checkStart(attempt, answer);
    bill.attempts.push({ channel: name, status: response.status });
    return answer;
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) {
      if (bill.open) gateway.channels.reportLeft(candidate);
      throw fault;
    }
    bill.attempts.push({ channel: name, error: fault.kind });
    if (fault.kind === "shortage") gateway.raiseShortage(fault.message);
    return { failure: { kind: "fault", channel: name, fault }, answer: null };
  }
}

/** The upstream refused. Its error body shows whether that is about the channel or about the request. */
async function readRefusal(attempt: Attempt, answer: ChannelResponse): Promise<StartedAnswer> {
  const { job, candidate, bill, gateway } = attempt;
  const { channel } = candidate;
  const { response } = answer;
  bill.attempts.push({ channel: channel.name, status: response.status });
  const whole = redactErrorBody(await readErrorBody(response, attempt.leftMs), channel);
  const read = readFailure(channel.name, response, whole, { dialect: job.dialect, now: gateway.now() });
  const failure = read && {
    ...redactFailure(read, channel),
    response: keepResponse(attempt, response, whole),
  };
  const refusal = { ...answer, whole };
  return failure !== null || mayBeElsewhere(attempt, refusal) ? { failure, answer: refusal } : refusal;
}

/** Clients decide about retries by these, by the status and by the body. */
const REPEATED_FIELDS = new Set(["content-type", "x-should-retry"]);
const MAX_REPEATED_BYTES = 16 * 1024;

function keepResponse(
  { job, candidate }: Attempt,
  { status, fields }: UpstreamResponse,
  body: Uint8Array,
): RefusedResponse | null {
  if (body.length > MAX_REPEATED_BYTES) return null;
  const repeated = fields.filter(([name]) => REPEATED_FIELDS.has(name));
  return {
    status,
    dialect: job.dialect.name,
    fields: redactFields(repeated, candidate.channel, status),
    body,
  };
}

/** Stored responses are known only to the channel that made them, and not every channel has every model. */
function mayBeElsewhere({ job, isLast }: Attempt, { response, whole }: ChannelResponse): boolean {
  if (isLast || whole === null) return false;
  const { purpose } = job.call.target.endpoint;
  if (response.status === 404) return purpose === "resource" || GENERATING.has(purpose);
  const body = Buffer.from(whole);
  return body.includes('"previous_response_not_found"') || body.includes('"model_not_found"');
}

/** If the first real event of a stream is an error, another channel may succeed. */
async function readHead(attempt: Attempt, answer: ChannelResponse): Promise<StartedAnswer> {
  const { candidate, bill } = attempt;
  const { name } = candidate.channel;
  const { status } = answer.response;
  const { response, first, start } = await readStreamHead(answer.response, attempt.job.dialect);
  if (start === "empty" || start === "foreign") return refuseForeign(attempt, response, start);
  if (typeof first === "string") {
    bill.attempts.push({ channel: name, status });
    return { ...answer, response };
  }
  response.cancel();
  bill.attempts.push({ channel: name, status, error: "error_event" });
  const failure = redactFailure(blame(name, first.status, first.message), candidate.channel);
  return { failure, answer: null };
}

const GENERATING: ReadonlySet<Purpose> = new Set<Purpose>(["generate", "embed", "count"]);

/** These endpoints respond with JSON or an event stream. The head of an event stream is not held until its body comes. */
function mayBeForeign({ job }: Attempt, response: UpstreamResponse): boolean {
  const isEventStream = response.field("content-type")?.startsWith("text/event-stream") === true;
  return GENERATING.has(job.call.target.endpoint.purpose) && !(job.body.stream && isEventStream);
}

/** A short response has mostly arrived whole, and then nothing has to wait. */
function checkStart(attempt: Attempt, answer: ChannelResponse): StartedAnswer | Promise<StartedAnswer> {
  const { response } = answer;
  const mayStream = attempt.job.body.stream || !isJsonResponse(response);
  const whole = mayStream ? null : response.takeBuffered();
  if (whole === null) return readStart(attempt, answer);
  return judgeStart(attempt, { ...answer, whole }, judgeWhole(whole));
}

async function readStart(attempt: Attempt, answer: ChannelResponse): Promise<StartedAnswer> {
  const { response, start } = await readBodyStart(answer.response);
  return judgeStart(attempt, { ...answer, response }, start);
}

/** A captive portal or a proxy may send a page with 200. */
function judgeStart(attempt: Attempt, answer: ChannelResponse, start: BodyStart): StartedAnswer {
  const { response, candidate } = answer;
  if (start === "empty" || start === "foreign") return refuseForeign(attempt, response, start);
  attempt.bill.attempts.push({ channel: candidate.channel.name, status: response.status });
  return answer;
}

function refuseForeign(
  { bill, candidate }: Attempt,
  response: UpstreamResponse,
  start: "empty" | "foreign",
): FailedAttempt {
  const { name } = candidate.channel;
  response.cancel();
  bill.attempts.push({ channel: name, status: response.status, error: `${start}_body` });
  return { failure: blameBody(name, response.status, start), answer: null };
}
