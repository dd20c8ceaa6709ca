// Tries channels in order until one responds, before the client gets a byte.

import { NOT_KEPT } from "../../bridges/neutral/notes.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { ChannelWait } from "../channels/channels.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { ChannelResponse, Request } from "../request.ts";
import { type Failure, isForClient, needsOwner, toError } from "../upstream/failures.ts";
import { repeatResponse } from "./answer.ts";
import { type Attempted, attempt } from "./attempt.ts";
import { convertFor } from "./convert.ts";

/** `goesOn`: the next channel is tried. `tells`:
 *  the attempt shows whether this channel works. */
const NEXT: Record<Attempted["kind"], { readonly goesOn: boolean; readonly tells: boolean }> = {
  answered: { goesOn: false, tells: true },
  elsewhere: { goesOn: true, tells: true },
  failed: { goesOn: true, tells: true },
  /** The channel had begun to respond, so it may have done the work. */
  broken: { goesOn: false, tells: true },
  short: { goesOn: true, tells: false },
  left: { goesOn: false, tells: false },
};

interface Bad {
  readonly candidate: Candidate;
  readonly failure: Failure | null;
  readonly answer: ChannelResponse | null;
  /** The request cannot be converted. Nothing was sent. */
  readonly misfit?: GatewayError;
}

export async function sendRequest(r: Request, gateway: Gateway): Promise<ChannelResponse> {
  const { channels, catalog, now } = gateway;
  const candidates = channels.choose(r, now());
  const most = Math.min(catalog.failover.attempts, candidates.length);
  let at = performance.now();
  // No attempt begins later. A running one has its own limits.
  const deadline = at + catalog.failover.totalMs;
  let bad: Bad | null = null;
  let tried = 0;
  for (const candidate of candidates) {
    if (tried === most || at >= deadline) break;
    // A rest may have begun while another channel was tried.
    if (bad !== null && channels.readinessOf(candidate, now()) === "closed") continue;
    const misfit = findMisfit(r, candidate);
    if (misfit !== null) {
      // After NOT_KEPT, the client sends the whole conversation. This channel can serve that.
      if (bad === null || misfit.wireCode === NOT_KEPT)
        bad = { candidate, failure: null, answer: null, misfit };
      continue;
    }
    tried += 1;
    beginAttempt(r, candidate, gateway);
    const attempted = await attempt(r, candidate, tried === most, gateway);
    const started = at;
    at = performance.now();
    report(r, attempted, at - started, gateway);
    if (attempted.kind === "answered" && attempted.answer !== null) return attempted.answer;
    bad = chooseBad(bad, { candidate, ...attempted });
    if (!NEXT[attempted.kind].goesOn) break;
  }
  return conclude(r, bad, gateway);
}

function findMisfit(r: Request, candidate: Candidate): GatewayError | null {
  if (!r.group.mixesDialects && candidate.isConverted !== true) return null;
  try {
    convertFor(r, candidate);
    return null;
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status >= 500) throw error;
    return error;
  }
}

function beginAttempt(r: Request, candidate: Candidate, { ledger, channels, now }: Gateway): void {
  r.tried = candidate;
  r.upstreamRequestId = undefined;
  const isFirst = r.attempts.length === 0;
  const isNamed = isFirst && candidate === r.candidates[0];
  if (r.open && !isNamed) ledger.attempt(r.id, candidate.channel.name, isFirst);
  if (r.isTelling) channels.setTrial(candidate, now());
}

function report(r: Request, attempted: Attempted, ms: number, { channels, now }: Gateway): void {
  const { tried: candidate } = r;
  if (!r.isTelling || candidate === null) return;
  if (attempted.kind === "answered") channels.keepConversation(r, candidate);
  if (attempted.kind === "left") channels.release(r, now());
  if (!NEXT[attempted.kind].tells) channels.setTrial(candidate, null);
  else if (attempted.failure !== null) channels.reportFailure(candidate, attempted.failure, now());
  else channels.reportAnswer(candidate, ms, now());
}

/** Prefers a temporary failure: clients give up after a lasting one. */
function chooseBad(before: Bad | null, now: Bad): Bad {
  return before === null || isFinal(before) || !isFinal(now) ? now : before;
}

/** Trying again would not help. */
function isFinal({ failure }: Bad): boolean {
  return failure === null || needsOwner(failure);
}

function conclude(r: Request, bad: Bad | null, gateway: Gateway): ChannelResponse {
  const wait = findWait(r, bad, gateway);
  if (wait !== null) return repeat(r, wait, gateway);
  if (bad === null) throw gateway.channels.explainNone(r, gateway.now());
  const { candidate, failure, answer, misfit } = bad;
  // Only the last channel's answer can be converted for the client.
  const isLast = r.attempts.at(-1)?.channel === candidate.channel.name;
  const isReadable = !r.group.mixesDialects || isLast;
  if (answer !== null && isReadable && (failure === null || isForClient(failure))) return answer;
  if (failure === null) throw misfit ?? new Error("a response without a body");
  throw toError(failure);
}

/** Finds the resting channel with the shortest wait.
 *  A channel that needs its owner counts only if it is the only candidate. */
function findWait(r: Request, bad: Bad | null, { channels, now }: Gateway): ChannelWait | null {
  if (bad === null ? r.candidates.length > 1 : !isFinal(bad)) return null;
  const waits = r.candidates.flatMap((candidate) => {
    const mayServe = bad === null || bad.failure !== null || candidate.isListed === true;
    const wait = mayServe ? channels.findWait(candidate, now()) : null;
    const passes = bad === null || wait === null || !needsOwner(wait.failure);
    return wait !== null && passes ? [wait] : [];
  });
  return waits.toSorted((a, b) => a.waitMs - b.waitMs)[0] ?? null;
}

function repeat(r: Request, wait: ChannelWait, { channels, now }: Gateway): ChannelResponse {
  const { candidate, failure, waitMs } = wait;
  if (failure.status !== null && !isForClient(failure)) throw toError({ ...failure, waitMs });
  if (failure.response?.dialect !== r.upstreamDialect.name) throw channels.explainNone(r, now());
  return repeatResponse(failure.response, candidate, waitMs);
}
