// MONEY IS COMPUTED HERE ONLY: usage × price × multiplier → official amount
// and charge. Exact integer arithmetic; the official amount is never rounded,
// the charge once, half away from zero, at twelve decimals.

import {
  addDecimals,
  CHARGE_PLACES,
  decimalOf,
  formatDecimal,
  multiplyDecimals,
  parseDecimal,
  roundDecimal,
  shiftDecimal,
  type Decimal,
} from "../lib/money.ts";
import { findPrice, type Overrides, type PriceBook } from "./prices.ts";
import { chooseTariff, FACTOR, PER_1K } from "./tariff.ts";
import { sumUsage, type Part, type Tariff, type Usage } from "./usage.ts";

export interface Billed {
  readonly parts: readonly Part[];
  readonly tariff: Tariff;
  /** The model that the answer names. */
  readonly model: string | null;
  /** The model that the upstream was asked for: counts where the answer names none, and where only the config prices it. */
  readonly requested: string | null;
  readonly book: PriceBook;
  readonly overrides: Overrides;
  readonly at: Date;
  readonly multiplier: string;
}

/** One pass, as a ledger line tells it. A type, not an interface: a line takes it as a record. */
export type ChargedPart = {
  readonly model: string;
  readonly pass: string;
  readonly usage: Usage;
  /** Null where there is no price. */
  readonly prices: Readonly<Record<string, string>> | null;
  readonly tier: string | null;
  readonly official_usd: string | null;
};

/** Amounts are decimals; null where a price is missing, of one part or of all. */
export interface Charge {
  readonly usage: Usage;
  readonly parts: readonly ChargedPart[];
  /** What the answer's own model pays; each part has its own. */
  readonly prices: Readonly<Record<string, string>> | null;
  readonly priceSource: string | null;
  readonly tier: string | null;
  readonly official: string | null;
  readonly charge: string | null;
  /** Why the amounts are null. */
  readonly unpricedBecause: string | null;
}

interface Priced {
  readonly part: ChargedPart;
  readonly source: string | null;
  readonly amount: Decimal | null;
  readonly because: string | null;
}

const ZERO = decimalOf(0);

export function computeCharge(billed: Billed): Charge {
  const priced = billed.parts.map((part) => pricePart(part, billed));
  const usage = sumUsage(billed.parts);
  const parts = priced.map((each) => each.part);
  const own = parts.find(({ model }) => model === (billed.model ?? billed.requested)) ?? parts[0];
  let total = ZERO;
  for (const { amount, because } of priced) {
    if (amount === null) return { ...UNPRICED, usage, parts, unpricedBecause: because };
    total = total === ZERO ? amount : addDecimals(total, amount);
  }
  return {
    usage,
    parts,
    prices: own?.prices ?? {},
    priceSource: joinSources(priced),
    tier: own?.tier ?? null,
    official: priced.length === 1 ? (own?.official_usd ?? null) : formatDecimal(total),
    charge: multiplyUp(total, billed.multiplier),
    unpricedBecause: null,
  };
}

const UNPRICED = { prices: null, priceSource: null, tier: null, official: null, charge: null } as const;

function joinSources(priced: readonly Priced[]): string | null {
  if (priced.length === 1) return priced[0]?.source ?? null;
  return [...new Set(priced.map((each) => each.source))].join(", ") || null;
}

function pricePart(part: Part, billed: Billed): Priced {
  const { model, pass, usage } = part;
  const name = model ?? billed.model ?? billed.requested;
  if (name === null) return leaveUnpriced(part, "", "the answer names no model");
  const price = priceOf(name, model === null, billed);
  if (price === null) return leaveUnpriced(part, name, `no price for ${name}`);
  const chosen = chooseTariff(price, usage, billed.tariff);
  if ("missing" in chosen) return leaveUnpriced(part, name, `no price for ${chosen.missing} of ${name}`);
  const { prices, tier } = chosen;
  const amount = amountOf(usage, prices);
  if (amount === null) return leaveUnpriced(part, name, `no price for ${name}`);
  const told = { model: name, pass, usage, prices, tier, official_usd: formatDecimal(amount) };
  return { part: told, source: price.source, amount, because: null };
}

function leaveUnpriced({ pass, usage }: Part, model: string, because: string): Priced {
  const part = { model, pass, usage, prices: null, tier: null, official_usd: null };
  return { part, source: null, amount: null, because };
}

/** A price that the config gives the asked-for name is meant for its answers, whatever these call their model. */
function priceOf(name: string, isOwn: boolean, { book, overrides, requested, at }: Billed) {
  const found = findPrice(book, overrides, name, at);
  if (found !== null || !isOwn || requested === null || !overrides.has(requested)) return found;
  return findPrice(book, overrides, requested, at);
}

/** The one place where an official amount comes about; null where a kind that was used has no price. */
function amountOf(
  usage: Readonly<Record<string, number | undefined>>,
  prices: Readonly<Record<string, string>>,
): Decimal | null {
  let tokens = ZERO;
  let calls = ZERO;
  for (const kind in usage) {
    const count = usage[kind];
    if (count === undefined || count === 0 || kind === "reasoning") continue;
    const perMillion = prices[kind];
    const rate = perMillion ?? prices[kind + PER_1K];
    if (rate === undefined) return null;
    const amount = multiplyDecimals(decimalOf(count), readCached(rate));
    if (perMillion === undefined) calls = addDecimals(calls, amount);
    else tokens = addDecimals(tokens, amount);
  }
  for (const name in prices) {
    if (name.startsWith(FACTOR)) tokens = multiplyDecimals(tokens, readCached(prices[name] ?? ""));
  }
  if (calls === ZERO) return shiftDecimal(tokens, 6);
  return addDecimals(shiftDecimal(tokens, 6), shiftDecimal(calls, 3));
}

function multiplyUp(official: Decimal, multiplier: string): string {
  return formatDecimal(roundDecimal(multiplyDecimals(official, readCached(multiplier)), CHARGE_PLACES));
}

const MAX_CACHED = 4096;
const cached = new Map<string, Decimal>();

/** The same few prices come again and again. */
function readCached(text: string): Decimal {
  const known = cached.get(text);
  if (known !== undefined) return known;
  if (cached.size >= MAX_CACHED) cached.clear();
  const value = parseDecimal(text);
  cached.set(text, value);
  return value;
}

/** What a ledger line says of its money. */
export interface Derivable {
  readonly usage: Readonly<Record<string, number | undefined>>;
  readonly prices: Readonly<Record<string, string>> | null;
  readonly multiplier: string;
  readonly parts?: readonly Pick<Derivable, "usage" | "prices">[] | undefined;
}

export interface Amounts {
  readonly official: string | null;
  readonly charge: string | null;
  /** Each part's official amount, in the line's order. */
  readonly parts: readonly (string | null)[];
}

/** A line's amounts, from nothing but the line itself; null where it has no prices. Throws on a malformed decimal. */
export function deriveAmounts({ usage, prices, multiplier, parts }: Derivable): Amounts {
  const amounts = (parts ?? [{ usage, prices }]).map((part) =>
    part.prices === null ? null : amountOf(part.usage, part.prices),
  );
  const known = amounts.filter((amount) => amount !== null);
  const total =
    known.length === amounts.length ? known.reduce((sum, amount) => addDecimals(sum, amount), ZERO) : null;
  return {
    official: total === null ? null : formatDecimal(total),
    charge: total === null ? null : multiplyUp(total, multiplier),
    parts:
      parts === undefined ? [] : amounts.map((amount) => (amount === null ? null : formatDecimal(amount))),
  };
}

/** An official amount times a multiplier before it is rounded, for who explains the rounding. */
export function multiplyExactly(official: string, multiplier: string): string {
  return formatDecimal(multiplyDecimals(parseDecimal(official), readCached(multiplier)));
}
