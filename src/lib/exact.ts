// Numbers that a double cannot hold: those of values that are written out again (64-bit limits in schemas), and amounts of
// money. Only this file calls JSON.rawJSON. Who keeps a value takes its text at once (`textOf`).

import { MAX_DEPTH, parseFlatJson, parseJson } from "./json/json.ts";

declare global {
  interface JSON {
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
    parse(
      text: string,
      reviver: (key: string, value: unknown, place: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

/** Numbers that a double may not hold. Two patterns take half the time of one for both. */
const [LONG_NUMBER, LARGE_NUMBER] = [/\d{16}/, /[eE]\+?\d{3}/];

/** What is written again keeps the digits of its numbers. Undefined if it is not JSON, or nested too deeply for that. */
export function parseExact(text: string): unknown {
  const value = parseFlatJson(text);
  const isOdd = LONG_NUMBER.test(text) || LARGE_NUMBER.test(text);
  return isOdd && hasInexact(value) ? JSON.parse(text, keepNumber) : value;
}

/** As parseExact, and with the amounts of parseWithAmounts. No event counts up to 1e100. */
export function parseEvent(text: string): unknown {
  const value = parseFlatJson(text);
  const isOdd = AMOUNT.test(text) || (LONG_NUMBER.test(text) && hasInexact(value));
  return isOdd && value !== undefined ? JSON.parse(text, keepNumber) : value;
}

/** A number that is written as this text. */
export function numberOf(text: string): unknown {
  return JSON.rawJSON(text);
}

function hasInexact(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value === "number") return Math.abs(value) >= 1e15 && !Number.isSafeInteger(value);
  if (typeof value !== "object" || value === null || levels === 0) return false;
  return Object.values(value).some((each) => hasInexact(each, levels - 1));
}

/** Members that are an amount of money in an upstream's usage. */
const AMOUNTS: ReadonlySet<string> = new Set(["cost", "cost_in_usd_ticks", "total_cost"]);
const AMOUNT = /cost(?:_in_usd_ticks)?"\s*:/;

/** As parseJson, but an amount is never read as a float: its number keeps its text, for readNumberText, and is written
 *  again as it came. */
export function parseWithAmounts(text: string): unknown {
  if (!text.includes("cost") || !AMOUNT.test(text)) return parseJson(text);
  try {
    return JSON.parse(text, keepNumber);
  } catch {
    return undefined;
  }
}

function keepNumber(name: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== "number" || source === undefined) return value;
  const exact = Number.isSafeInteger(value) || (Number.isFinite(value) && !/^-?\d{16}/.test(source));
  return exact && !AMOUNTS.has(name) ? value : JSON.rawJSON(source);
}

/** The text of a number that kept it. Undefined for everything else. */
export function readNumberText(value: unknown): string | undefined {
  return JSON.isRawJSON(value) ? JSON.stringify(value) : undefined;
}
