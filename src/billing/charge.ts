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
  roundUsd,
  shiftDecimal,
  subtractDecimals,
  subtractUsd,
  type Decimal,
  type Usd,
  ZERO_USD,
} from "../lib/money.ts";
import { CACHED_KINDS, splitMissed } from "./miss.ts";
import { type BilledAnswer, type PricedPart, priceParts } from "./prices/price-parts.ts";
import { FACTOR, PER_1K, type TariffChoice } from "./tariff.ts";
import { sumUsage, type Usage } from "./usage.ts";

export type { BilledAnswer } from "./prices/price-parts.ts";

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
  const { priceSource, pricedAs } = describeSources(priced);
  const known = { usage, parts, tier: own?.tier ?? null, priceSource, pricedAs };
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
  const [first] = priced;
  if (first !== undefined && priced.length === 1)
    return { priceSource: first.source, pricedAs: first.pricedAs };
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
  const amount = isWhole ? amountOf(usage, unitsOf(chosen, usage)) : null;
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

type Counts = Readonly<Record<string, number | undefined>>;
type Prices = Readonly<Record<string, string>>;

/** What one token or call costs, in units of the same size. */
interface UnitPrices {
  /** For each kind of the usage, in its order; null: nothing of it is charged. */
  readonly units: readonly (bigint | null)[];
  readonly isCall: readonly boolean[];
  /** The decimals of these units. */
  readonly scale: number;
  /** By which the amount of all tokens is multiplied. */
  readonly factor: Decimal;
}

const ONE = decimalOf(1);
const TOKENS_PLACES = 6;
const CALLS_PLACES = 3;
const unitPrices = new WeakMap<TariffChoice, UnitPrices | null>();

/** The choice is the same object for all usage of the same kinds at the same price. */
function unitsOf(chosen: TariffChoice, usage: Counts): UnitPrices | null {
  const known = unitPrices.get(chosen);
  if (known !== undefined) return known;
  const units = readUnits(usage, chosen.prices);
  unitPrices.set(chosen, units);
  return units;
}

/** Null where a kind that was used has no price. Only prices of what was used are read. */
function readUnits(usage: Counts, prices: Prices): UnitPrices | null {
  const rates: (Decimal | null)[] = [];
  const isCall: boolean[] = [];
  for (const kind in usage) {
    const perMillion = prices[kind];
    isCall.push(perMillion === undefined);
    if (!isUsed(kind, usage[kind])) {
      rates.push(null);
      continue;
    }
    const rate = perMillion ?? prices[kind + PER_1K];
    if (rate === undefined) return null;
    rates.push(shiftDecimal(readCached(rate), perMillion === undefined ? CALLS_PLACES : TOKENS_PLACES));
  }
  const factor = readFactor(prices);
  const scale = rates.reduce((most, rate) => Math.max(most, rate?.scale ?? 0), 0);
  const zero = { units: 0n, scale };
  return { units: rates.map((rate) => rate && addDecimals(rate, zero).units), isCall, scale, factor };
}

function readFactor(prices: Prices): Decimal {
  let factor = ONE;
  for (const name in prices)
    if (name.startsWith(FACTOR)) factor = multiplyDecimals(factor, readCached(prices[name] ?? ""));
  return factor;
}

function isUsed(kind: string, count: number | undefined): boolean {
  return count !== undefined && count !== 0 && kind !== "reasoning";
}

/** The one place where an official amount comes about; null where a kind that was used has no price. */
function amountOf(usage: Counts, prices: UnitPrices | null): Decimal | null {
  if (prices === null) return null;
  const { units, isCall, scale, factor } = prices;
  let tokens = 0n;
  let calls = 0n;
  let index = -1;
  for (const kind in usage) {
    index += 1;
    const unit = units[index];
    if (unit === null || unit === undefined) continue;
    const product = BigInt(usage[kind] ?? 0) * unit;
    if (isCall[index] === true) calls += product;
    else tokens += product;
  }
  if (factor === ONE) return { units: tokens + calls, scale };
  return addDecimals(multiplyDecimals({ units: tokens, scale }, factor), { units: calls, scale });
}

/** The charge of an official amount: it is rounded here, once. */
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

/** The same usage at the same prices, with another multiplier. */
export function multiplyCharge(charge: Charge, multiplier: string): Charge {
  const { official, usage, parts, prices } = charge;
  if (official !== null) return { ...charge, charge: multiplyUp(parseDecimal(official), multiplier) };
  return { ...charge, atLeast: deriveAtLeast({ usage, prices, parts, multiplier }).atLeast };
}

/** The source of an amount that the seller has named. */
export const REPORTED = "reported";

/** An amount that the seller has named: the same usage, without prices of ours. */
export function chargeAmount({ usage, parts }: Charge, official: string, multiplier: string): Charge {
  return {
    usage,
    parts: parts.map((part) => ({ ...part, prices: null, official_usd: null })),
    prices: null,
    priceSource: REPORTED,
    pricedAs: null,
    tier: null,
    official,
    charge: multiplyUp(parseDecimal(official), multiplier),
    unpricedBecause: null,
    unpricedUsage: null,
    atLeast: null,
  };
}

const HUNDRED = decimalOf(100);
/** A difference up to this is one of rounding: a millionth of a dollar. */
const ROUNDING = parseDecimal("0.000001");

/** By more than 1 % of the seller's amount, and by more than rounding makes. */
export function differsFromSeller(official: string, reported: string): boolean {
  const theirs = parseDecimal(reported);
  const more = subtractDecimals(parseDecimal(official), theirs);
  const apart = more.units < 0n ? { ...more, units: -more.units } : more;
  const isMore = (most: Decimal): boolean => subtractDecimals(apart, most).units > 0n;
  return isMore(ROUNDING) && subtractDecimals(multiplyDecimals(apart, HUNDRED), theirs).units > 0n;
}

/** What a ledger line says of its money. */
export interface Derivable {
  readonly usage: Readonly<Record<string, number | undefined>>;
  readonly prices: Readonly<Record<string, string>> | null;
  readonly multiplier: string;
  readonly parts?: readonly Pick<Derivable, "usage" | "prices">[] | undefined;
  /** The amount that the seller has named, if that is what was charged. */
  readonly reported?: string | undefined;
}

export interface Amounts {
  readonly official: string | null;
  readonly charge: string | null;
  /** Each part's official amount, in the line's order. */
  readonly parts: readonly (string | null)[];
}

/** A line's amounts, from nothing but the line itself; null where it has no prices. Throws on a malformed decimal. */
export function deriveAmounts({ usage, prices, multiplier, parts, reported }: Derivable): Amounts {
  if (reported !== undefined) {
    const charge = multiplyUp(parseDecimal(reported), multiplier);
    return { official: reported, charge, parts: (parts ?? []).map(() => null) };
  }
  const amounts = (parts ?? [{ usage, prices }]).map((part) =>
    part.prices === null ? null : amountOf(part.usage, readUnits(part.usage, part.prices)),
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
  const paid = prices === null ? null : amountOf(split.paid, readUnits(split.paid, prices));
  const read = prices === null ? null : amountOf(split.read, readUnits(split.read, prices));
  if (paid === null || read === null) return null;
  const more = subtractDecimals(paid, read);
  return more.units < 0n ? "0" : multiplyUp(more, multiplier);
}

/**
 * What a request would have cost more without a cache, at its own prices; negative where writing to it cost more than reading
 * saved. Nothing if the line lacks a price.
 */
export function deriveCacheSaving({ usage, prices, multiplier, parts, official }: CachedLine): Usd {
  let more = ZERO;
  for (const part of parts ?? [{ usage, prices }]) {
    const saved = savePart(part.usage, part.prices ?? {});
    if (saved === null) return ZERO_USD;
    more = addDecimals(more, saved);
  }
  if (more.units === 0n) return ZERO_USD;
  const times = readCached(multiplier);
  const before = roundUsd(multiplyDecimals(official, times));
  return subtractUsd(roundUsd(multiplyDecimals(addDecimals(official, more), times)), before);
}

/** Null: what was cached, or would have been sent instead, has no price. */
function savePart(usage: Counts, prices: Prices): Decimal | null {
  let more = ZERO;
  for (const [kind, plain] of CACHED_KINDS) {
    const count = usage[kind] ?? 0;
    if (count === 0) continue;
    const [paid, without] = [prices[kind], prices[plain]];
    if (paid === undefined || without === undefined) return null;
    const each = subtractDecimals(readCached(without), readCached(paid));
    more = addDecimals(more, multiplyDecimals(each, decimalOf(count)));
  }
  return more.units === 0n ? more : shiftDecimal(multiplyDecimals(more, readFactor(prices)), TOKENS_PLACES);
}

interface CachedLine extends Omit<Derivable, "reported"> {
  readonly official: Decimal;
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
  const amounts = known.map(({ priced, prices: paid }) => amountOf(priced, readUnits(priced, paid)) ?? ZERO);
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
