// Closes a bill exactly once, however the request ended: what was used, what it
// costs, its line in the ledger. What is used is billing/assess.ts, what it costs billing/charge.ts.

import { assess, type Assessment, describePaidTwice } from "../../billing/assess.ts";
import { type Charge, computeCharge } from "../../billing/charge.ts";
import type { Basis, LineDraft, Outcome } from "../../billing/ledger/line.ts";
import type { Reading, Usage } from "../../billing/usage.ts";
import type { GatewayError } from "../../lib/errors.ts";
import { type AttemptRecord, type Bill, describeIntent, quoteAt } from "./bill.ts";
import type { Gateway } from "../gateway.ts";
import { describeLeaving } from "./ending.ts";
import { durationOf, reportFinished } from "./request-record.ts";

/** How an answer ended. */
export interface Ending {
  readonly outcome: Outcome;
  /** What the client was told. */
  readonly status: number;
  /** What the upstream said; null when it gave no answer. */
  readonly upstreamStatus: number | null;
  /** Null where nothing was metered. */
  readonly reading: Reading | null;
  /** What broke, for the log. */
  readonly problem: string | null;
}

/** A bill that is closed, and has yet to be recorded. */
export interface ClosedBill {
  readonly bill: Bill;
  readonly ending: Ending;
  /** Null where nothing is billed. */
  readonly draft: LineDraft | null;
}

export function settle(bill: Bill, ending: Ending, gateway: Gateway): void {
  if (bill.settled) return;
  recordBill(closeBill(bill, ending, gateway), gateway);
}

/** What is owed is known; whoever closes a bill records it, whatever happens meanwhile. */
export function closeBill(bill: Bill, ending: Ending, gateway: Gateway): ClosedBill {
  bill.settled = true;
  return { bill, ending, draft: bill.open ? draftLine(bill, ending, gateway) : null };
}

export function recordBill({ bill, ending, draft }: ClosedBill, gateway: Gateway): void {
  const { status, outcome, problem } = ending;
  if (draft !== null) gateway.ledger.append(draft);
  const line = ending.reading?.stored === undefined ? draft : followStored(bill, ending, draft, gateway);
  bill.admission.release();
  const usage = line?.usage ?? null;
  const chargeUsd = line?.charge_usd ?? null;
  const shown = problem ?? (bill.admission.unpriced ? UNPRICED_ALLOWED : null);
  reportFinished(bill, { status, outcome, problem: shown, usage, chargeUsd }, gateway);
}

/** Whoever first asks for an answer that had gone on, and is over, gets the line that bears its charge. */
function followStored(
  bill: Bill,
  ending: Ending,
  draft: LineDraft | null,
  gateway: Gateway,
): LineDraft | null {
  const { ledger, background: later } = gateway;
  const { id = "", goesOn = true } = ending.reading?.stored ?? {};
  if (draft?.basis === "unknown" && goesOn) later.keep(id, bill, draft);
  const owed = draft === null && !goesOn ? later.take(id) : null;
  if (owed === null) return draft;
  const paid: Bill = { ...bill, ...owed, open: true };
  const line = draftLine(paid, ending, gateway);
  if (line.basis === "unknown") return null;
  const { replaces } = owed;
  const kept = (): void => later.keepAgain(id, owed);
  ledger.open(describeIntent(paid)).then(() => ledger.append({ ...line, replaces }), kept);
  return line;
}

/** A request that got no answer from any channel. It gets a line when something may have reached one. */
export function settleFailure(bill: Bill, error: GatewayError, gateway: Gateway): void {
  if (bill.settled) return;
  const outcome = error.code === "client_gone" ? describeLeaving(gateway.halt) : "upstream_error";
  const { status, message: problem } = error;
  const arrived = bill.attempts.filter(mayHaveArrived);
  if (bill.open && arrived.length === 0) {
    bill.settled = true;
    gateway.ledger.discard(bill.call.id);
    bill.admission.release();
    reportFinished(bill, { status, outcome, problem, usage: null, chargeUsd: null }, gateway);
    return;
  }
  const upstreamStatus = arrived.every(isRefusal) ? status : null;
  settle(bill, { outcome, status, upstreamStatus, reading: null, problem }, gateway);
}

const NEVER_SENT = new Set(["connect", "connect_timeout", "shortage", "tls", "withdrawn"]);

function mayHaveArrived({ error }: AttemptRecord): boolean {
  return error === undefined || !NEVER_SENT.has(error);
}

/** It costs nothing, and neither does a redirect. An upstream that was asked and said nothing may have worked all the same. */
function isRefusal({ status, error }: AttemptRecord): boolean {
  return status !== undefined && (status >= 300 || error !== undefined);
}

function mayBePaid(attempt: AttemptRecord): boolean {
  return mayHaveArrived(attempt) && !isRefusal(attempt);
}

function draftLine(bill: Bill, ending: Ending, gateway: Gateway): LineDraft {
  const { call, match: route } = bill;
  const { reading, outcome, status, upstreamStatus } = ending;
  const assessment = assess({
    outcome,
    status: upstreamStatus,
    reading,
    streamed: bill.stream,
    estimatedInput: bill.estimatedInput,
  });
  const charge = chargeFor(bill, assessment, reading, gateway);
  const basis = chooseBasis(assessment, charge);
  return {
    id: call.id,
    time: bill.time,
    key: route.key.name,
    group: route.group.name,
    platform: route.group.platform,
    channel: bill.attempts.at(-1)?.channel ?? "",
    endpoint: call.target.endpoint.label,
    model: route.model ?? "",
    upstream_model: reading?.model ?? null,
    stream: bill.stream,
    status,
    outcome,
    basis,
    usage: charge.usage,
    parts: charge.parts.length > 1 ? [...charge.parts] : undefined,
    raw_usage: reading?.raw ?? null,
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier: route.group.multiplier,
    charge_usd: charge.charge,
    first_byte_ms: bill.firstByteMs,
    duration_ms: durationOf(call),
    attempts: bill.attempts,
    suspect: explainSuspicion(bill, assessment),
    limit_usd: estimateForLimits(bill, { basis, usage: charge.usage, reading }, gateway) ?? undefined,
    extra: noteMore(bill, assessment, charge, reading),
  };
}

function chooseBasis({ basis }: Assessment, { official }: Charge): Basis {
  return basis !== "unknown" && official === null ? "unpriced" : basis;
}

function chargeFor(bill: Bill, assessment: Assessment, reading: Reading | null, gateway: Gateway): Charge {
  const charge = computeCharge({
    parts: assessment.parts,
    tariff: reading?.tariff ?? {},
    model: reading?.model ?? null,
    requested: bill.requested,
    book: gateway.prices,
    overrides: bill.overrides,
    at: new Date(bill.call.time),
    multiplier: bill.match.group.multiplier,
  });
  return assessment.basis === "unknown" ? { ...charge, prices: null, official: null, charge: null } : charge;
}

const UNPRICED_ALLOWED = "the model has no price, so no limit counts this request";

interface KnownUsage {
  readonly basis: Basis;
  readonly usage: Usage;
  readonly reading: Reading | null;
}

/** What limits count while the cost of a request is not known: its prompt and the output seen. */
function estimateForLimits(bill: Bill, known: KnownUsage, gateway: Gateway): string | null {
  const { basis, usage, reading } = known;
  const { admission, estimatedInput } = bill;
  if (basis === "exact" || (basis === "partial" && !admission.strict)) return null;
  // It goes on, or a strict limit needs the most that it can cost.
  const isOpen = admission.strict || reading?.stored?.goesOn === true;
  if (isOpen && admission.reservedUsd !== null) return admission.reservedUsd;
  const seen = { input: estimatedInput, output: reading?.estimatedOutput ?? 0 };
  return quoteLast(bill, basis === "unpriced" ? usage : seen, gateway);
}

/** What a usage costs at the channel that was tried last. */
function quoteLast({ attempts, match, overrides }: Bill, usage: Usage, gateway: Gateway): string | null {
  const name = attempts.at(-1)?.channel;
  const [first] = match.candidates;
  const candidate = match.candidates.find(({ channel }) => channel.name === name) ?? first;
  return candidate === undefined ? null : quoteAt(candidate, match, overrides, gateway)(usage, {});
}

function explainSuspicion({ attempts, call }: Bill, { suspect }: Assessment): string | undefined {
  // A stored answer costs nothing to fetch, however often.
  const paid = call.exchange.method === "GET" ? [] : attempts.filter(mayBePaid);
  const twice = paid.length > 1 ? describePaidTwice(paid.map(({ channel }) => channel)) : null;
  const reasons = [suspect, twice].filter((reason) => reason !== null);
  return reasons.length > 0 ? reasons.join("; ") : undefined;
}

/** What a person should know of the amounts, and what finding a price later takes. */
function noteMore(
  { requested, match: route }: Bill,
  { estimated }: Assessment,
  { unpricedBecause }: Charge,
  reading: Reading | null,
): LineDraft["extra"] & {} {
  const extra: Record<string, unknown> = {};
  // The name under which an upstream was asked, where neither client nor answer used it: it may be what has a price.
  if (requested !== null && requested !== route.model && requested !== reading?.model)
    extra["requested_model"] = requested;
  if (estimated.length > 0) extra["estimated"] = estimated;
  if (unpricedBecause === null) return extra;
  return { ...extra, unpriced_because: unpricedBecause, tariff: reading?.tariff ?? {} };
}
