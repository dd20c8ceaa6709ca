// A seller's amount (xAI's ticks, the `cost` of OpenRouter, Vercel and
// Perplexity) is compared with ours, or charged (`bill: reported`).

import type { Reading, ReportedAmount } from "../../billing/usage.ts";
import type { Assessment } from "../../billing/assess.ts";
import { type Charge, chargeAmount, differsFromSeller } from "../../billing/charge.ts";
import { isSameModel } from "../../billing/prices/names.ts";
import type { Seller } from "../../billing/prices.ts";
import type { Group } from "../../config/catalog.ts";

export interface Bill {
  readonly assessment: Assessment;
  readonly charge: Charge;
  readonly reading: Reading | null;
  readonly seller: Seller | undefined;
}

export interface JudgedBill extends Pick<Bill, "assessment" | "charge"> {
  readonly providerUsd?: string | undefined;
}

const UNREADABLE = "the seller's own amount cannot be read";
const MISSING = "the seller named no amount for all of it: the price book's counts";

export function judgeBill(bill: Bill, { multiplier }: Pick<Group, "multiplier">): JudgedBill {
  const { assessment, charge, reading, seller } = bill;
  const isBelieved = seller?.bill === "reported";
  const reported = reading?.reportedAmount;
  const providerUsd = reported?.usd ?? undefined;
  if ((isBelieved || isUnpriced(bill)) && providerUsd !== undefined && reported?.isWhole) {
    const { lacksOutput: _counted, ...known } = assessment;
    const own = chargeAmount(charge, providerUsd, multiplier);
    return { assessment: { ...known, basis: "exact" }, charge: own, providerUsd };
  }
  const doubt = isBelieved ? doubtMissing(assessment, reported) : compare(bill, reported);
  const doubts = [doubt, doubtModel(bill)].filter((each) => each !== null);
  return { assessment: addDoubts(assessment, doubts), charge, providerUsd };
}

function addDoubts(assessment: Assessment, doubts: readonly string[]): Assessment {
  if (doubts.length === 0) return assessment;
  return { ...assessment, suspect: [assessment.suspect ?? [], doubts].flat().join("; ") };
}

function isUnpriced({ charge, assessment }: Bill): boolean {
  return charge.official === null && charge.parts.length > 0 && assessment.basis === "exact";
}

function doubtMissing(
  { basis, parts, unbilled }: Assessment,
  reported: ReportedAmount | undefined,
): string | null {
  // The answer is an error or an unbilled refusal.
  const isUnused = basis === "exact" && (parts.length === 0 || unbilled !== undefined);
  if (reported === undefined) return isUnused ? null : MISSING;
  return reported.usd === null ? UNREADABLE : MISSING;
}

/** Compares only prices of the book: an owner's own prices may differ. */
function compare({ charge, assessment }: Bill, reported: ReportedAmount | undefined): string | null {
  const { official, priceSource } = charge;
  if (reported === undefined) return null;
  const { usd, isWhole } = reported;
  if (usd === null) return UNREADABLE;
  if (!isWhole || official === null || assessment.basis !== "exact") return null;
  if (priceSource?.split(", ").every((source) => source.startsWith("book ")) !== true) return null;
  return differsFromSeller(official, usd)
    ? `the seller says that it cost $${usd}, and the price book makes it $${official}`
    : null;
}

/** An owner's price is not doubted. */
function doubtModel({ reading, charge: { pricedAs, priceSource } }: Bill): string | null {
  if (pricedAs === null || priceSource === "config") return null;
  const model = reading?.model ?? pricedAs;
  if (isSameModel(model, pricedAs)) return null;
  return `${model} has answered, which has no price: it is charged as ${pricedAs}`;
}
