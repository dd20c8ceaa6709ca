// What one line adds to the spending of its key, group, channel and session.

import { addUsd, parseUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import type { AnyLine, Line } from "./line.ts";

export interface Amounts {
  readonly charged: Usd;
  /** What limits count in addition: estimates, and what plans pay. */
  readonly estimated: Usd;
  /** What plans paid, by official prices. The charge does not include it. */
  readonly byPlan: Usd;
}

export type MutableAmounts = { -readonly [name in keyof Amounts]: Amounts[name] };

export const NOTHING: Amounts = { charged: ZERO_USD, estimated: ZERO_USD, byPlan: ZERO_USD };

export interface Share {
  /** The time of the request. */
  readonly time: string;
  readonly amounts: Amounts;
}

/** Two shares if the line replaces an earlier estimate. */
export function listShares(line: AnyLine): Share[] {
  const time = "request_time" in line ? line.request_time : line.time;
  const payer = "paid_by" in line ? line.paid_by : undefined;
  const now = "mark" in line ? { charge_usd: null, official_usd: null, limit_usd: line.limit_usd } : line;
  const amounts: MutableAmounts = readAmounts(now, payer);
  if ("was" in line) addAmounts(amounts, negate(readAmounts(line.was, payer)));
  const shares = [{ time, amounts }];
  const replaced = "replaces" in line ? line.replaces : undefined;
  if (replaced === undefined) return shares;
  const estimated = subtractUsd(ZERO_USD, parseUsd(replaced.limit_usd));
  return [...shares, { time: replaced.time, amounts: { ...NOTHING, estimated } }];
}

type AmountFields = Pick<Line, "charge_usd" | "official_usd" | "limit_usd">;

function readAmounts(
  { charge_usd: charge, official_usd: official, limit_usd: limit }: AmountFields,
  payer?: string,
): Amounts {
  const charged = charge === null ? ZERO_USD : parseUsd(charge);
  return {
    charged,
    estimated: limit === undefined ? ZERO_USD : subtractUsd(parseUsd(limit), charged),
    byPlan: payer === "plan" && official !== null ? parseUsd(official) : ZERO_USD,
  };
}

export function addAmounts(sum: MutableAmounts, { charged, estimated, byPlan }: Amounts): void {
  sum.charged = addUsd(sum.charged, charged);
  sum.estimated = addUsd(sum.estimated, estimated);
  sum.byPlan = addUsd(sum.byPlan, byPlan);
}

export function negate({ charged, estimated, byPlan }: Amounts): Amounts {
  return {
    charged: subtractUsd(ZERO_USD, charged),
    estimated: subtractUsd(ZERO_USD, estimated),
    byPlan: subtractUsd(ZERO_USD, byPlan),
  };
}
