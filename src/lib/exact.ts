// Numbers that a double cannot hold. Only this file and json/slices.ts call
// JSON.rawJSON. Code that keeps such a number keeps its text (`textOf`).

import { MAX_DEPTH, parseFlatJson, parseJson } from "./json/json.ts";

declare global {
  interface JSON {
    isRawJSON(value: unknown): boolean;
    rawJSON(text: string): object;
    parse(
      text: string,
      reviver: (key: string, value: unknown, place: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

/** Two patterns take half the time of one. */
const [LONG_NUMBER, LARGE_NUMBER] = [/\d{16}/, /[eE]\+?\d{3}/];

/** Numbers keep their digits. Undefined: not JSON, or nested too deeply. */
export function parseExact(text: string): unknown {
  const value = parseFlatJson(text);
  const isOdd = LONG_NUMBER.test(text) || LARGE_NUMBER.test(text);
  return isOdd && hasInexact(value) ? JSON.parse(text, keepNumber) : value;
}

/** Like parseExact, but for events: amounts keep their digits, too.
 *  Numbers beyond a double's range lose theirs, but no event has such numbers. */
export function parseEvent(text: string): unknown {
  const value = parseFlatJson(text);
  const isOdd = AMOUNT.test(text) || (LONG_NUMBER.test(text) && hasInexact(value));
  return isOdd && value !== undefined ? JSON.parse(text, keepNumber) : value;
}

export function numberOf(text: string): unknown {
  return JSON.rawJSON(text);
}

function hasInexact(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value === "number") return Math.abs(value) >= 1e15 && !Number.isSafeInteger(value);
  if (typeof value !== "object" || value === null || levels === 0) return false;
  return Object.values(value).some((each) => hasInexact(each, levels - 1));
}

/** The members of an upstream's usage that are amounts of money. */
const AMOUNTS: ReadonlySet<string> = new Set(["cost", "cost_in_usd_ticks", "total_cost"]);
const AMOUNT = /cost(?:_in_usd_ticks)?"\s*:/;

/** An amount keeps its text: JSON.stringify writes it unchanged. */
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

/** The digits of a number that kept its text. Undefined for any other value. */
export function readNumberText(value: unknown): string | undefined {
  return JSON.isRawJSON(value) ? JSON.stringify(value) : undefined;
}
