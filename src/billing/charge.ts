// MONEY IS COMPUTED HERE ONLY: usage × price × multiplier → official amount
// and charge. Exact integer arithmetic; the official amount is never rounded,
// the charge once, half away from zero, at twelve decimals.

import { BoundedMap } from "../lib/memory/bounded-map.ts";
import {
  addDecimals,
  CHARGE_PLACES,
  decimalOf,
  formatDecimal,
  multiplyDecimals,
  parseDecimal,
  roundDecimal,
  shiftDecimal,
  subtractDecimals,
  type Decimal,
} from "../lib/money.ts";
import { splitMissed } from "./miss.ts";
import { type BilledAnswer, type PricedPart, priceParts } from "./price-parts.ts";
import { FACTOR, PER_1K } from "./tariff.ts";
import { sumUsage, type Usage } from "./usage.ts";

export type { BilledAnswer } from "./price-parts.ts";

/** One pass, as a ledger line shows it. A type, not an interface: a line takes it as a record. */
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
  /** The requested model's name, if its price was used because the answer's own name has none. */
  readonly pricedAs: string | null;
  readonly tier: string | null;
  readonly official: string | null;
  readonly charge: string | null;
  /** Why the amounts are null. */
  readonly unpricedBecause: string | null;
  /** What has no price, and how much of it; null where all has. */
  readonly unpricedUsage: Readonly<Record<string, number>> | null;
  /** Where only some kinds have no price: what is charged for all others, at least. */
  readonly atLeast: string | null;
}

interface PartCharge {
  readonly part: ChargedPart;
  readonly source: string | null;
  readonly pricedAs: string | null;
  readonly amount: Decimal | null;
  readonly because: string | null;
}

const ZERO = decimalOf(0);

export function computeCharge(billed: BilledAnswer): Charge {
  const priced = priceParts(billed).map(chargePart);
  const usage = sumUsage(billed.parts);
  const parts = priced.map((each) => each.part);
  const own = parts.find(({ model }) => model === (billed.model ?? billed.requested)) ?? parts[0];
  const known = { usage, parts, tier: own?.tier ?? null, ...describeSources(priced) };
  let total = ZERO;
  for (const { amount, because } of priced) {
    if (amount === null) return leaveUnpriced(known, own, billed.multiplier, because);
    total = total === ZERO ? amount : addDecimals(total, amount);
  }
  return {
    ...known,
    prices: own?.prices ?? {},
    official: priced.length === 1 ? (own?.official_usd ?? null) : formatDecimal(total),
    charge: multiplyUp(total, billed.multiplier),
    unpricedBecause: null,
    unpricedUsage: null,
    atLeast: null,
  };
}

type KnownUsage = Pick<Charge, "usage" | "parts" | "priceSource" | "pricedAs" | "tier">;

/** The amounts are not known; what is known of them is the least that they can be. */
function leaveUnpriced(
  known: KnownUsage,
  own: ChargedPart | undefined,
  multiplier: string,
  because: string | null,
): Charge {
  const { usage, parts } = known;
  const { atLeast, unpriced } = deriveAtLeast({ usage, prices: own?.prices ?? null, multiplier, parts });
  return {
    ...known,
    prices: own?.prices ?? null,
    official: null,
    charge: null,
    unpricedBecause: because,
    unpricedUsage: unpriced,
    atLeast,
  };
}

function describeSources(priced: readonly PartCharge[]): Pick<Charge, "priceSource" | "pricedAs"> {
  let priceSource: string | null = null;
  let pricedAs: string | null = null;
  const listed: string[] = [];
  for (const each of priced) {
    pricedAs ??= each.pricedAs;
    if (each.source === null || listed.includes(each.source)) continue;
    listed.push(each.source);
    priceSource = priceSource === null ? each.source : `${priceSource}, ${each.source}`;
  }
  return { priceSource, pricedAs };
}

function chargePart({ model, pass, usage, chosen, source, pricedAs, because }: PricedPart): PartCharge {
  const isWhole = chosen !== null && chosen.unpriced.length === 0;
  const amount = isWhole ? amountOf(usage, chosen.prices) : null;
  const part = {
    model,
    pass,
    usage,
    prices: chosen?.prices ?? null,
    tier: chosen?.tier ?? null,
    official_usd: amount === null ? null : formatDecimal(amount),
  };
  return { part, source, pricedAs, amount, because };
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
const cached = new BoundedMap<string, Decimal>(MAX_CACHED);

/** The same few prices come again and again. */
function readCached(text: string): Decimal {
  const known = cached.get(text);
  if (known !== undefined) return known;
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

/**
 * What missed tokens of a prompt cost more than if they had been read from the cache. Null if one of them has no price.
 * The difference counts as zero where a read costs more than what was paid.
 */
export function deriveMissCost({ usage, prices, multiplier }: Derivable, missed: number): string | null {
  const split = splitMissed(usage, missed);
  const paid = prices === null ? null : amountOf(split.paid, prices);
  const read = prices === null ? null : amountOf(split.read, prices);
  if (paid === null || read === null) return null;
  const more = subtractDecimals(paid, read);
  return more.units < 0n ? "0" : multiplyUp(more, multiplier);
}

export interface Least {
  /** What is charged for all kinds that have a price; null if no kind has a price, or every kind has one. */
  readonly atLeast: string | null;
  /** The kinds without a price, and their counts; null: every kind has a price. */
  readonly unpriced: Readonly<Record<string, number>> | null;
}

/** What is known of a line's charge though kinds that it counts have no price. Throws on a malformed decimal. */
export function deriveAtLeast({ usage, prices, multiplier, parts }: Derivable): Least {
  const all = parts === undefined || parts.length === 0 ? [{ usage, prices }] : parts;
  const split = all.map((part) => splitUsage(part.usage, part.prices ?? {}));
  const unpriced: Record<string, number> = {};
  for (const [kind, count] of split.flatMap((each) => each.unpriced))
    unpriced[kind] = (unpriced[kind] ?? 0) + count;
  if (Object.keys(unpriced).length === 0) return { atLeast: null, unpriced: null };
  const known = split.filter((each) => Object.keys(each.priced).length > 0);
  const amounts = known.map(({ priced, prices: paid }) => amountOf(priced, paid) ?? ZERO);
  const total = amounts.reduce((sum, amount) => addDecimals(sum, amount), ZERO);
  return { atLeast: known.length === 0 ? null : multiplyUp(total, multiplier), unpriced };
}

function splitUsage(usage: Derivable["usage"], prices: Readonly<Record<string, string>>) {
  const counted = Object.entries(usage).flatMap(([kind, count = 0]): [string, number][] =>
    count === 0 || kind === "reasoning" ? [] : [[kind, count]],
  );
  const isPriced = ([kind]: readonly [string, number]): boolean =>
    (prices[kind] ?? prices[kind + PER_1K]) !== undefined;
  return {
    prices,
    priced: Object.fromEntries(counted.filter(isPriced)),
    unpriced: counted.filter((each) => !isPriced(each)),
  };
}

/** An official amount times a multiplier before it is rounded, for who explains the rounding. */
export function multiplyExactly(official: string, multiplier: string): string {
  return formatDecimal(multiplyDecimals(parseDecimal(official), readCached(multiplier)));
}
