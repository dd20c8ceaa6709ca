// Money is computed only here, exactly: usage × price = official amount, × multiplier = charge.
// Only the charge is rounded: half away from zero, at twelve decimals.

import {
  addDecimals,
  addProduct,
  CHARGE_PLACES,
  decimalOf,
  formatDecimal,
  multiplyDecimals,
  parseDecimal,
  parseRate,
  roundDecimal,
  shiftDecimal,
  subtractDecimals,
  type Decimal,
  ZERO_DECIMAL,
} from "../lib/money.ts";
import { findPrice, type Price, type PriceSources } from "./prices.ts";
import { chooseNothing, chooseTariff, FACTOR, PER_1K } from "./tariff.ts";
import { addCounts, type Counts, type Part, sumUsage, type Tariff, type Usage } from "./usage.ts";

export interface BilledAnswer extends PriceSources {
  readonly parts: readonly Part[];
  readonly tariff: Tariff;
  readonly model: string | null;
  /** Used if the answer names no model, or one without a price. */
  readonly requested: string | null;
  /** Why nothing is charged. The line's `price_source` says it. */
  readonly unbilled?: string | undefined;
  readonly at: Date;
  readonly multiplier: string;
}

/** Amounts are decimals, or null if some part has no price. */
export type Charge = Readonly<ReturnType<typeof computeCharge>>;

const ALL_PRICED = { atLeast: null, unpriced: null };

export function computeCharge(billed: BilledAnswer) {
  const { model, requested, multiplier } = billed;
  const priced: PricedPart[] = [];
  for (const part of billed.parts) for (const each of pricePart(part, billed)) priced.push(each);
  const usage = sumUsage(billed.parts);
  const { prices, tier } = findOwn(priced, model ?? requested);
  const derivable = { usage, prices, multiplier, parts: priced };
  const { official, charge, parts } = deriveAmounts(derivable);
  const { unpriced, atLeast } = official === null ? deriveAtLeast(derivable) : ALL_PRICED;
  return {
    usage,
    parts: priced.map((part, index) => writePart(part, parts[index] ?? null)),
    /** The prices of the answer's model. Each part has prices, too. */
    prices: prices ?? (official === null ? null : {}),
    tier,
    priceSource: nameSources(priced),
    /** The requested model, if its price stands in for a missing one. */
    pricedAs: priced.find((part) => part.pricedAs !== null)?.pricedAs ?? null,
    official,
    charge,
    unpricedBecause: priced[parts.indexOf(null)]?.because ?? null,
    unpricedUsage: unpriced,
    atLeast,
  };
}

function findOwn(priced: readonly PricedPart[], model: string | null): Pick<PricedPart, "prices" | "tier"> {
  for (const part of priced) if (part.model === model) return part;
  return priced[0] ?? UNPAID;
}

function writePart({ model, pass, usage, prices, tier }: PricedPart, official: string | null) {
  return { model, pass, usage, prices, tier, official_usd: official };
}

function nameSources(priced: readonly PricedPart[]): string | null {
  const names: string[] = [];
  for (const { source } of priced) if (source !== null && !names.includes(source)) names.push(source);
  return names.join(", ") || null;
}

interface PricedPart {
  readonly model: string;
  readonly pass: string;
  readonly usage: Usage;
  readonly prices: Prices | null;
  readonly tier: string | null;
  readonly source: string | null;
  readonly pricedAs: string | null;
  /** Why there is no price. Null: all kinds have one. */
  readonly because: string | null;
}

const UNPAID = { prices: null, tier: null, source: null, pricedAs: null, because: null };

/** If prices depend on the length of a call's prompt, each call is a part. */
function pricePart({ model, pass, usage, calls = [] }: Part, billed: BilledAnswer): PricedPart[] {
  const name = model ?? billed.model ?? billed.requested;
  const unpaid = { model: name ?? "", pass, usage, ...UNPAID };
  const free = billed.seller?.free === true ? "free" : billed.unbilled;
  if (free !== undefined) return [{ ...unpaid, ...chooseNothing(usage), source: free }];
  if (name === null) return [{ ...unpaid, because: "the answer names no model" }];
  const found = priceOf(name, model === null, billed);
  if (found === null) return [{ ...unpaid, because: `no price for ${name}` }];
  if (found.price.tiers === undefined || calls.length < 2) return [priceCall(unpaid, found, billed.tariff)];
  return calls.map((call) => priceCall({ ...unpaid, usage: call }, found, billed.tariff));
}

function priceCall(unpaid: PricedPart, { price, pricedAs }: FoundPrice, tariff: Tariff): PricedPart {
  const { model, pass, usage } = unpaid;
  const chosen = chooseTariff(price, usage, tariff);
  if ("missing" in chosen) return { ...unpaid, because: `no price for ${chosen.missing} of ${model}` };
  const { prices, tier, unpriced } = chosen;
  if (pricedAs !== null && unpriced.length > 0 && Object.keys(prices).length === 0)
    return { ...unpaid, because: `no price for ${model}` };
  const because = unpriced.length > 0 ? `no price for ${unpriced.join(" and ")} of ${model}` : null;
  return { model, pass, usage, prices, tier, source: price.source, pricedAs, because };
}

interface FoundPrice {
  readonly price: Price;
  readonly pricedAs: string | null;
}

function priceOf(name: string, isOwn: boolean, billed: BilledAnswer): FoundPrice | null {
  const { requested, at } = billed;
  const own = findPrice(billed, name, at);
  if (own !== null) return { price: own, pricedAs: null };
  if (!isOwn || requested === null || requested === name) return null;
  const price = findPrice(billed, requested, at);
  return price && { price, pricedAs: requested };
}

function addAll(amounts: readonly (Decimal | null)[]): Decimal | null {
  let sum = ZERO_DECIMAL;
  for (const amount of amounts) {
    if (amount === null) return null;
    sum = addDecimals(sum, amount);
  }
  return sum;
}

type Prices = Readonly<Record<string, string>>;
type Entry = readonly [kind: string, count: number];

const TOKENS_PLACES = 6;
const CALLS_PLACES = 3;

/** Null if a used kind has no price.
 *  A list `unpriced` collects such kinds instead. */
function multiplyUsage(usage: Counts, prices: Prices, unpriced: Entry[] | null = null): Decimal | null {
  let tokens = ZERO_DECIMAL;
  let calls = ZERO_DECIMAL;
  for (const kind in usage) {
    const count = usage[kind];
    if (!isUsed(kind, count)) continue;
    const perMillion = prices[kind];
    const rate = perMillion ?? prices[kind + PER_1K];
    if (rate === undefined) {
      if (unpriced === null) return null;
      unpriced.push([kind, count]);
      continue;
    }
    if (perMillion === undefined) calls = addProduct(calls, parseRate(rate), count);
    else tokens = addProduct(tokens, parseRate(rate), count);
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
    if (name.startsWith(FACTOR)) product = multiplyDecimals(product, parseRate(prices[name] ?? ""));
  return product;
}

/** Only this function rounds. */
function multiplyUp(official: Decimal, multiplier: string): string {
  return formatDecimal(roundDecimal(multiplyDecimals(official, parseRate(multiplier)), CHARGE_PLACES));
}

export function multiplyCharge(charge: Charge, multiplier: string): Charge {
  const { official, usage, parts, prices } = charge;
  if (official !== null) return { ...charge, charge: multiplyUp(parseDecimal(official), multiplier) };
  return { ...charge, atLeast: deriveAtLeast({ usage, prices, parts, multiplier }).atLeast };
}

export const REPORTED = "reported";

/** Charges an amount that the seller named, instead of our prices. */
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
const ROUNDING = parseDecimal("0.000001");

/** Whether the two differ by more than rounding and 1 % of the seller's amount. */
export function differsFromSeller(official: string, reported: string): boolean {
  const theirs = parseDecimal(reported);
  const more = subtractDecimals(parseDecimal(official), theirs);
  const apart = more.units < 0n ? { ...more, units: -more.units } : more;
  const isMore = (most: Decimal): boolean => subtractDecimals(apart, most).units > 0n;
  return isMore(ROUNDING) && subtractDecimals(multiplyDecimals(apart, HUNDRED), theirs).units > 0n;
}

interface Priced {
  readonly usage: Counts;
  readonly prices: Prices | null;
}

export interface Derivable extends Priced {
  readonly multiplier: string;
  readonly parts?: readonly Priced[] | undefined;
  readonly reported?: string | undefined;
}

type Derived = Readonly<Record<"official" | "charge", string | null>> & {
  readonly parts: readonly (string | null)[];
};

/** Amounts are null if a price is missing. Throws on a malformed decimal. */
export function deriveAmounts(line: Derivable): Derived {
  const { multiplier, parts, reported } = line;
  if (reported !== undefined) {
    const charge = multiplyUp(parseDecimal(reported), multiplier);
    return { official: reported, charge, parts: (parts ?? []).map(() => null) };
  }
  if (parts === undefined || parts.length === 1) return deriveOne(parts?.[0] ?? line, multiplier);
  const amounts = parts.map(({ usage, prices }) => prices && multiplyUsage(usage, prices));
  const total = addAll(amounts);
  return {
    official: total && formatDecimal(total),
    charge: total && multiplyUp(total, multiplier),
    parts: amounts.map((amount) => amount && formatDecimal(amount)),
  };
}

/** The last result is kept: the writer checks each line right
 *  after it was charged. */
let last: (Derivable & { readonly derived: Derived }) | null = null;

function deriveOne({ usage, prices }: Priced, multiplier: string): Derived {
  if (last?.usage === usage && last.prices === prices && last.multiplier === multiplier) return last.derived;
  const amount = prices && multiplyUsage(usage, prices);
  const official = amount && formatDecimal(amount);
  const derived = { official, charge: amount && multiplyUp(amount, multiplier), parts: [official] };
  last = { usage, prices, multiplier, derived };
  return derived;
}

/** How much more missed tokens cost than cache reads. Null: some have no price. */
export function deriveMissCost({ usage, prices, multiplier }: Derivable, missed: number): string | null {
  const split = splitMissed(usage, missed);
  const paid = prices && multiplyUsage(split.paid, prices);
  const read = prices && multiplyUsage(split.read, prices);
  if (paid === null || read === null) return null;
  const more = subtractDecimals(paid, read);
  return more.units < 0n ? "0" : multiplyUp(more, multiplier);
}

/** `atLeast`: the charge for the kinds with a price, or null if all or none have one.
 *  `unpriced`: the counts of the other kinds, or null if there are none.
 *  Throws on a malformed decimal. */
export function deriveAtLeast({ usage, prices, multiplier, parts }: Derivable) {
  const all = parts === undefined || parts.length === 0 ? [{ usage, prices }] : parts;
  const unpriced: Entry[] = [];
  const total = addAll(all.map((part) => multiplyUsage(part.usage, part.prices ?? {}, unpriced)));
  if (unpriced.length === 0) return ALL_PRICED;
  const used = all.flatMap((part) => Object.entries(part.usage).filter((each) => isUsed(...each)));
  const isKnown = total !== null && used.length > unpriced.length;
  return { atLeast: isKnown ? multiplyUp(total, multiplier) : null, unpriced: addCounts(unpriced) };
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

/** Takes the prompt's first paid tokens as the missed ones.
 *  `paid` counts them by their kinds, `read` as cache reads. */
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
