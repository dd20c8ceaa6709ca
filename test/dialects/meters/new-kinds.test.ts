// Usage that no recorded answer in shared/fixtures has: caches of twelve hours, containers, refusals, a loop of model calls.

import { describe, expect, test } from "bun:test";
import { assess } from "../../../src/billing/assess.ts";
import { computeCharge } from "../../../src/billing/charge.ts";
import { loadBook } from "../../../src/billing/prices.ts";
import type { Meter, Reading } from "../../../src/billing/usage.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";
import { openResponsesMeter } from "../../../src/dialects/meters/responses.ts";
import { parseDecimal } from "../../../src/lib/money.ts";

function readJson(open: (contentType: string) => Meter, body: unknown): Reading {
  const meter = open("application/json");
  meter.see(new TextEncoder().encode(JSON.stringify(body)));
  return meter.read();
}

function readEvents(open: (contentType: string) => Meter, ...list: readonly unknown[]): Reading {
  const meter = open("text/event-stream");
  for (const event of list) meter.see(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
  return meter.read();
}

function billOf(reading: Reading, model: string, at = new Date("2026-11-20T12:00:00Z")) {
  const { parts, basis, suspect, unbilled } = assess({
    outcome: "complete",
    status: 200,
    reading,
    streamed: false,
    estimatedInput: 0,
  });
  const charge = computeCharge({
    parts,
    tariff: reading.tariff,
    model: reading.model,
    requested: model,
    book: loadBook(),
    overrides: new Map(),
    at,
    multiplier: "1",
    unbilled,
  });
  return { basis, suspect, ...charge };
}

describe("new kinds of usage in Responses answers are counted and priced", () => {
  const usage = (written: number, details?: unknown) => ({
    input_tokens: 10_000,
    input_tokens_details: {
      cached_tokens: 0,
      cache_write_tokens: written,
      ...(details === undefined ? {} : { cache_write_tokens_details: details }),
    },
    output_tokens: 10,
  });
  const answer = (more: object) => ({
    object: "response",
    status: "completed",
    model: "gpt-6.2-sol",
    ...more,
  });

  test("cache writes for twelve hours in a Responses answer have a price of their own", () => {
    const shown = readJson(
      openResponsesMeter,
      answer({ usage: usage(4000, { ttl_12h_tokens: 3000, ttl_30m_tokens: 1000 }) }),
    );
    expect(shown.parts[0]?.usage).toEqual({
      input: 6000,
      cache_write: 1000,
      cache_write_12h: 3000,
      output: 10,
    });
    expect(billOf(shown, "gpt-6.2-sol")).toMatchObject({
      official: "0.0296",
      prices: { cache_write: "2.5", cache_write_12h: "5" },
    });
  });

  test.each([undefined, null, {}, { ttl_12h_tokens: "3000" }, { ttl_12h_tokens: 0 }])(
    "with the details %j, all cache writes of a Responses answer count as kept for half an hour",
    (details) => {
      const shown = readJson(openResponsesMeter, answer({ usage: usage(4000, details) }));
      expect(shown.parts[0]?.usage).toEqual({ input: 6000, cache_write: 4000, output: 10 });
    },
  );

  test("a cached picture in a Responses answer counts once, among the cached tokens", () => {
    const input_tokens_details = { cached_tokens: 9950, image_tokens: 700 };
    const shown = readJson(
      openResponsesMeter,
      answer({ usage: { input_tokens: 10_000, input_tokens_details, output_tokens: 10 } }),
    );
    expect(shown.parts[0]?.usage).toEqual({ input: 0, cache_read: 9950, input_image: 50, output: 10 });
    expect(shown.faults).toBeUndefined();
  });

  test("each container of the hosted shell in a Responses answer counts once, and the client's own shell does not count", () => {
    const shell = (id: string, environment: unknown) => ({ id, type: "shell_call", environment });
    const hosted = (container_id: string) => ({ type: "container_reference", container_id });
    const output = [
      shell("a", hosted("cntr_1")),
      shell("b", hosted("cntr_1")),
      shell("c", hosted("cntr_2")),
      shell("d", { type: "local" }),
      shell("e", null),
    ];
    const shown = readJson(openResponsesMeter, answer({ usage: usage(0), output }));
    expect(shown.parts[0]?.usage).toMatchObject({ hosted_shell: 2 });
    const done = output.map((item, output_index) => ({
      type: "response.output_item.done",
      item,
      output_index,
    }));
    const end = { type: "response.completed", response: answer({ usage: usage(0), output }) };
    expect(readEvents(openResponsesMeter, ...done, end).parts[0]?.usage).toMatchObject({ hosted_shell: 2 });
    // No price is known, because the upstream does not report the container's minutes. The line says so.
    expect(billOf(shown, "gpt-6.2-sol")).toMatchObject({
      official: null,
      unpricedUsage: { hosted_shell: 2 },
      atLeast: "0.0201",
    });
  });
});

describe("new kinds of usage in Messages answers are counted and priced", () => {
  const refused = (category: string | null, content: readonly unknown[] = []) => ({
    type: "message",
    model: "claude-opus-5",
    content,
    stop_reason: "refusal",
    stop_details: category === null ? null : { type: "refusal", category },
    usage: { input_tokens: 1000, output_tokens: 1 },
  });
  const streamed = (category: string, ...between: readonly unknown[]) =>
    readEvents(
      openMessagesMeter,
      {
        type: "message_start",
        message: { model: "claude-opus-5", usage: { input_tokens: 1000, output_tokens: 1 } },
      },
      ...between,
      {
        type: "message_delta",
        delta: { stop_reason: "refusal", stop_details: { category } },
        usage: { output_tokens: between.length > 0 ? 1 : 0 },
      },
      { type: "message_stop" },
    );

  test('Messages answers refused as "cyber" before any output cost nothing', () => {
    for (const reading of [readJson(openMessagesMeter, refused("cyber")), streamed("cyber")])
      expect(billOf(reading, "claude-opus-5")).toMatchObject({
        basis: "exact",
        official: "0",
        priceSource: "unbilled refusal",
        usage: { input: 1000 },
        suspect: null,
      });
  });

  test("Messages answers refused before any output for another reason than 'cyber' are charged and suspect", () => {
    for (const category of ["bio", null])
      expect(billOf(readJson(openMessagesMeter, refused(category)), "claude-opus-5")).toMatchObject({
        official: "0.005025",
        suspect: expect.stringContaining("refused before any output"),
      });
  });

  test("a Messages answer that is refused after some output keeps its usage and is not suspect", () => {
    const block = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
    const text = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "So" } };
    for (const reading of [
      readJson(openMessagesMeter, refused("cyber", [{ type: "text", text: "So" }])),
      streamed("cyber", block, text),
    ])
      expect(billOf(reading, "claude-opus-5")).toMatchObject({ suspect: null, usage: { input: 1000 } });
  });

  test("a Messages answer's calls to the model are priced one by one if they add up to the total", () => {
    const call = (input: number, output: number) => ({
      type: "message",
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: 0,
    });
    const looped = (input_tokens: number, iterations: readonly unknown[]) =>
      readJson(openMessagesMeter, {
        type: "message",
        model: "claude-haiku-5-5",
        content: [{ type: "text", text: "x" }],
        stop_reason: "end_turn",
        usage: { input_tokens, output_tokens: 60, server_tool_use: { web_search_requests: 2 }, iterations },
      });
    const three = [call(40_000, 10), call(41_000, 20), call(42_000, 30)];
    const shown = looped(123_000, three);
    expect(shown.parts).toMatchObject([{ usage: { input: 123_000, output: 60, web_search: 2 } }]);
    expect(shown.parts[0]?.calls?.map(({ input }) => input)).toEqual([40_000, 41_000, 42_000]);
    // 123,000 × 0.1 + 60 × 0.5 per million, and two searches. No call has the 100,000 tokens above which the price is higher.
    const charged = billOf(shown, "claude-haiku-5-5");
    expect(charged.official).toBe("0.03233");
    expect(charged.usage).toMatchObject({ input: 123_000, output: 60, web_search: 2 });
    expect(looped(124_000, three).parts[0]?.calls).toBeUndefined();
    expect(looped(40_000, [call(40_000, 60)]).parts[0]?.calls).toBeUndefined();
  });
});

test("embeddings of Gemini that report their tokens are charged for them", () => {
  const shown = readJson(openContentMeter, {
    embedding: { values: [0.25] },
    usageMetadata: { promptTokenCount: 2000, promptTokenDetails: [{ modality: "TEXT", tokenCount: 2000 }] },
  });
  expect(billOf(shown, "gemini-embedding-001")).toMatchObject({ basis: "exact", official: "0.0003" });
});

test.each([{ input_tokens: 100 }, { input_tokens: 100, output_tokens: null }])(
  "a messages stream that ends with the usage %j is suspect, because only its beginning was counted",
  (usage) => {
    const message = { model: "claude-haiku-4-5", usage: { input_tokens: 100, output_tokens: 1 } };
    const start = { type: "message_start", message };
    const end = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage };
    const stop = { type: "message_stop" };
    const missing = readEvents(openMessagesMeter, start, end, stop);
    expect(missing.faults?.map(({ text }) => text)).toEqual([
      "the upstream's output_tokens is missing beside the other counts",
    ]);
    const later = { ...end, usage: { output_tokens: 7 } };
    expect(readEvents(openMessagesMeter, start, end, later, stop).faults).toBeUndefined();
  },
);

describe("calls of xAI's own tools are counted and priced", () => {
  const JUNE = new Date("2026-06-20T12:00:00Z");
  const NOVEMBER = new Date("2026-11-20T12:00:00Z");
  const usage = (input: number, cached: number, output: number, tools: Readonly<Record<string, number>>) => ({
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    total_tokens: input + output,
    server_side_tool_usage_details: { web_search_calls: 0, x_search_calls: 0, mcp_calls: 0, ...tools },
  });
  const answer = (used: object, output: readonly unknown[] = []) =>
    readJson(openResponsesMeter, {
      object: "response",
      status: "completed",
      model: "grok-4.20-0309-reasoning",
      output,
      usage: used,
    });

  // Counts and cost_in_usd_ticks of published answers. A dollar has 10,000,000,000 ticks.
  test.each([
    [7583, 3072, 3192, 3, 292_331_500],
    [12_190, 3072, 4801, 5, 490_144_000],
    [33_069, 20_224, 1439, 11, 786_985_500],
    [25_370, 9792, 3648, 15, 1_055_509_000],
    [31_769, 13_824, 5556, 8, 790_860_500],
    [25_627, 11_776, 2272, 9, 703_489_500],
  ])("%d input, %d cached and %d output tokens and %d searches on X cost what xAI billed", (...counts) => {
    const [input, cached, output, searches, ticks] = counts;
    const reading = answer(usage(input, cached, output, { x_search_calls: searches }));
    const bill = billOf(reading, "grok-4.20", JUNE);
    expect(bill.usage.x_search).toBe(searches);
    const { units, scale } = parseDecimal(bill.official ?? "");
    expect(units * 10n ** BigInt(10 - scale)).toBe(BigInt(ticks));
  });

  test("xAI's own tools are counted as xAI counts them, and not by the calls that the answer shows", () => {
    const calls = Array.from({ length: 4 }, (_, index) => ({
      type: "web_search_call",
      id: `ws_${index}`,
      status: "failed",
      action: { type: "search" },
    }));
    const counted = billOf(answer(usage(1000, 0, 100, { web_search_calls: 1 }), calls), "grok-4.7");
    expect(counted).toMatchObject({ basis: "exact", usage: { web_search: 1 } });
    const { server_side_tool_usage_details: _, ...bare } = usage(1000, 0, 100, {});
    expect(billOf(answer(bare, calls), "grok-4.7").usage.web_search).toBe(4);
  });

  test("since 2026-09-21, a search on X is charged by what xAI's tool fetched, and not by the call", () => {
    const fetched = { x_search_calls: 3, x_posts_fetched: 20, x_users_fetched: 2 };
    const bill = billOf(answer(usage(1000, 0, 100, fetched)), "grok-4.20", NOVEMBER);
    expect(bill).toMatchObject({ usage: { x_posts: 20, x_users: 2 }, official: "0.1215" });
    expect(bill.usage.x_search).toBeUndefined();
    // Without the counts that are billed, the amount is not known.
    const silent = billOf(answer(usage(1000, 0, 100, { x_search_calls: 3 })), "grok-4.20", NOVEMBER);
    expect(silent).toMatchObject({ official: null, unpricedUsage: { x_search: 3 } });
  });

  test("xAI's tools for code and collections have prices, that for files has none, and MCP costs only tokens", () => {
    const known = { code_interpreter_calls: 2, file_search_calls: 4, mcp_calls: 9 };
    expect(billOf(answer(usage(1000, 0, 100, known)), "grok-4.20").official).toBe("0.0215");
    const files = billOf(answer(usage(1000, 0, 100, { document_search_calls: 1 })), "grok-4.20");
    expect(files).toMatchObject({ official: null, unpricedUsage: { document_search: 1 } });
  });

  test("xAI's own tools that are newer than the gateway make the line suspect", () => {
    const bill = billOf(answer(usage(10, 0, 10, { time_travel_calls: 1 })), "grok-4.7");
    expect(bill.suspect).toContain("server_side_tool_usage_details.time_travel_calls");
  });

  test("calls of xAI's own tools are counted in Chat Completions, too", () => {
    const reading = readJson(openChatMeter, {
      model: "grok-4.7",
      choices: [{ finish_reason: "stop", message: { content: "hello" } }],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        server_side_tool_usage_details: { web_search_calls: 2 },
      },
    });
    expect(reading.parts[0]?.usage).toEqual({ input: 10, output: 5, web_search: 2 });
  });
});
