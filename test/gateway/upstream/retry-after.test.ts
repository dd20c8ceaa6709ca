import { describe, expect, test } from "bun:test";
import { Fields } from "../../../src/lib/http/fields.ts";
import { readRetryAfter, readRetryDelay } from "../../../src/gateway/upstream/retry-after.ts";

const NOW = Date.parse("2026-11-20T10:00:00Z");

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
      "by Google's RetryInfo",
      {},
      '{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}',
      34_400,
    ],
  ])("%s", (_, fields, body, wait) => {
    expect(readRetryAfter(Fields.of(Object.entries(fields)), NOW) ?? readRetryDelay(body)).toBe(wait);
  });
});
