// How long an upstream asks us to wait.

import type { Fields } from "../../lib/http/fields.ts";

export function readRetryAfter(fields: Pick<Fields, "get">, now: number): number | null {
  const ms = Number(fields.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  const text = fields.get("retry-after");
  if (text === undefined) return null;
  const seconds = Number(text);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - now;
  return Number.isNaN(wait) ? null : Math.max(0, wait);
}

/** Google's error details have the wait, where no client looks:
 *  `"retryDelay": "34.4s"`. */
export function readRetryDelay(body: string): number | null {
  const [, seconds] = /"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"/.exec(body) ?? [];
  return seconds === undefined ? null : Number(seconds) * 1000;
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

function readSpan(text: string): number | null {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return null;
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) {
    sum += Number(count) * (UNITS[unit ?? ""] ?? 0);
  }
  return sum;
}

/** No limit lasts longer. */
const MAX_RESET_MS = 400 * 86_400_000;

/** Reads seconds since 1970, an ISO time or a span.
 *  Returns the moment in ms (null: not useful). */
export function readReset(text: string | undefined, now: number): number | null {
  if (text === undefined || text.length > 40) return null;
  const span = readSpan(text);
  const at = span === null ? Date.parse(text) : now + span;
  const moment = /^\d{9,11}$/.test(text) ? Number(text) * 1000 : at;
  return Math.abs(moment - now) <= MAX_RESET_MS ? moment : null;
}
