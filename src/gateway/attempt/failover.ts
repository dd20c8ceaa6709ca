// The attempt loop: channels in their order until one answers. Only before the
// first byte of an answer reaches the client: what comes after it is relay.ts's.

import { UpstreamFault } from "../../lib/http1/types.ts";
import { type ChannelResponse, readErrorBody } from "../upstream/answer.ts";
import type { Bill } from "../bill/bill.ts";
import type { Job } from "../upstream/job.ts";
import { forward } from "./forward.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import { readStreamHead } from "../upstream/stream-head.ts";
import { redactError, redactFailure } from "../upstream/redact.ts";
import {
  blame,
  describeFailure,
  type Failure,
  isShortage,
  mayBlameChannel,
  readFailure,
} from "../upstream/failure-rules.ts";

type FailedAttempt =
  | {
      readonly failure: Failure;
      /** What the upstream said, when it said something that a client can be told. */
      readonly answer: ChannelResponse | null;
    }
  /** Nothing is wrong, but what is asked for may be kept on another channel. */
  | { readonly failure: null; readonly answer: ChannelResponse };

/** One channel's turn. */
interface Attempt {
  readonly job: Job;
  readonly candidate: Candidate;
  readonly bill: Bill;
  readonly gateway: Gateway;
  /** Until the whole job is given up. */
  readonly leftMs: number;
  /** Another channel could be tried after this one. */
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
    // While another one was asked it may have come to rest.
    if (last !== null && !channels.admits(candidate, gateway.now())) continue;
    const isLast = ++tried === most;
    const attempted = await attempt({ job, candidate, bill, gateway, leftMs, isLast });
    if (!("failure" in attempted)) {
      if (bill.open) channels.keepConversation(choice, candidate, job, bill.match);
      return attempted;
    }
    last = attempted;
    if (endsJob(attempted.failure)) break;
  }
  if (last === null) throw channels.explainNone(bill.match, gateway.now());
  return concede(last);
}

/** No channel has answered: what the last one said is for the client, or makes it the gateway's error. */
function concede(last: FailedAttempt): ChannelResponse {
  if (last.failure === null) return last.answer;
  if (last.answer?.response.status === 429) return last.answer;
  throw describeFailure(last.failure);
}

/** The client has left, or the upstream had begun to answer: nothing more is sent. */
function endsJob(failure: Failure | null): boolean {
  return failure?.kind === "fault" && (hasLeft(failure) || failure.fault.answered);
}

function hasLeft(failure: Failure): boolean {
  return (
    failure.kind === "fault" && (failure.fault.kind === "cancelled" || failure.fault.kind === "withdrawn")
  );
}

async function attempt(turn: Attempt): Promise<ChannelResponse | FailedAttempt> {
  const { candidate, bill, gateway } = turn;
  const { channels } = gateway;
  const isElsewhere = bill.attempts.length > 0 || candidate !== bill.match.candidates[0];
  if (bill.open && isElsewhere) gateway.ledger.attempt(bill.call.id, candidate.channel.name);
  if (bill.open) channels.reportStart(candidate, gateway.now());
  bill.requested = candidate.model;
  const started = performance.now();
  const attempted = await send(turn);
  // What is not billed says little of a channel: not every upstream serves it.
  if (!bill.open) return attempted;
  if (!("failure" in attempted) || attempted.failure === null) {
    channels.reportAnswer(candidate, performance.now() - started, gateway.now());
  } else if (hasLeft(attempted.failure) || isShortage(attempted.failure)) {
    channels.reportLeft(candidate);
  } else {
    channels.reportFailure(candidate, attempted.failure, gateway.now());
  }
  return attempted;
}

async function send(turn: Attempt): Promise<ChannelResponse | FailedAttempt> {
  const { job, candidate, bill, gateway } = turn;
  const { name } = candidate.channel;
  try {
    const onResend = (): void => void bill.attempts.push({ channel: name, error: "reset" });
    const response = await forward(job, candidate, gateway, { leftMs: turn.leftMs, onResend });
    const answer: ChannelResponse = { response, candidate, whole: null };
    if (response.status === 404 || mayBlameChannel(response.status)) return await readRefusal(turn, answer);
    if (!turn.isLast && job.body.stream && response.status === 200) return await lookAhead(turn, answer);
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

/** The upstream refuses: the channel, or only the request? */
async function readRefusal(turn: Attempt, answer: ChannelResponse): Promise<ChannelResponse | FailedAttempt> {
  const { candidate, bill, gateway } = turn;
  const { channel } = candidate;
  const { response } = answer;
  bill.attempts.push({ channel: channel.name, status: response.status });
  const whole = redactError(await readErrorBody(response, turn.leftMs), channel);
  const read = readFailure(channel.name, response, whole, gateway.now());
  const failure = read && redactFailure(read, channel);
  const told = { ...answer, whole };
  return failure !== null || isKeptElsewhere(turn, told) ? { failure, answer: told } : told;
}

/** Responses are stored by the channel that made them, and no other knows them. */
function isKeptElsewhere({ job, isLast }: Attempt, { response, whole }: ChannelResponse): boolean {
  if (isLast || whole === null) return false;
  const { purpose } = job.call.target.endpoint;
  if (purpose === "resource") return response.status === 404;
  return Buffer.from(whole).includes('"previous_response_not_found"');
}

/** A stream whose first real event is an error is none: another channel may do better. */
async function lookAhead(
  { candidate, bill }: Attempt,
  answer: ChannelResponse,
): Promise<ChannelResponse | FailedAttempt> {
  const { name } = candidate.channel;
  const { status } = answer.response;
  const { response, first } = await readStreamHead(answer.response);
  if (typeof first === "string") {
    bill.attempts.push({ channel: name, status });
    return { ...answer, response };
  }
  response.cancel();
  bill.attempts.push({ channel: name, status, error: "error_event" });
  const failure = redactFailure(blame(name, first.status, first.message), candidate.channel);
  return { failure, answer: null };
}
