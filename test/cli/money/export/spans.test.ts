// A ledger line as a span: what a receiver of OpenTelemetry reads.

import { describe, expect, test } from "bun:test";

import { describeSpan, type Span } from "../../../../src/cli/money/export/spans.ts";
import type { LineDraft } from "../../../../src/billing/ledger/line.ts";
import { draftOf } from "../../../billing/ledger/ledger-samples.ts";

const PLACE = { provider: null, host: "api.anthropic.com", port: 443 };
const span = (more: Partial<LineDraft> = {}): Span => describeSpan(draftOf("req_1", more), PLACE);
const read = ({ attributes }: Span): Record<string, unknown> => {
  const written: typeof attributes = JSON.parse(JSON.stringify(attributes));
  return Object.fromEntries(written.map(({ key, value }) => [key, Object.values(value)[0]]));
};

describe("a span", () => {
  test("has the names of the conventions, and the gateway's own", () => {
    const client = { tool: "claude-code", session: "s-1", agent: "a1", label: "work" };
    expect(read(span({ client }))).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "anthropic",
      "gen_ai.request.model": "claude-sonnet-4-5",
      "gen_ai.response.model": "claude-sonnet-4-5-20250929",
      "gen_ai.conversation.id": "s-1",
      "gen_ai.agent.id": "a1",
      "server.address": "api.anthropic.com",
      "server.port": "443",
      "http.response.status_code": "200",
      // 12 + 11,000 + 420: cached tokens are input.
      "gen_ai.usage.input_tokens": "11432",
      "gen_ai.usage.cache_read.input_tokens": "11000",
      "gen_ai.usage.cache_write.input_tokens": "420",
      "gen_ai.usage.output_tokens": "350",
      "gen_ai.usage.reasoning.output_tokens": "120",
      "gen_ai.usage.cost.amount": 0.011106,
      "gen_ai.usage.cost.currency": "USD",
      "gen_ai.usage.cost.source": "local",
      "gateway.request.id": "req_1",
      "gateway.key": "laptop",
      "gateway.group": "claude",
      "gateway.channel": "anthropic-main",
      "gateway.endpoint": "/v1/messages",
      "gateway.tool": "claude-code",
      "gateway.label": "work",
      "gateway.stream": true,
      "gateway.outcome": "complete",
      "gateway.basis": "exact",
      "gateway.official_usd": "0.011106",
      "gateway.charge_usd": "0.011106",
      "gateway.attempts": "1",
      "gateway.first_byte_ms": "340",
    });
  });

  test("lasts as long as the request, has the same ids each time, and other ids than other requests", () => {
    const first = span();
    expect(BigInt(first.endTimeUnixNano) - BigInt(first.startTimeUnixNano)).toBe(4_120_000_000n);
    expect(first.startTimeUnixNano).toBe(String(BigInt(Date.parse("2026-11-20T10:00:00.000Z")) * 1_000_000n));
    expect(first.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(first.spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(span()).toEqual(first);
    expect(describeSpan(draftOf("req_2"), PLACE).spanId).not.toBe(first.spanId);
    expect(first).toMatchObject({ kind: 3, status: { code: 0 }, name: "chat claude-sonnet-4-5" });
    expect(first.parentSpanId).toBeUndefined();
  });

  const PARENT = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

  test("a span belongs to the client's own trace", () => {
    expect(describeSpan({ ...draftOf("req_1"), traceparent: PARENT }, null)).toMatchObject({
      traceId: "a".repeat(32),
      parentSpanId: "b".repeat(16),
    });
  });

  test.each([
    [{ outcome: "upstream_cut" }, "upstream_cut"],
    [{ status: 529 }, "529"],
  ] as const)("of %p is an error of the type %s", (more, type) => {
    const failed = span(more);
    expect([failed.status.code, read(failed)["error.type"]]).toEqual([2, type]);
  });

  test("without a known amount or known tokens has no such attributes", () => {
    const names = Object.keys(
      read(span({ usage: {}, official_usd: null, charge_usd: null, basis: "unknown" })),
    );
    expect(names.filter((name) => name.startsWith("gen_ai.usage") || name.endsWith("_usd"))).toEqual([]);
  });

  test.each([
    ["/v1beta/models/{id}:generateContent", "content", "generate_content", "gcp.gemini"],
    ["/v1/embeddings", "responses", "embeddings", "openai"],
  ])("of %s on %s is a %s of %s", (endpoint, platform, operation, provider) => {
    const attributes = read(span({ endpoint, platform }));
    expect([attributes["gen_ai.operation.name"], attributes["gen_ai.provider.name"]]).toEqual([
      operation,
      provider,
    ]);
  });
});
