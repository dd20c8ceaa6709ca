// A request's ledger line: from the meter's reading to the amounts.

import { assess, type Assessment, describePaidTwice } from "../../billing/assess.ts";
import {
  type Charge,
  chargeAmount,
  computeCharge,
  differsFromSeller,
  multiplyCharge,
  REPORTED,
} from "../../billing/charge.ts";
import type { Basis, LineDraft } from "../../billing/ledger/line.ts";
import type { Quote } from "../../billing/limits/reserve.ts";
import { addRegion } from "../../billing/prices.ts";
import { isSameModel } from "../../billing/prices/names.ts";
import { type Reading, sumTokens, sumUsage } from "../../billing/usage.ts";
import { limitMultiplier } from "../../config/catalog.ts";
import { addUsd, formatUsd, parseUsd } from "../../lib/money.ts";
import type { Gateway } from "../gateway.ts";
import type { AttemptRecord, Request } from "../request.ts";
import { quoteAt } from "./bill.ts";

const UNREAD: Reading = {
  model: null,
  parts: [],
  rawUsage: null,
  tariff: {},
  end: "open",
  final: false,
  estimatedOutput: 0,
  hasText: false,
};

/** In the order of the ledger's fields. */
export function draftLine(r: Request, gateway: Gateway): LineDraft {
  const { key, group, ending, attempts } = r;
  const { endpoint, path } = r.target;
  const bill = makeBill(r, gateway);
  const { assessment, charge, reading } = bill;
  return {
    id: r.id,
    time: r.isoTime,
    key: key.name,
    group: group.name,
    platform: group.platform,
    channel: attempts.at(-1)?.channel ?? "",
    endpoint: endpoint.label,
    model: r.model ?? "",
    upstream_model: reading.model,
    stream: r.stream,
    status: ending.status,
    outcome: ending.outcome,
    basis: bill.basis,
    usage: charge.usage,
    parts: listIfMore(charge.parts, 1),
    raw_usage: reading.rawUsage,
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier: group.multiplier,
    charge_usd: charge.charge,
    provider_usd: orAbsent(reading.reportedAmount?.usd),
    paid_by: r.payer,
    first_byte_ms: r.firstByteMs,
    duration_ms: r.durationMs,
    attempts,
    client: r.client,
    upstream_request_id: r.upstreamRequestId,
    converted: r.conversion?.between.upstream,
    suspect: explainDoubts(r, bill),
    limit_usd: orAbsent(countForLimits(r, bill, gateway)),
    cache: undefined,
    windows: undefined,
    replaces: undefined,
    transport: orAbsent(r.transport),
    path: endpoint.purpose === "other" ? path : undefined,
    requested_model: nameRequested(r, reading.model),
    estimated: listIfMore(assessment.estimated, 0),
    priced_as: orAbsent(charge.pricedAs),
    // `reprice` needs these. If no kind has a price, all of `usage` is unpriced.
    unpriced_because: orAbsent(charge.unpricedBecause),
    unpriced_usage: charge.atLeast === null ? undefined : orAbsent(charge.unpricedUsage),
    at_least_usd: orAbsent(charge.atLeast),
    tariff: charge.unpricedBecause === null ? undefined : { ...addRegion(reading.tariff, r.seller) },
    recording: r.recorded?.name,
    traceparent: gateway.catalog.otlp === null ? undefined : readTrace(r),
  };
}

function listIfMore<T>(list: readonly T[], than: number): T[] | undefined {
  return list.length > than ? [...list] : undefined;
}

function nameRequested({ requested, model }: Request, answered: string | null): string | undefined {
  const isNamed = requested === model || requested === answered;
  return isNamed ? undefined : orAbsent(requested);
}

function orAbsent<T>(value: T | null | undefined): T | undefined {
  return value ?? undefined;
}

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

function readTrace({ exchange }: Request): string | undefined {
  const trace = exchange.field("traceparent");
  return trace !== undefined && TRACEPARENT.test(trace) ? trace : undefined;
}

interface Bill {
  readonly basis: Basis;
  readonly assessment: Assessment;
  readonly charge: Charge;
  readonly reading: Reading;
}

function makeBill(r: Request, gateway: Gateway): Bill {
  const { outcome, upstreamStatus: status, reading: read } = r.ending;
  const isEmbedding = r.target.endpoint.purpose === "embed";
  // An embedding has no output, however long its vectors are.
  const reading = read && isEmbedding ? { ...read, estimatedOutput: 0 } : read;
  // A refusal costs nothing, unless an earlier attempt may cost something.
  const isOpen = status !== null && status >= 400 && r.attempts.some(mayBePaid);
  const assessment = assess({
    outcome,
    status: isOpen ? null : status,
    reading,
    streamed: r.stream,
    estimatedInput: r.estimatedInput,
  });
  const charge = chargeFor(r, assessment, reading ?? UNREAD, gateway);
  const isUnpriced = assessment.basis !== "unknown" && charge.official === null;
  const basis = isUnpriced ? "unpriced" : assessment.basis;
  return chargeNamed(r, { basis, assessment, charge, reading: reading ?? UNREAD });
}

const NEVER_SENT = new Set(["connect", "connect_timeout", "shortage", "tls", "withdrawn"]);

export function mayHaveArrived({ error }: AttemptRecord): boolean {
  return error === undefined || !NEVER_SENT.has(error);
}

/** Refusals, redirects and pages that are no answer cost nothing.
 *  An upstream may have worked on a request although its response is missing or empty. */
function mayBePaid(attempt: AttemptRecord): boolean {
  const { status, error } = attempt;
  const isRefusal = status !== undefined && (status >= 300 || error !== undefined);
  return mayHaveArrived(attempt) && (!isRefusal || error === "empty_body");
}

export function chargeFor(
  r: Request,
  { basis, parts, unbilled }: Pick<Assessment, "basis" | "parts" | "unbilled">,
  { model, tariff }: Pick<Reading, "model" | "tariff">,
  gateway: Gateway,
): Charge {
  const { seller } = r;
  const charge = computeCharge({
    parts,
    tariff: addRegion(tariff, seller),
    model,
    requested: r.requested,
    book: gateway.prices,
    overrides: r.overrides,
    seller,
    unbilled,
    at: new Date(r.time),
    multiplier: r.group.multiplier,
  });
  return basis === "unknown" ? { ...charge, prices: null, official: null, charge: null } : charge;
}

/** With `bill: reported`, or without a price, the amount that the seller named is charged:
 *  xAI's ticks, the `cost` of OpenRouter, Vercel and Perplexity. */
function chargeNamed({ seller, group }: Request, bill: Bill): Bill {
  const { usd = null, isWhole = false } = bill.reading.reportedAmount ?? {};
  if (usd === null || !isWhole) return bill;
  const isUnpriced = bill.basis === "unpriced" && bill.assessment.basis === "exact";
  if (seller?.bill !== "reported" && !(isUnpriced && bill.charge.parts.length > 0)) return bill;
  const { lacksOutput: _counted, ...assessment } = bill.assessment;
  const charge = chargeAmount(bill.charge, usd, group.multiplier);
  return { ...bill, basis: "exact", assessment, charge };
}

const UNREADABLE = "the seller's own amount cannot be read";
const MISSING = "the seller named no amount for the whole answer: the price book's amount counts";

function explainDoubts(r: Request, bill: Bill): string | undefined {
  const texts = [bill.assessment.suspect];
  if (bill.charge.priceSource !== REPORTED)
    texts.push(r.seller?.bill === "reported" ? doubtMissing(bill) : compare(bill), doubtModel(bill));
  if (r.attempts.length > 1) texts.push(doubtAttempts(r));
  let all: string | undefined;
  for (const text of texts) if (text !== null) all = all === undefined ? text : `${all}; ${text}`;
  return all;
}

function doubtMissing({ assessment, reading }: Bill): string | null {
  const { basis, parts, unbilled } = assessment;
  // The answer is an error or an unbilled refusal.
  const isFree = parts.length === 0 || unbilled !== undefined;
  const isUnused = basis === "exact" && isFree;
  if (reading.reportedAmount === undefined) return isUnused ? null : MISSING;
  return reading.reportedAmount.usd === null ? UNREADABLE : MISSING;
}

/** Compares only prices of the book: an owner's own prices may differ. */
function compare({ assessment, charge, reading }: Bill): string | null {
  if (reading.reportedAmount === undefined) return null;
  const { usd, isWhole } = reading.reportedAmount;
  if (usd === null) return UNREADABLE;
  const { official, priceSource } = charge;
  if (!isWhole || official === null || assessment.basis !== "exact") return null;
  const sources = priceSource?.split(", ") ?? [""];
  if (!sources.every((source) => source.startsWith("book "))) return null;
  return differsFromSeller(official, usd)
    ? `the seller says that it cost $${usd}, and the price book makes it $${official}`
    : null;
}

function doubtModel({ reading, charge: { pricedAs, priceSource } }: Bill): string | null {
  // An owner's price is not doubted.
  if (pricedAs === null || priceSource === "config") return null;
  const model = reading.model ?? pricedAs;
  if (isSameModel(model, pricedAs)) return null;
  return `${model} has answered, which has no price: it is charged as ${pricedAs}`;
}

function doubtAttempts({ method, attempts }: Request): string | null {
  // Fetching a stored response costs nothing.
  const paid = method === "GET" ? [] : attempts.filter(mayBePaid);
  return paid.length > 1 ? describePaidTwice(paid.map(({ channel }) => channel)) : null;
}

/** The amount that limits count, if it is not the charge: an estimate, or what a plan pays. */
function countForLimits(r: Request, bill: Bill, gateway: Gateway): string | null {
  const { basis, assessment } = bill;
  const isKnown = isCharged(basis) && assessment.lacksOutput !== true;
  const isCharge = r.payer === undefined;
  if (isKnown && isCharge) return null;
  const multiplier = limitMultiplier(r.group);
  const charge = isCharge ? bill.charge : multiplyCharge(bill.charge, multiplier);
  const estimated = isKnown ? null : estimateCost(r, { ...bill, charge }, gateway);
  return estimated ?? charge.charge;
}

function estimateCost(r: Request, { basis, charge, reading }: Bill, gateway: Gateway): string | null {
  const { mostUsd, reservedUsd } = r.admission;
  if (reading.stored?.goesOn === true && mostUsd !== null) return mostUsd;
  const usage = basis === "unknown" ? sumUsage(reading.parts) : charge.usage;
  const counted = sumTokens([{ usage }]);
  const quote: Quote = r.asked ? quoteAt(r.asked, r, r.overrides, gateway) : () => null;
  // Estimates what the upstream did not count: prompt and seen output.
  const input = counted.prompt > 0 ? 0 : r.estimatedInput;
  const output = Math.max(0, reading.estimatedOutput - counted.output);
  if (isCharged(basis)) return addUsdTexts(charge.charge, quote({ input, output }));
  const all = { input: 0, output: 0, ...usage };
  all.input += input;
  all.output += output;
  // A kind without a price must not hide the other costs.
  return quote(all) ?? charge.atLeast ?? reservedUsd;
}

function isCharged(basis: Basis): boolean {
  return basis === "exact" || basis === "partial";
}

function addUsdTexts(a: string | null, b: string | null): string | null {
  return a === null || b === null ? null : formatUsd(addUsd(parseUsd(a), parseUsd(b)));
}
