// How a response ended, for every combination of signs.

import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../../src/billing/ledger/line.ts";
import type { Reading } from "../../../src/billing/usage.ts";
import { describeLeaving, judgeEnding, type EndingSigns } from "../../../src/gateway/bill/ending.ts";
import { UpstreamFault } from "../../../src/lib/http/upstream.ts";

const readTo = (end: Reading["end"]): Reading => ({
  model: null,
  parts: [],
  rawUsage: null,
  tariff: {},
  end,
  final: end !== "open",
  estimatedOutput: 0,
  hasText: false,
});
const CUT = new UpstreamFault("cut", "it broke off", true);
const WELL: EndingSigns = {
  status: 200,
  reading: readTo("complete"),
  left: null,
  fault: null,
  streamed: true,
};

const judge = (signs: Partial<EndingSigns>): Outcome => judgeEnding({ ...WELL, ...signs });

test.each([
  [200, "complete"],
  [399, "complete"],
  [400, "upstream_error"],
  [529, "upstream_error"],
] as const)("an answer of status %d is %s", (status, outcome) => {
  expect(judge({ status })).toBe(outcome);
});

test("an upstream's error stays an error, whatever happens to the connections", () => {
  expect(judge({ status: 500, left: "client_closed", fault: CUT })).toBe("upstream_error");
});

test.each(["client_closed", "interrupted"] as const)(
  "an answer that nobody heard the end of is %s",
  (left) => {
    for (const fault of [CUT, null])
      for (const end of ["open", "complete", "error"] as const)
        expect(judge({ left, fault, reading: readTo(end) })).toBe(left);
  },
);

describe("the end of a stream", () => {
  test.each([
    ["complete", null, "complete"],
    ["complete", CUT, "complete"],
    ["error", null, "upstream_error"],
    ["error", CUT, "upstream_error"],
    ["open", null, "upstream_cut"],
    ["open", CUT, "upstream_cut"],
  ] as const)("the dialect's own end counts, what comes after it doesn't: %s", (end, fault, outcome) => {
    expect(judge({ reading: readTo(end), fault })).toBe(outcome);
  });

  test("without a meter is decided by the connection", () => {
    expect([judge({ reading: null }), judge({ reading: null, fault: CUT })]).toEqual([
      "complete",
      "upstream_cut",
    ]);
  });
});

describe("the end of a body", () => {
  test.each([
    ["complete", null, "complete"],
    ["complete", CUT, "upstream_cut"],
    ["error", null, "upstream_error"],
    ["error", CUT, "upstream_cut"],
    ["open", null, "complete"],
    ["open", CUT, "upstream_cut"],
  ] as const)(
    "the framing shows that it is complete, the dialect whether it failed: %s",
    (end, fault, outcome) => {
      expect(judge({ reading: readTo(end), fault, streamed: false })).toBe(outcome);
    },
  );
});

test("a lost client has disconnected, unless the gateway is stopping", () => {
  expect(describeLeaving(AbortSignal.abort())).toBe("interrupted");
  expect(describeLeaving(new AbortController().signal)).toBe("client_closed");
});
