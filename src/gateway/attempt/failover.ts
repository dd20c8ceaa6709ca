// Tries the channels in their order until one responds. This ends before the first byte of a response reaches the
// client; attempt.ts judges each response, and the files of deliver/ do the rest.

import { NOT_KEPT } from "../../bridges/neutral/notes.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Choice, Wait } from "../channels/channels.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import { repeatResponse, type ChannelResponse } from "../upstream/answer.ts";
import {
  describeFailure,
  type Failure,
  isForClient,
  isShortage,
  needsOwner,
} from "../upstream/failure-rules.ts";
import type { Request } from "../request.ts";
import { takeCrossing } from "./forward.ts";

export interface FailedAttempt {
  /** Null: the channel works, but another one may have the model, or what the client refers to. */
  readonly failure: Failure | null;
  /** The upstream's response, if there is one that a client can get. */
  readonly answer: ChannelResponse | null;
  /** Nothing was sent: the request cannot be converted for the channel. */
  readonly misfit?: GatewayError;
}

/** One channel after another, for one request. */
export class Failover {
  readonly #r: Request;
  readonly #gateway: Gateway;
  readonly #choice: Choice;
  readonly #most: number;
  readonly #deadline: number;
  #next = 0;
  #tried = 0;
  #current: Candidate | null = null;
  /** Nothing more is sent: the client has disconnected, or an upstream had begun to respond. */
  #isOver = false;
  /** What the client hears if no channel succeeds. A failure that passes by waiting comes before one that does not:
   *  clients try again after the first, and stop for good after the second. */
  #outcome: FailedAttempt | null = null;

  constructor(r: Request, gateway: Gateway) {
    const { channels, catalog } = gateway;
    this.#r = r;
    this.#gateway = gateway;
    this.#choice = channels.choose(r, gateway.now());
    this.#most = Math.min(catalog.failover.attempts, this.#choice.candidates.length);
    // A single channel has its own limits: a local model may take longer than all others together.
    this.#deadline = this.#most === 1 ? Infinity : performance.now() + catalog.failover.totalMs;
  }

  /** How long all channels together may still take. */
  get leftMs(): number {
    return this.#deadline - performance.now();
  }

  /** No other channel can be tried after this one. */
  get isLast(): boolean {
    return this.#tried === this.#most;
  }

  /** Another channel lists the model, or may have what the client refers to, and failed in a way that passes by waiting, or
   *  is in cooldown. */
  get hasBetter(): boolean {
    const outcome = this.#outcome;
    const has = ({ channel }: Candidate): boolean => channel.name === outcome?.failure?.channel;
    const failed = outcome !== null && !isFinal(outcome) ? this.#r.candidates.filter(has) : [];
    return failed.some((candidate) => this.#mayHave(candidate)) || this.#findWait(null) !== null;
  }

  #mayHave({ isListed }: Candidate): boolean {
    return isListed === true || this.#r.target.endpoint.purpose === "resource";
  }

  /** The channel to try now; null if there is none. */
  next(): Candidate | null {
    const { candidates } = this.#choice;
    while (!this.#isOver && this.#next < candidates.length && this.#tried < this.#most && this.leftMs > 0) {
      const candidate = candidates[this.#next];
      this.#next += 1;
      if (candidate === undefined) return null;
      // A cooldown may have begun while another channel was tried.
      if (this.#outcome !== null && !this.#gateway.channels.admits(candidate, this.#gateway.now())) continue;
      const isPlanned = this.#r.group.crosses || candidate.isConverted === true;
      if (isPlanned && !this.#canCross(candidate)) continue;
      this.#tried += 1;
      this.#current = candidate;
      this.#reportStart(candidate);
      return candidate;
    }
    return null;
  }

  /** Another channel may serve what cannot be converted for this one. */
  #canCross(candidate: Candidate): boolean {
    try {
      takeCrossing(this.#r, candidate, this.#gateway);
      return true;
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500) throw error;
      const misfit = { failure: null, answer: null, misfit: error };
      // The client sends again, and then this channel serves it.
      if (error.wireCode === NOT_KEPT) this.#outcome = misfit;
      this.#outcome ??= misfit;
      return false;
    }
  }

  /** What is not an endpoint may not be one of the upstream either. */
  get #isTelling(): boolean {
    return this.#r.open && this.#r.target.endpoint.purpose !== "other";
  }

  #reportStart(candidate: Candidate): void {
    const r = this.#r;
    const { ledger, channels, now } = this.#gateway;
    r.requested = candidate.model;
    r.upstreamRequestId = undefined;
    if (!r.open) return;
    const isFirst = r.attempts.length === 0;
    const isNamed = isFirst && candidate === r.candidates[0];
    if (!isNamed) ledger.attempt(r.id, candidate.channel.name, isFirst);
    if (this.#isTelling) channels.reportStart(candidate, now());
  }

  /** The channel works. Requests that are not billed say little about it, because not every upstream serves them. */
  reportAnswer(candidate: Candidate, ms: number): void {
    const { channels, now } = this.#gateway;
    if (!this.#isTelling) return;
    channels.reportAnswer(candidate, ms, now());
    channels.keepConversation(this.#choice, candidate, this.#r);
  }

  reportFailure(candidate: Candidate, failed: FailedAttempt, ms: number): void {
    const { channels, now } = this.#gateway;
    const { failure } = failed;
    if (this.#outcome === null || isFinal(this.#outcome) || !isFinal(failed)) this.#outcome = failed;
    if (this.#isTelling) {
      if (failure === null) channels.reportAnswer(candidate, ms, now());
      else if (hasLeft(failure) || isShortage(failure)) channels.reportLeft(candidate);
      else channels.reportFailure(candidate, failure, now());
    }
    this.#isOver = failure?.kind === "fault" && (hasLeft(failure) || failure.fault.sent === "yes");
  }

  /** All channels failed. Returns the response for the client, or throws an error of the gateway. */
  conclude(): ChannelResponse {
    const outcome = this.#outcome;
    if (outcome === null) return this.#repeatOnly();
    const wait = isFinal(outcome) ? this.#findWait(outcome.failure) : null;
    if (wait !== null) return this.#repeat(wait);
    const { failure, answer, misfit } = outcome;
    // After a channel of another kind, the request has another dialect.
    const isReadable = answer !== null && (!this.#r.group.crosses || answer.candidate === this.#current);
    if (isReadable && (failure === null || (failure.kind === "status" && isForClient(failure))))
      return answer;
    if (failure === null) throw misfit ?? new Error("a response without a body");
    throw describeFailure(failure);
  }

  /** No channel can be tried now. If there is only one, the client gets its last error again, with the remaining time. */
  #repeatOnly(): ChannelResponse {
    const r = this.#r;
    const { channels, now } = this.#gateway;
    const [only, ...others] = r.candidates;
    const wait = only === undefined || others.length > 0 ? null : channels.findWait(only, now());
    if (wait === null) throw channels.explainNone(r, now());
    return this.#repeat(wait);
  }

  /** A channel that was not tried, because it is in cooldown, and may serve the request when it is back. `failure`: of the
   *  last channel; null: it does not have what was asked for. */
  #findWait(failure: Failure | null): Wait | null {
    const { channels, now } = this.#gateway;
    const waits = this.#r.candidates.flatMap((candidate): Wait[] => {
      const mayServe = failure !== null || this.#mayHave(candidate);
      const wait = mayServe ? channels.findWait(candidate, now()) : null;
      return wait === null || (wait.failure !== undefined && needsOwner(wait.failure)) ? [] : [wait];
    });
    return waits.toSorted((a, b) => a.waitMs - b.waitMs)[0] ?? null;
  }

  #repeat({ candidate, failure, waitMs }: Wait): ChannelResponse {
    const r = this.#r;
    const { channels, now } = this.#gateway;
    if (failure?.kind !== "status") throw channels.explainNone(r, now());
    if (!isForClient(failure)) throw describeFailure({ ...failure, waitMs });
    if (failure.response?.dialect !== r.dialect.name) throw channels.explainNone(r, now());
    return repeatResponse(failure.response, candidate, waitMs);
  }
}

/** No later attempt ends otherwise unless the owner does something: a refused credential, no credit, no such model. */
function isFinal({ failure }: FailedAttempt): boolean {
  return failure === null || needsOwner(failure);
}

function hasLeft(failure: Failure): boolean {
  return (
    failure.kind === "fault" && (failure.fault.kind === "cancelled" || failure.fault.kind === "withdrawn")
  );
}
