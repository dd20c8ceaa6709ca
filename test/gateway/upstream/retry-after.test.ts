import { describe, expect, test } from "bun:test";
import { Fields } from "../../../src/lib/http/fields.ts";
import { readHiddenWait, readRetryAfter } from "../../../src/gateway/upstream/retry-after.ts";

const NOW = Date.parse("2026-11-20T10:00:00Z");

const head = (fields: Record<string, string>) => ({
  fields: Fields.of(Object.entries(fields)),
  field: (name: string) => fields[name],
});

describe("how long an upstream asks us to wait", () => {
  test.each<[string, Record<string, string>, string, number | null]>([
    ["says nothing", {}, "", null],
    ["in seconds", { "retry-after": "30" }, "", 30_000],
    ["in parts of a second", { "retry-after": "0.5" }, "", 500],
    ["not at all", { "retry-after": "0" }, "", 0],
    ["never less than nothing", { "retry-after": "-5" }, "", 0],
    ["by a date", { "retry-after": "Fri, 20 Nov 2026 10:01:00 GMT" }, "", 60_000],
    ["by a date that has passed", { "retry-after": "Fri, 20 Nov 2026 09:00:00 GMT" }, "", 0],
    ["in words that nobody understands", { "retry-after": "soon" }, "", null],
    ["in milliseconds, which are finer", { "retry-after-ms": "1500", "retry-after": "2" }, "", 1500],
    [
      "by Anthropic's resets, those of limits that are used up",
      {
        "anthropic-ratelimit-requests-remaining": "10",
        "anthropic-ratelimit-requests-reset": "2026-11-20T11:00:00Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-20T10:00:20Z",
      },
      "",
      20_000,
    ],
    [
      "by OpenAI's resets, the longest of those that are used up",
      {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m3.5s",
      },
      "",
      63_500,
    ],
    ["by a reset of a limit that is not used up", { "x-ratelimit-reset-tokens": "6h" }, "", null],
    [
      "by Google's RetryInfo",
      {},
      '{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}',
      34_400,
    ],
  ])("%s", (_, fields, body, wait) => {
    expect(readRetryAfter(head(fields), NOW) ?? readHiddenWait(head(fields), body, NOW)).toBe(wait);
  });
});
