// The attempt loop: channels in their order until one answers. Only before the
// first byte of an answer reaches the client: what comes after it is relay.ts's.

import { UpstreamFault } from "../lib/http1/types.ts";
import { type Answer, readErrorBody } from "./answer.ts";
import type { Bill } from "./bill.ts";
import type { Errand } from "./errand.ts";
import { forward } from "./forward.ts";
import type { Gateway } from "./gateway.ts";
import type { Candidate } from "./match.ts";
import { peek } from "./peek.ts";
import { redactError, redactFailure } from "./redact.ts";
import { blame, describeFailure, type Failure, isShortage, mayBlameChannel, readFailure } from "./verdict.ts";

type Failed =
  | {
      readonly failure: Failure;
      /** What the upstream said, when it said something that a client can be told. */
      readonly answer: Answer | null;
    }
  /** Nothing is wrong, but what is asked for may be kept on another channel. */
  | { readonly failure: null; readonly answer: Answer };

/** One channel's turn. */
interface Turn {
  readonly errand: Errand;
  readonly candidate: Candidate;
  readonly bill: Bill;
  readonly gateway: Gateway;
  /** Until the whole errand is given up. */
  readonly leftMs: number;
  /** Another channel could be tried after this one. */
  readonly isLast: boolean;
}

export async function failover(errand: Errand, bill: Bill, gateway: Gateway): Promise<Answer> {
  const { channels, catalog } = gateway;
  const choice = channels.choose(errand, bill.route, gateway.now());
  const most = Math.min(catalog.failover.attempts, choice.candidates.length);
  const deadline = performance.now() + catalog.failover.totalMs;
  let last: Failed | null = null;
  let tried = 0;
  for (const candidate of choice.candidates) {
    const leftMs = deadline - performance.now();
    if (tried >= most || leftMs <= 0) break;
    // While another one was asked it may have come to rest.
    if (last !== null && !channels.admits(candidate, gateway.now())) continue;
    const isLast = ++tried === most;
    const attempted = await attempt({ errand, candidate, bill, gateway, leftMs, isLast });
    if (!("failure" in attempted)) {
      if (bill.open) channels.settle(choice, candidate, errand, bill.route);
      return attempted;
    }
    last = attempted;
    if (endsErrand(attempted.failure)) break;
  }
  if (last === null) throw channels.explainNone(bill.route, gateway.now());
  return concede(last);
}

/** No channel has answered: what the last one said is for the client, or makes it the gateway's error. */
function concede(last: Failed): Answer {
  if (last.failure === null) return last.answer;
  if (last.answer?.inbound.status === 429) return last.answer;
  throw describeFailure(last.failure);
}

/** The client has left, or the upstream had begun to answer: nothing more is sent. */
function endsErrand(failure: Failure | null): boolean {
  return failure?.kind === "fault" && (hasLeft(failure) || failure.fault.answered);
}

function hasLeft(failure: Failure): boolean {
  return (
    failure.kind === "fault" && (failure.fault.kind === "cancelled" || failure.fault.kind === "withdrawn")
  );
}

async function attempt(turn: Turn): Promise<Answer | Failed> {
  const { candidate, bill, gateway } = turn;
  const { channels } = gateway;
  const isElsewhere = bill.attempts.length > 0 || candidate !== bill.route.candidates[0];
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

async function send(turn: Turn): Promise<Answer | Failed> {
  const { errand, candidate, bill, gateway } = turn;
  const { name } = candidate.channel;
  try {
    const onResend = (): void => void bill.attempts.push({ channel: name, error: "reset" });
    const inbound = await forward(errand, candidate, gateway, { leftMs: turn.leftMs, onResend });
    const answer: Answer = { inbound, candidate, whole: null };
    if (inbound.status === 404 || mayBlameChannel(inbound.status)) return await readRefusal(turn, answer);
    if (!turn.isLast && errand.request.stream && inbound.status === 200) return await lookAhead(turn, answer);
    bill.attempts.push({ channel: name, status: inbound.status });
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
async function readRefusal(turn: Turn, answer: Answer): Promise<Answer | Failed> {
  const { candidate, bill, gateway } = turn;
  const { channel } = candidate;
  const { inbound } = answer;
  bill.attempts.push({ channel: channel.name, status: inbound.status });
  const whole = redactError(await readErrorBody(inbound, turn.leftMs), channel);
  const read = readFailure(channel.name, inbound, whole, gateway.now());
  const failure = read && redactFailure(read, channel);
  const told = { ...answer, whole };
  return failure !== null || isKeptElsewhere(turn, told) ? { failure, answer: told } : told;
}

/** Responses are stored by the channel that made them, and no other knows them. */
function isKeptElsewhere({ errand, isLast }: Turn, { inbound, whole }: Answer): boolean {
  if (isLast || whole === null) return false;
  const { purpose } = errand.call.target.endpoint;
  if (purpose === "resource") return inbound.status === 404;
  return Buffer.from(whole).includes('"previous_response_not_found"');
}

/** A stream whose first real event is an error is none: another channel may do better. */
async function lookAhead({ candidate, bill }: Turn, answer: Answer): Promise<Answer | Failed> {
  const { name } = candidate.channel;
  const { status } = answer.inbound;
  const { inbound, first } = await peek(answer.inbound);
  if (typeof first === "string") {
    bill.attempts.push({ channel: name, status });
    return { ...answer, inbound };
  }
  inbound.cancel();
  bill.attempts.push({ channel: name, status, error: "error_event" });
  const failure = redactFailure(blame(name, first.status, first.message), candidate.channel);
  return { failure, answer: null };
}
