// MONEY IS COMPUTED HERE ONLY, exactly: usage × price = official amount, × multiplier = charge.
// Only the charge is rounded, once, half away from zero, at twelve decimals.

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
  ZERO_DECIMAL,
} from "../lib/money.ts";
import { findPrice, type Price, type PriceSources } from "./prices.ts";
import { chooseNothing, chooseTariff, FACTOR, PER_1K, type TariffChoice } from "./tariff.ts";
import { addCounts, type Counts, type Part, sumUsage, type Tariff, type Usage } from "./usage.ts";

export interface BilledAnswer extends PriceSources {
  readonly parts: readonly Part[];
  readonly tariff: Tariff;
  readonly model: string | null;
  /** The requested model, for answers without a model or with one that has no price. */
  readonly requested: string | null;
  /** Why nothing is charged: the line's `price_source`. Absent: the answer is charged. */
  readonly unbilled?: string | undefined;
  readonly at: Date;
  readonly multiplier: string;
}

/** Amounts are decimals. Null: some part has no price. */
export type Charge = Readonly<ReturnType<typeof computeCharge>>;

const ALL_PRICED = { atLeast: null, unpriced: null };

export function computeCharge(billed: BilledAnswer) {
  const { model, requested, multiplier } = billed;
  const priced = billed.parts.flatMap((part) => pricePart(part, billed));
  const paid = priced.map(({ model: own, pass, usage: used, chosen }) => {
    return { model: own, pass, usage: used, prices: chosen?.prices ?? null, tier: chosen?.tier ?? null };
  });
  const usage = sumUsage(billed.parts);
  const own = paid.find((part) => part.model === (model ?? requested)) ?? paid[0];
  const { prices = null, tier = null } = own ?? {};
  const derivable = { usage, prices, multiplier, parts: paid };
  const { official, charge, parts } = deriveAmounts(derivable);
  const sources = priced.flatMap(({ source }) => source ?? []);
  const { unpriced, atLeast } = official === null ? deriveAtLeast(derivable) : ALL_PRICED;
  return {
    usage,
    parts: paid.map((part, index) => ({ ...part, official_usd: parts[index] ?? null })),
    /** The prices of the answer's own model. Each part has its own. */
    prices: prices ?? (official === null ? null : {}),
    tier,
    priceSource: [...new Set(sources)].join(", ") || null,
    /** The requested model, if its price replaced the missing price of the answer's model. */
    pricedAs: priced.flatMap(({ pricedAs }) => pricedAs ?? [])[0] ?? null,
    official,
    charge,
    unpricedBecause: priced[parts.indexOf(null)]?.because ?? null,
    /** The kinds without a price and their counts. Null: all have a price. */
    unpricedUsage: unpriced,
    /** If only some kinds have no price: the charge for all others. */
    atLeast,
  };
}

interface PricedPart {
  readonly model: string;
  readonly pass: string;
  readonly usage: Usage;
  readonly chosen: TariffChoice | null;
  readonly source: string | null;
  readonly pricedAs: string | null;
  /** The kinds without a price. Null: all have a price. */
  readonly because: string | null;
}

/** The length of one call's prompt decides its prices, so each reported call is a part. */
function pricePart({ model, pass, usage, calls = [] }: Part, billed: BilledAnswer): PricedPart[] {
  const name = model ?? billed.model ?? billed.requested;
  const pay = (own: Usage, paid: Partial<PricedPart>): PricedPart => {
    const unpaid = { chosen: null, source: null, pricedAs: null, because: null };
    return { model: name ?? "", pass, usage: own, ...unpaid, ...paid };
  };
  const free = billed.seller?.free === true ? "free" : billed.unbilled;
  if (free !== undefined) return [pay(usage, { source: free, chosen: chooseNothing(usage) })];
  if (name === null) return [pay(usage, { because: "the answer names no model" })];
  const found = priceOf(name, model === null, billed);
  if (found === null) return [pay(usage, { because: `no price for ${name}` })];
  const { price, pricedAs } = found;
  const pieces = price.tiers !== undefined && calls.length > 1 ? calls : [usage];
  return pieces.map((piece) => {
    const chosen = chooseTariff(price, piece, billed.tariff);
    if ("missing" in chosen) return pay(piece, { because: `no price for ${chosen.missing} of ${name}` });
    const { unpriced, prices } = chosen;
    // The requested model has no price for a search, either: its price is not used.
    if (pricedAs !== null && unpriced.length > 0 && Object.keys(prices).length === 0)
      return pay(piece, { because: `no price for ${name}` });
    const because = unpriced.length > 0 ? `no price for ${unpriced.join(" and ")} of ${name}` : null;
    return pay(piece, { source: price.source, pricedAs, chosen, because });
  });
}

function priceOf(
  name: string,
  isOwn: boolean,
  billed: BilledAnswer,
): { readonly price: Price; readonly pricedAs: string | null } | null {
  const { requested, at } = billed;
  const own = findPrice(billed, name, at);
  if (own !== null) return { price: own, pricedAs: null };
  if (!isOwn || requested === null || requested === name) return null;
  const price = findPrice(billed, requested, at);
  return price && { price, pricedAs: requested };
}

/** Null: some amount is unknown. */
function addAll(amounts: readonly (Decimal | null)[]): Decimal | null {
  let sum = ZERO_DECIMAL;
  for (const amount of amounts) {
    if (amount === null) return null;
    sum = addDecimals(sum, amount);
  }
  return sum;
}

type Prices = Readonly<Record<string, string>>;

const TOKENS_PLACES = 6;
const CALLS_PLACES = 3;

/** The only place that computes an official amount. Null: a used kind has no price. */
function multiplyUsage(usage: Counts, prices: Prices): Decimal | null {
  let tokens = ZERO_DECIMAL;
  let calls = ZERO_DECIMAL;
  for (const kind in usage) {
    const count = usage[kind];
    if (!isUsed(kind, count)) continue;
    const perMillion = prices[kind];
    const rate = perMillion ?? prices[kind + PER_1K];
    if (rate === undefined) return null;
    const amount = multiplyDecimals(parseDecimal(rate), decimalOf(count));
    if (perMillion === undefined) calls = addDecimals(calls, amount);
    else tokens = addDecimals(tokens, amount);
  }
  const official = shiftDecimal(multiplyFactors(tokens, prices), TOKENS_PLACES);
  return calls === ZERO_DECIMAL ? official : addDecimals(official, shiftDecimal(calls, CALLS_PLACES));
}

function isUsed(kind: string, count: number | undefined): count is number {
  return count !== undefined && count !== 0 && kind !== "reasoning";
}

function multiplyFactors(tokens: Decimal, prices: Prices): Decimal {
  let product = tokens;
  for (const name in prices)
    if (name.startsWith(FACTOR)) product = multiplyDecimals(product, parseDecimal(prices[name] ?? ""));
  return product;
}

/** The charge of an official amount. This is the only rounding. */
function multiplyUp(official: Decimal, multiplier: string): string {
  return formatDecimal(roundDecimal(multiplyDecimals(official, parseDecimal(multiplier)), CHARGE_PLACES));
}

export function multiplyCharge(charge: Charge, multiplier: string): Charge {
  const { official, usage, parts, prices } = charge;
  if (official !== null) return { ...charge, charge: multiplyUp(parseDecimal(official), multiplier) };
  return { ...charge, atLeast: deriveAtLeast({ usage, prices, parts, multiplier }).atLeast };
}

export const REPORTED = "reported";

/** Charges an amount that the seller named: the usage stays, our prices go. */
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
/** Smaller differences come from rounding: a millionth of a dollar. */
const ROUNDING = parseDecimal("0.000001");

/** By more than 1 % of the seller's amount, and by more than a rounding difference. */
export function differsFromSeller(official: string, reported: string): boolean {
  const theirs = parseDecimal(reported);
  const more = subtractDecimals(parseDecimal(official), theirs);
  const apart = more.units < 0n ? { ...more, units: -more.units } : more;
  const isMore = (most: Decimal): boolean => subtractDecimals(apart, most).units > 0n;
  return isMore(ROUNDING) && subtractDecimals(multiplyDecimals(apart, HUNDRED), theirs).units > 0n;
}

export interface Derivable {
  readonly usage: Counts;
  readonly prices: Readonly<Record<string, string>> | null;
  readonly multiplier: string;
  readonly parts?: readonly Pick<Derivable, "usage" | "prices">[] | undefined;
  readonly reported?: string | undefined;
}

/** A line's amounts, and its parts' amounts. Null: no prices. Throws on a malformed decimal. */
export function deriveAmounts({ usage, prices, multiplier, parts, reported }: Derivable) {
  if (reported !== undefined) {
    const charge = multiplyUp(parseDecimal(reported), multiplier);
    return { official: reported, charge, parts: (parts ?? []).map(() => null) };
  }
  const own = { usage, prices };
  const amounts = (parts ?? [own]).map((part) => part.prices && multiplyUsage(part.usage, part.prices));
  const total = addAll(amounts);
  return {
    official: total && formatDecimal(total),
    charge: total && multiplyUp(total, multiplier),
    parts: parts === undefined ? [] : amounts.map((amount) => amount && formatDecimal(amount)),
  };
}

/** How much more missed tokens cost than cache reads, at least 0. Null: some have no price. */
export function deriveMissCost({ usage, prices, multiplier }: Derivable, missed: number): string | null {
  const split = splitMissed(usage, missed);
  const paid = prices && multiplyUsage(split.paid, prices);
  const read = prices && multiplyUsage(split.read, prices);
  if (paid === null || read === null) return null;
  const more = subtractDecimals(paid, read);
  return more.units < 0n ? "0" : multiplyUp(more, multiplier);
}

/** The charge for kinds with a price (null if none or all have one), and the counts of kinds
 *  without one (null: none). Throws on a malformed decimal. */
export function deriveAtLeast({ usage, prices, multiplier, parts }: Derivable) {
  const all = parts === undefined || parts.length === 0 ? [{ usage, prices }] : parts;
  const split = all.map((part) => splitUsage(part.usage, part.prices ?? {}));
  const unpriced = addCounts(split.flatMap((each) => each.unpriced));
  if (Object.keys(unpriced).length === 0) return ALL_PRICED;
  const known = split.filter((each) => Object.keys(each.priced).length > 0);
  const total = addAll(known.map(({ priced, prices: paid }) => multiplyUsage(priced, paid) ?? ZERO_DECIMAL));
  return { atLeast: known.length === 0 || total === null ? null : multiplyUp(total, multiplier), unpriced };
}

function splitUsage(usage: Counts, prices: Prices) {
  const counted = Object.entries(usage).flatMap(([kind, count]): [string, number][] =>
    isUsed(kind, count) ? [[kind, count]] : [],
  );
  const isPriced = ([kind]: readonly [string, number]): boolean =>
    (prices[kind] ?? prices[kind + PER_1K]) !== undefined;
  return {
    prices,
    priced: Object.fromEntries(counted.filter(isPriced)),
    unpriced: counted.filter((each) => !isPriced(each)),
  };
}

export function multiplyExactly(official: string, multiplier: string): string {
  return formatDecimal(multiplyDecimals(parseDecimal(official), parseDecimal(multiplier)));
}

/** In the order of a prompt: the longest cache lifetimes come first. */
const PAID = ["cache_write_12h", "cache_write_1h", "cache_write_5m", "cache_write", "input"] as const;

const MEDIA = [
  ["input_image", "cache_read_image"],
  ["input_audio", "cache_read_audio"],
  ["input_video", "cache_read_video"],
] as const;

/** Missed tokens are the first of a prompt. `paid`: as paid; `read`: as cache reads. */
export function splitMissed(usage: Counts, missed: number) {
  const paid: Usage = {};
  const read: Usage = {};
  let left = missed;
  const take = (kind: keyof Usage, cached: keyof Usage): void => {
    const count = Math.min(left, usage[kind] ?? 0);
    if (count === 0) return;
    paid[kind] = count;
    read[cached] = (read[cached] ?? 0) + count;
    left -= count;
  };
  for (const kind of PAID) take(kind, "cache_read");
  for (const [kind, cached] of MEDIA) take(kind, cached);
  return { paid, read };
}
