// The amount that a seller puts into its answer: xAI's ticks, the `cost` of OpenRouter, Vercel and Perplexity. It is kept in
// the line and compared with ours, or it is what is charged (`bill: reported`).

import type { Assessment } from "../../billing/assess.ts";
import { type Charge, chargeAmount, differsFromSeller } from "../../billing/charge.ts";
import { formatDecimal, parseNumber } from "../../lib/money.ts";
import { readNumberText } from "../../lib/json/exact-json.ts";
import { getField, isObject } from "../../lib/json/json.ts";

interface ReportedAmount {
  /** A decimal in USD; null: it cannot be read. */
  readonly usd: string | null;
  /** The seller's bill has more than this: OpenRouter with a provider's key of the user's own. */
  readonly isPart: boolean;
}

/** https://docs.x.ai/developers/cost-tracking: a dollar has 10^10 ticks. */
const TICK_PLACES = 10;

/** `raw`: the upstream's own usage. Null: it names no amount. */
function readReportedAmount(raw: unknown): ReportedAmount | null {
  if (!isObject(raw)) return null;
  const ticks = raw["cost_in_usd_ticks"] ?? null;
  const cost = raw["cost"] ?? null;
  if (ticks === null && cost === null) return null;
  const amount = ticks === null ? readAmount(readTotalCost(cost), 0) : readAmount(ticks, TICK_PLACES);
  // https://openrouter.ai/docs/use-cases/usage-accounting
  return { usd: amount, isPart: raw["is_byok"] === true };
}

function readAmount(value: unknown, places: number): string | null {
  const amount = parseNumber(readNumberText(value) ?? "", places);
  return amount && formatDecimal(amount);
}

/** Perplexity divides the cost by kind. */
function readTotalCost(cost: unknown): unknown {
  const total = getField(cost, "total_cost");
  const currency = getField(cost, "currency") ?? "USD";
  return total === undefined || currency !== "USD" ? cost : total;
}

export interface Billing {
  /** By the prices that are known here. */
  readonly charge: Charge;
  readonly assessment: Assessment;
  /** The upstream's own usage, and whether all of it has been reported. */
  readonly raw: unknown;
  readonly isFinal: boolean;
  /** The channel's seller is believed. */
  readonly isBelieved: boolean;
  readonly multiplier: string;
}

export interface ReportedBill {
  /** Null: the seller's amount is not what is charged. */
  readonly charge: Charge | null;
  readonly providerUsd: string | undefined;
  /** Why a person should look at the amounts. */
  readonly suspect: string | null;
}

const UNREADABLE = "the seller's own amount cannot be read";
const MISSING = "the seller named no amount for all of it: the price book's counts";

export function billReported(billing: Billing): ReportedBill {
  const { raw, isBelieved } = billing;
  const reported = readReportedAmount(raw);
  const providerUsd = reported?.usd ?? undefined;
  if (isBelieved) return { ...believe(billing, reported), providerUsd };
  return { charge: null, providerUsd, suspect: reported === null ? null : compare(billing, reported) };
}

function believe(
  { charge, assessment, isFinal, multiplier }: Billing,
  reported: ReportedAmount | null,
): Pick<ReportedBill, "charge" | "suspect"> {
  if (reported === null) return { charge: null, suspect: isUnused(assessment) ? null : MISSING };
  const { usd, isPart } = reported;
  if (usd === null) return { charge: null, suspect: UNREADABLE };
  if (isPart || !isFinal) return { charge: null, suspect: MISSING };
  return { charge: chargeAmount(charge, usd, multiplier), suspect: null };
}

/** An error, or a refusal that nobody bills. */
function isUnused({ basis, parts, unbilled }: Assessment): boolean {
  return basis === "exact" && (parts.length === 0 || unbilled !== undefined);
}

/** Only what the book has priced: an owner's own prices may differ. */
function compare({ charge, assessment }: Billing, { usd, isPart }: ReportedAmount): string | null {
  const { official, priceSource } = charge;
  if (usd === null) return UNREADABLE;
  if (isPart || official === null || assessment.basis !== "exact") return null;
  if (priceSource?.split(", ").every((source) => source.startsWith("book ")) !== true) return null;
  return differsFromSeller(official, usd)
    ? `the seller says that it cost $${usd}, and the price book makes it $${official}`
    : null;
}
