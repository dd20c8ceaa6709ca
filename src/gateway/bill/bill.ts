// The bill of one request: opened before anything goes upstream, closed exactly once by settle.ts.

import { estimateInputTokens } from "../../billing/estimate.ts";
import type { Intent } from "../../billing/ledger/journal.ts";
import type { Overrides } from "../../billing/prices.ts";
import { computeCharge } from "../../billing/charge.ts";
import { type Admission, type Cost, FREE } from "../../billing/limits.ts";
import { boundCost, expectCost, type Quote, type ReservedRequest } from "../../billing/reserve.ts";
import type { ClientCall } from "../intake/call.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate, Match } from "../intake/match.ts";

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
  /** What the limits hold for this request. To be released when its line is written. */
  readonly admission: Admission;
}

const BILLED = new Set(["generate", "embed"]);
/** Requests that cost nothing but work: only limits on their number count them. */
const COUNTED = new Set(["count"]);

export async function openBill(
  { call, body: request }: Job,
  route: Match,
  overrides: Overrides,
  gateway: Gateway,
): Promise<Bill> {
  const open = BILLED.has(call.target.endpoint.purpose);
  const estimatedInput = open && request.plain !== null ? estimateInputTokens(request.plain) : 0;
  const requested = route.candidates[0]?.model ?? null;
  const { purpose } = call.target.endpoint;
  const demand = {
    route,
    plain: request.plain,
    estimatedInput,
    overrides,
    hasOutput: purpose === "generate",
  };
  const cost = open ? describeCost(demand, gateway) : null;
  const admission = open || COUNTED.has(purpose) ? gateway.gate.admit(route.key, gateway.now(), cost) : FREE;
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
    admission,
  };
  if (!open) return bill;
  try {
    await gateway.ledger.open(describeIntent(bill));
  } catch (error) {
    admission.release();
    throw error;
  }
  return bill;
}

/** Told to the ledger before anything goes upstream. */
export function describeIntent({ call, match: route, time, requested, stream, admission }: Bill): Intent {
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
    ...(admission.reservedUsd !== null && { limit_usd: admission.reservedUsd }),
  };
}

interface Demand {
  readonly route: Match;
  /** Null: the body's encoding is not known here, so nothing bounds it. */
  readonly plain: Uint8Array | null;
  readonly estimatedInput: number;
  readonly overrides: Overrides;
  readonly hasOutput: boolean;
}

function describeCost(demand: Demand, gateway: Gateway): Cost {
  const { route, plain, estimatedInput, overrides, hasOutput } = demand;
  const model = route.model ?? "";
  const describe = (): ReservedRequest => ({
    body: plain ?? new Uint8Array(),
    estimatedInput,
    expectedOutput: gateway.ledger.expectOutput(model),
    hasOutput,
    quotes: route.candidates.map((candidate) => quoteAt(candidate, route, overrides, gateway)),
  });
  return {
    model,
    expect: () => expectCost(describe()),
    bound: () => (plain === null ? { unbounded: "its body cannot be read" } : boundCost(describe())),
  };
}

/** What a usage costs at one of the request's channels. */
export function quoteAt(
  { model }: Candidate,
  { group }: Match,
  overrides: Overrides,
  gateway: Gateway,
): Quote {
  return (usage, tariff) =>
    computeCharge({
      parts: [{ model, pass: "message", usage }],
      tariff,
      model,
      requested: model,
      book: gateway.prices,
      overrides,
      at: new Date(gateway.now()),
      multiplier: group.multiplier,
    }).charge;
}
