// What the gateway changes for a tool: the list of wanted differences.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compareRequests, DIFFERENCE_TABLE, formatDifferences } from "../../e2e/real-clis/compare.ts";
import { DIFFERENCES } from "../../e2e/real-clis/differences.ts";
import type { Arrived } from "../../harness/upstreams/vendor.ts";

test("docs/tools.md has the differences that the comparison of the real tools allows", () => {
  const text = readFileSync(join(import.meta.dir, "../../../docs/tools.md"), "utf8");
  expect(DIFFERENCE_TABLE.exec(text)?.[0]).toBe(formatDifferences(DIFFERENCES));
});

describe("the comparison of requests", () => {
  const body = (more: object = {}) => ({
    model: "m",
    system: [{ text: "s", cache_control: { type: "ephemeral", scope: "global" } }],
    tools: [{ name: "a" }, { name: "b" }],
    metadata: { session: crypto.randomUUID() },
    ...more,
  });
  const arrive = (content: object, more: Partial<Arrived> = {}): Arrived => ({
    host: "api.anthropic.com",
    method: "POST",
    target: "/v1/messages?beta=true",
    fields: [
      ["anthropic-beta", "one,two"],
      ["authorization", `Bearer ${crypto.randomUUID()}`],
      ["x-id", crypto.randomUUID()],
    ],
    body: JSON.stringify(content),
    ...more,
  });
  const same = arrive(body());

  test("finds nothing between two runs of one tool, but for keys, ids and hosts", () => {
    expect(compareRequests([same], [arrive(body(), { host: "127.0.0.1:1" })])).toEqual([]);
  });

  test.each([
    [
      "a mark",
      [arrive(body({ system: [{ text: "s", cache_control: { type: "ephemeral" } }] }))],
      ["body system[].cache_control.scope"],
    ],
    ["the order of tools", [arrive(body({ tools: [{ name: "b" }, { name: "a" }] }))], ["body tools order"]],
    [
      "a beta",
      [
        arrive(body(), {
          fields: [
            ["anthropic-beta", "one"],
            ["x-id", crypto.randomUUID()],
          ],
        }),
      ],
      ["beta two"],
    ],
    ["a field", [arrive(body(), { fields: [["anthropic-beta", "one,two"]] })], ["header x-id"]],
    ["a member", [arrive(body({ diagnostics: null }))], ["body diagnostics"]],
    ["a query", [arrive(body(), { target: "/v1/messages" })], ["query"]],
    ["a request", [same, same], ["request POST /v1/messages"]],
    [
      "a path",
      [arrive(body(), { target: "/v1/other" })],
      ["request POST /v1/messages", "request POST /v1/other"],
    ],
  ])("finds %s", (_, through, places) => {
    expect(compareRequests([same], through)).toEqual(places);
  });
});
