// The bill of one request. It is opened before anything goes upstream, and settle.ts closes it exactly once.

import { estimateInputTokens } from "../../billing/estimate.ts";
import type { Intent } from "../../billing/ledger/journal.ts";
import type { Admission } from "../../billing/limits.ts";
import { type Overrides, sellerOf } from "../../billing/prices.ts";
import { reserve } from "../../billing/reserve.ts";
import type { ClientCall } from "../intake/call.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import type { Match } from "../intake/match.ts";
import { hasUsdLimit } from "../intake/one-model.ts";

/** A type and not an interface, so that it is assignable to a ledger line's record. */
export type AttemptRecord = {
  readonly channel: string;
  /** The upstream's status, if it responded. */
  readonly status?: number;
  /** Why there was no response. */
  readonly error?: string;
};

export interface Bill {
  readonly call: ClientCall;
  readonly match: Match;
  /** The time of arrival, in the format of ledger lines. */
  readonly time: string;
  readonly stream: boolean;
  /** The prompt's tokens, estimated from its size, for responses that break off before they report usage. */
  readonly estimatedInput: number;
  /** The model that was requested from the last channel, by its upstream's name. */
  requested: string | null;
  readonly attempts: AttemptRecord[];
  /** The config's prices at arrival. A changed config applies to later requests. */
  readonly overrides: Overrides;
  /** The ledger knows the request, and it will get a line in any case. False if nothing is billed. */
  readonly open: boolean;
  settled: boolean;
  /** Milliseconds from arrival to the first byte of the response. */
  firstByteMs: number | null;
  /** Releases the amount that is reserved for this request. */
  readonly release: () => void;
}

const BILLED = new Set(["generate", "embed"]);

export async function openBill(
  job: Job,
  match: Match,
  overrides: Overrides,
  gateway: Gateway,
): Promise<Bill> {
  const bill = createBill(job, match, overrides, gateway);
  if (!bill.open) return bill;
  try {
    await gateway.ledger.open(describeIntent(bill));
  } catch (error) {
    bill.release();
    throw error;
  }
  return bill;
}

/** Checks the limits and reserves the amount. This is not part of the async function above, because `release` would keep
 *  that function's variables alive, and with them the request's body. */
function createBill({ call, body }: Job, match: Match, overrides: Overrides, gateway: Gateway): Bill {
  const open = BILLED.has(call.target.endpoint.purpose);
  const { plain, stream } = body;
  const estimatedInput = open && plain !== null ? estimateInputTokens(plain) : 0;
  const requested = match.candidates[0]?.model ?? null;
  const admission = open ? admit({ match, plain, requested, estimatedInput, overrides }, gateway) : null;
  return {
    call,
    match,
    time: new Date(call.time).toISOString(),
    stream,
    estimatedInput,
    requested,
    attempts: [],
    overrides,
    open,
    settled: false,
    firstByteMs: null,
    release: () => admission?.release(),
  };
}

/** What the ledger's journal records before anything goes upstream. */
export function describeIntent({ call, match, time, requested, stream }: Bill): Intent {
  const { key, group, model, candidates } = match;
  return {
    id: call.id,
    time,
    key: key.name,
    group: group.name,
    platform: group.platform,
    channel: candidates[0]?.channel.name ?? "",
    endpoint: call.target.endpoint.label,
    model: model ?? "",
    upstream_model: requested,
    stream,
    multiplier: group.multiplier,
  };
}

interface AdmissionRequest {
  readonly match: Match;
  readonly plain: Uint8Array | null;
  readonly requested: string | null;
  readonly estimatedInput: number;
  readonly overrides: Overrides;
}

function admit(
  { match, plain, requested, estimatedInput, overrides }: AdmissionRequest,
  gateway: Gateway,
): Admission {
  const { key, group } = match;
  const now = gateway.now();
  const worst =
    plain === null || !(hasUsdLimit(key.limits) || hasUsdLimit(group.limits))
      ? null
      : reserve({
          body: plain,
          estimatedInput,
          model: requested,
          multiplier: group.multiplier,
          book: gateway.prices,
          overrides,
          seller: match.candidates[0] && sellerOf(match.candidates[0].channel),
          at: new Date(now),
        });
  return gateway.gate.admit(key, now, worst);
}
