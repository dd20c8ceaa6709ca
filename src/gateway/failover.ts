// The attempt loop: channels in their order until one answers. Only before the
// first byte of an answer: what comes after it is relay.ts's.

import { UpstreamFault } from "../lib/http1/types.ts";
import { type Answer, readErrorBody } from "./answer.ts";
import type { Bill } from "./bill.ts";
import type { Errand } from "./errand.ts";
import { forward } from "./forward.ts";
import type { Gateway } from "./gateway.ts";
import { scrub } from "./headers.ts";
import type { Candidate } from "./match.ts";
import { blamesChannel, describeFailure, type Failure, readFailure } from "./verdict.ts";

interface Failed {
  readonly failure: Failure;
  /** What the upstream said, when it said something. */
  readonly answer: Answer | null;
}

export async function failover(errand: Errand, bill: Bill, gateway: Gateway): Promise<Answer> {
  let last: Failed | null = null;
  for (const candidate of gateway.channels.order(bill.route, gateway.now())) {
    const attempted = await attempt(errand, candidate, bill, gateway);
    if (!("failure" in attempted)) return attempted;
    last = attempted;
    if (endsErrand(attempted.failure)) break;
  }
  if (last === null) throw gateway.channels.explainNone(bill.route, gateway.now());
  if (last.answer?.inbound.status === 429) return last.answer;
  throw describeFailure(last.failure);
}

/** The client has left, or the upstream had begun to answer: nothing more is sent. */
function endsErrand(failure: Failure): boolean {
  return failure.kind === "fault" && (failure.fault.kind === "cancelled" || failure.fault.answered);
}

async function attempt(
  errand: Errand,
  candidate: Candidate,
  bill: Bill,
  gateway: Gateway,
): Promise<Answer | Failed> {
  const { channel } = candidate;
  if (bill.open && bill.attempts.length > 0) gateway.ledger.attempt(bill.call.id, channel.name);
  bill.requested = candidate.model;
  try {
    const inbound = await forward(errand, candidate, gateway);
    bill.attempts.push({ channel: channel.name, status: inbound.status });
    if (!blamesChannel(inbound.status)) {
      gateway.channels.reportAnswer(channel, performance.now() - bill.call.arrived, gateway.now());
      return { inbound, candidate, whole: null };
    }
    const body = scrub(await readErrorBody(inbound), [channel.credential]);
    const failure = readFailure(channel.name, inbound, body);
    gateway.channels.reportFailure(channel, failure, gateway.now());
    return { failure, answer: { inbound, candidate, whole: body } };
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    bill.attempts.push({ channel: channel.name, error: fault.kind });
    const failure: Failure = { kind: "fault", channel: channel.name, fault };
    if (fault.kind !== "cancelled") gateway.channels.reportFailure(channel, failure, gateway.now());
    return { failure, answer: null };
  }
}
