// How long an upstream asks us to wait, from its headers or its body. Each platform has its own way to say it. Pure.

import type { UpstreamResponse } from "../../lib/http/upstream.ts";

type Head = Pick<UpstreamResponse, "fields">;

/** What clients obey. Milliseconds from `now`; null if the upstream does not say. */
export function readRetryAfter(head: Head, now: number): number | null {
  const ms = Number(head.fields.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  const text = head.fields.get("retry-after");
  if (text === undefined) return null;
  const seconds = Number(text);
  return Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : readMoment(text, now);
}

/** What no client obeys, or only those of one platform. */
export function readHiddenWait(head: Head, body: string, now: number): number | null {
  return readRetryInfo(body) ?? readResets(head, now);
}

/** From a Google error's details: `"retryDelay": "34.4s"`. */
function readRetryInfo(body: string): number | null {
  const [, seconds] = /"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"/.exec(body) ?? [];
  return seconds === undefined ? null : Number(seconds) * 1000;
}

/** `anthropic-ratelimit-tokens-reset`, `x-ratelimit-reset-tokens`. Only limits that are used up count. */
const RESET = /^(?:anthropic-ratelimit-([a-z-]+)-reset|x-ratelimit-reset-([a-z-]+))$/;

function readResets(head: Head, now: number): number | null {
  const waits = [...head.fields].flatMap(([name, value]) => {
    const [, messages, openai] = RESET.exec(name) ?? [];
    if (messages !== undefined) {
      const isSpent = head.fields.get(`anthropic-ratelimit-${messages}-remaining`) === "0";
      return isSpent ? (readMoment(value, now) ?? []) : [];
    }
    if (openai === undefined || head.fields.get(`x-ratelimit-remaining-${openai}`) !== "0") return [];
    return readSpan(value) ?? [];
  });
  return waits.length === 0 ? null : Math.max(...waits);
}

/** An ISO time or an HTTP date. */
function readMoment(text: string, now: number): number | null {
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? null : Math.max(0, moment - now);
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `12ms`, `6.5s`, `1m3s`. */
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

/** When a limit resets: seconds since 1970, an ISO time, or a span. In milliseconds; null if it says nothing useful. */
export function readReset(text: string | undefined, now: number): number | null {
  if (text === undefined || text.length > 40) return null;
  const span = readSpan(text);
  const at = span === null ? Date.parse(text) : now + span;
  const moment = /^\d{9,11}$/.test(text) ? Number(text) * 1000 : at;
  return Math.abs(moment - now) <= MAX_RESET_MS ? moment : null;
}
