// Exact decimal amounts. Only this module calculates with them.

import { remember } from "./memory/bounded-map.ts";

/** The number units ÷ 10^scale: a price, a factor or an official amount. */
export interface Decimal {
  readonly units: bigint;
  readonly scale: number;
}

declare const pico: unique symbol;
/** Pico-dollars. Compare with <, > and ===. */
export type Usd = bigint & { readonly [pico]: true };

export const CHARGE_PLACES = 12;

const PLAIN = /^-?\d+(?:\.\d+)?$/;
/** Multiplying takes more than linear time. */
const MAX_DIGITS = 64;

/** Throws on anything but a plain decimal, also on exponents. */
export function parseDecimal(text: string): Decimal {
  if (text.length > MAX_DIGITS || !PLAIN.test(text))
    throw new RangeError(`not a decimal: ${JSON.stringify(text.slice(0, MAX_DIGITS))}`);
  const point = text.indexOf(".");
  if (point < 0) return { units: readDigits(text), scale: 0 };
  const places = text.slice(point + 1);
  const digits = text.startsWith("0.") ? places : text.slice(0, point) + places;
  return { units: readDigits(digits), scale: places.length };
}

/** The same few prices and multipliers are read again and again. */
export const parseRate = remember(1000, parseDecimal);

const NUMBER = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/;
const MAX_NUMBER_DIGITS = 30;

/** Divides by 10^`places`. Null: negative, or more than 30 digits. */
export function parseNumber(text: string, places = 0): Decimal | null {
  const [, whole = "", fraction = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  const digits = whole + fraction;
  if (digits === "" || digits.length > MAX_NUMBER_DIGITS) return null;
  const scale = fraction.length + places - Number(exponent);
  const isLong = scale > MAX_NUMBER_DIGITS || digits.length - scale > MAX_NUMBER_DIGITS;
  if (isLong) return null;
  const units = BigInt(digits);
  return scale >= 0 ? { units, scale } : { units: units * raise(-scale), scale: 0 };
}

/** Reading a bigint takes several times as long as a number. */
const EXACT_DIGITS = 15;

function readDigits(digits: string): bigint {
  return BigInt(digits.length > EXACT_DIGITS ? digits : Number(digits));
}

export function decimalOf(count: number): Decimal {
  return { units: BigInt(count), scale: 0 };
}

export const ZERO_DECIMAL: Decimal = decimalOf(0);

/** Without exponent, trailing zeros or negative zero: "0.011106", "0". */
export function formatDecimal({ units, scale }: Decimal): string {
  if (units < 0n) return `-${formatDecimal({ units: -units, scale })}`;
  let digits = formatDigits(units);
  if (scale === 0) return digits;
  while (digits.length <= scale) digits = ZEROS.slice(0, scale + 1 - digits.length) + digits;
  let end = digits.length;
  const point = end - scale;
  while (end > point && digits.charCodeAt(end - 1) === 48) end -= 1;
  const whole = digits.slice(0, point);
  return end === point ? whole : `${whole}.${digits.slice(point, end)}`;
}

const ZEROS = "0".repeat(64);
const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/** Numbers print several times faster than bigints. */
function formatDigits(units: bigint): string {
  return units > MAX_EXACT ? units.toString() : Number(units).toString();
}

const POWERS = Array.from({ length: 40 }, (_, places) => 10n ** BigInt(places));

function raise(places: number): bigint {
  return POWERS[places] ?? 10n ** BigInt(places);
}

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.scale === b.scale) return { units: a.units + b.units, scale: a.scale };
  return a.scale > b.scale
    ? { units: a.units + b.units * raise(a.scale - b.scale), scale: a.scale }
    : { units: a.units * raise(b.scale - a.scale) + b.units, scale: b.scale };
}

export function subtractDecimals(a: Decimal, b: Decimal): Decimal {
  return addDecimals(a, { units: -b.units, scale: b.scale });
}

export function compareDecimals(a: Decimal, b: Decimal): number {
  const { units } = subtractDecimals(a, b);
  return units === 0n ? 0 : units > 0n ? 1 : -1;
}

export function isBelowTenth(now: Decimal, before: Decimal): boolean {
  return subtractDecimals(now, shiftDecimal(before, 1)).units < 0n;
}

export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  return { units: a.units * b.units, scale: a.scale + b.scale };
}

export function addProduct(sum: Decimal, price: Decimal, count: number): Decimal {
  return addDecimals(sum, { units: price.units * BigInt(count), scale: price.scale });
}

export function shiftDecimal(value: Decimal, places: number): Decimal {
  return { units: value.units, scale: value.scale + places };
}

/** Rounds half away from zero. */
export function roundDecimal(value: Decimal, places: number): Decimal {
  if (value.scale <= places) return value;
  const unit = raise(value.scale - places);
  const half = unit / 2n;
  const { units } = value;
  return { units: (units < 0n ? units - half : units + half) / unit, scale: places };
}

/** Half a unit of an amount's last place. Doubles below 1,000 err by less. */
const BELOW_HALF = 5e-13;
const MAX_DOUBLE = 1000;

/** For display: rounds half away from zero. Points align in a column. */
export function formatRounded(text: string, places: number): string {
  const point = text.indexOf(".");
  const value = Number(text);
  // Bigints take ten times as long.
  const isShort = point > 0 && text.length - point <= CHARGE_PLACES + 1 && places < CHARGE_PLACES;
  if (isShort && value >= 0 && value < MAX_DOUBLE) return (value + BELOW_HALF).toFixed(places);
  const { units, scale } = roundDecimal(parseDecimal(text), places);
  if (units < 0n) return `-${formatRounded(text.slice(1), places)}`;
  const digits = formatDigits(units * raise(places - scale)).padStart(places + 1, "0");
  return `${digits.slice(0, digits.length - places)}.${digits.slice(digits.length - places)}`;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the one place where a bigint becomes money
const usd = (units: bigint): Usd => units as Usd;

export const ZERO_USD = usd(0n);

/** The last result is kept: ledger, channel and metrics read the same charge. */
let lastText = "0";
let lastUsd = ZERO_USD;

/** Rounds half away from zero. Exact for charges in the ledger. */
export function parseUsd(text: string): Usd {
  if (text === lastText) return lastUsd;
  lastUsd = roundUsd(parseDecimal(text));
  lastText = text;
  return lastUsd;
}

export function roundUsd(amount: Decimal): Usd {
  if (amount.scale === CHARGE_PLACES) return usd(amount.units);
  const { units, scale } = roundDecimal(amount, CHARGE_PLACES);
  return usd(units * raise(CHARGE_PLACES - scale));
}

/** A database can add thousands of amounts
 *  as large as this. */
const MAX_STORED_PICO = 10n ** 15n;

/** Null: above a thousand dollars, or not whole. */
export function toPico({ units, scale }: Decimal): number | null {
  const places = scale - CHARGE_PLACES;
  const pico = places > 0 ? units / raise(places) : units * raise(-places);
  const isExact = places <= 0 || pico * raise(places) === units;
  return isExact && pico <= MAX_STORED_PICO && pico >= -MAX_STORED_PICO ? Number(pico) : null;
}

export function formatUsd(amount: Usd): string {
  return formatDecimal({ units: amount, scale: CHARGE_PLACES });
}

export function addUsd(a: Usd, b: Usd): Usd {
  return usd(a + b);
}

/** For estimates, never for an amount. */
export function estimateUsd(text: string): number {
  return Number(text);
}

export function subtractUsd(a: Usd, b: Usd): Usd {
  return usd(a - b);
}

/** Two places. 100 if `whole` is zero. */
export function computePercent(part: Usd, whole: Usd): number {
  return whole === 0n ? 100 : Number((part * 10_000n) / whole) / 100;
}

export function isShareReached(part: Usd, whole: Usd, percent: number): boolean {
  return part * 100n >= whole * BigInt(percent);
}
