// The bill of one request: opened before anything goes upstream, closed exactly once by settle.ts.

import { estimateInputTokens } from "../../billing/estimate.ts";
import type { Intent } from "../../billing/ledger/journal.ts";
import type { Admission } from "../../billing/limits.ts";
import { type Overrides, sellerOf } from "../../billing/prices.ts";
import { reserve } from "../../billing/reserve.ts";
import type { Limits } from "../../config/catalog.ts";
import type { ClientCall } from "../intake/call.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import type { Match } from "../intake/match.ts";

/** A type, not an interface: a ledger line takes it as a record. */
export type AttemptRecord = {
  readonly channel: string;
  /** The upstream's status, when it answered. */
  readonly status?: number;
  /** Why there was no answer. */
  readonly error?: string;
};

export interface Bill {
  readonly call: ClientCall;
  readonly match: Match;
  /** Of its arrival, as ledger lines have it. */
  readonly time: string;
  readonly stream: boolean;
  /** Tokens of the prompt, by its size: for answers that break off before their usage is told. */
  readonly estimatedInput: number;
  /** What the upstream of the answering channel is asked for; the client's own name until then. */
  requested: string | null;
  readonly attempts: AttemptRecord[];
  /** The config's prices when it came: a changed config is for the requests that follow. */
  readonly overrides: Overrides;
  /** The ledger knows of the request: it gets a line, come what may. False where nothing is billed. */
  readonly open: boolean;
  settled: boolean;
  /** Milliseconds from arrival to the first byte of the answer. */
  firstByteMs: number | null;
  /** Gives back what the limits hold for this request. */
  readonly release: () => void;
}

const BILLED = new Set(["generate", "embed"]);

export async function openBill(
  { call, body: request }: Job,
  route: Match,
  overrides: Overrides,
  gateway: Gateway,
): Promise<Bill> {
  const open = BILLED.has(call.target.endpoint.purpose);
  const estimatedInput = open && request.plain !== null ? estimateInputTokens(request.plain) : 0;
  const requested = route.candidates[0]?.model ?? null;
  const admission = open
    ? admit({ route, plain: request.plain, requested, estimatedInput, overrides }, gateway)
    : null;
  const bill: Bill = {
    call,
    match: route,
    time: new Date(call.time).toISOString(),
    stream: request.stream,
    estimatedInput,
    requested,
    attempts: [],
    overrides,
    open,
    settled: false,
    firstByteMs: null,
    release: () => admission?.release(),
  };
  if (!open) return bill;
  try {
    await gateway.ledger.open(describeIntent(bill));
  } catch (error) {
    bill.release();
    throw error;
  }
  return bill;
}

/** Told to the ledger before anything goes upstream. */
export function describeIntent({ call, match: route, time, requested, stream }: Bill): Intent {
  const { key, group, model, candidates } = route;
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

interface Entry {
  readonly route: Match;
  readonly plain: Uint8Array | null;
  readonly requested: string | null;
  readonly estimatedInput: number;
  readonly overrides: Overrides;
}

function admit({ route, plain, requested, estimatedInput, overrides }: Entry, gateway: Gateway): Admission {
  const { key, group } = route;
  const now = gateway.now();
  const worst =
    plain === null || !(isLimited(key.limits) || isLimited(group.limits))
      ? null
      : reserve({
          body: plain,
          estimatedInput,
          model: requested,
          multiplier: group.multiplier,
          book: gateway.prices,
          overrides,
          seller: route.candidates[0] && sellerOf(route.candidates[0].channel),
          at: new Date(now),
        });
  return gateway.gate.admit(key, now, worst);
}

function isLimited({ usdPerDay, usdPerMonth, usdTotal }: Limits): boolean {
  return usdPerDay !== null || usdPerMonth !== null || usdTotal !== null;
}
