import { expect, test } from "bun:test";
import { createMetrics } from "../../../src/gateway/control/metrics.ts";

test("a model's name cannot break a line of the metrics, nor write to a terminal", () => {
  const { observer, render } = createMetrics();
  observer.requestDone({
    id: "req_1",
    time: 0,
    key: "laptop",
    group: "claude",
    model: 'a"\\b\n\u001B[2J\u202E',
    channel: "main",
    client: null,
    endpoint: "/v1/messages",
    status: 200,
    outcome: "complete",
    firstByteMs: 5,
    durationMs: 9,
    usage: { input: 1 },
    chargeUsd: "0.1",
    problem: null,
  });
  const page = render({ channels: [], ledgerFails: false, websockets: 0 }, "all");
  expect(page).toContain(String.raw`model="a\"\\b\\u000a\\u001b[2J\\u202e"} 0.1`);
  expect(page.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202E]/u);
});
