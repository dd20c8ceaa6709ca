// The amount that a seller puts into its answer, in every dialect and form, and what a line says of it.

import { describe, expect, test } from "bun:test";

import { assess } from "../../../src/billing/assess.ts";
import { computeCharge } from "../../../src/billing/charge.ts";
import { loadPriceBook, type Overrides } from "../../../src/billing/prices.ts";
import { isPlain, judgeBill, type JudgedBill } from "../../../src/gateway/bill/reported.ts";
import type { Meter, Reading } from "../../../src/billing/usage.ts";
import { openEmbeddingsMeter } from "../../../src/dialects/meters/calls.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";
import { MESSAGES } from "../../../src/dialects/meters/meter.ts";
import { openResponsesMeter } from "../../../src/dialects/meters/responses.ts";

const book = loadPriceBook();

interface Terms {
  readonly isBelieved?: boolean;
  readonly overrides?: Overrides;
  readonly multiplier?: string;
  readonly requested?: string;
}

function bill(reading: Reading, { isBelieved = false, overrides = new Map(), ...terms }: Terms = {}) {
  const { multiplier = "1", requested = "grok-4.3" } = terms;
  const assessment = assess({ outcome: "complete", status: 200, reading, streamed: true, estimatedInput: 1 });
  const charge = computeCharge({
    parts: assessment.parts,
    tariff: reading.tariff,
    model: reading.model,
    requested,
    book,
    overrides,
    at: new Date("2026-11-20T12:00:00Z"),
    multiplier,
  });
  const own = { assessment, charge, reading, channel: { bill: isBelieved ? "reported" : "book" } } as const;
  const judged: JudgedBill = isPlain(own) ? own : judgeBill(own, { multiplier });
  const { official, charge: charged, priceSource } = judged.charge;
  return {
    providerUsd: judged.providerUsd ?? null,
    suspect: judged.assessment.suspect,
    official,
    charged,
    priceSource,
  };
}

function read(
  open: (contentType: string) => Meter,
  contentType: string,
  ...texts: readonly string[]
): Reading {
  const meter = open(contentType);
  for (const text of texts) meter.see(Buffer.from(text));
  return meter.read();
}

const COUNTS = '"input_tokens":1000,"output_tokens":100,"total_tokens":1100';
const response = (usage: string, more = ""): string =>
  `{"object":"response","status":"completed","model":"grok-4.3","output":[]${more},"usage":{${usage}}}`;
const ask = (cost: string): Reading =>
  read(openResponsesMeter, "application/json", response(`${COUNTS},${cost}`));

/** 1,000 in and 100 out. */
const OURS = "0.0015";

describe("an amount in the answer", () => {
  const CHAT =
    '"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,"cost":1.2345678901234567890e-3';
  const chunk = (more: string): string =>
    `data: {"model":"grok-4.3","choices":[${more.startsWith('"usage') ? "" : more}]${more.startsWith('"usage') ? `,${more}` : ""}}\n\n`;
  const FINISH = '{"delta":{"content":"x"},"finish_reason":"stop"}';
  const STREAMED = 'data: {"type":"response.completed","response":';
  const CLAUDE = '"input_tokens":1000,"output_tokens":100';
  const COST = '"cost":0.0012345678901234567890';
  const LONG = `,"instructions":"${"x".repeat(70_000)}"`;
  const ROWS: ReadonlyArray<readonly [string, Reading]> = [
    ["a response", ask(COST)],
    [
      "a response that is too long to be parsed",
      read(openResponsesMeter, "application/json", response(`${COUNTS},${COST}`, LONG)),
    ],
    [
      "a streamed response",
      read(openResponsesMeter, "text/event-stream", `${STREAMED}${response(`${COUNTS},${COST}`)}}\n\n`),
    ],
    [
      "a streamed response with a long last event",
      read(openResponsesMeter, "text/event-stream", `${STREAMED}${response(`${COUNTS},${COST}`, LONG)}}\n\n`),
    ],
    [
      "a response over a WebSocket",
      read(
        openResponsesMeter,
        MESSAGES,
        `{"type":"response.completed","response":${response(`${COUNTS},${COST}`)}}`,
      ),
    ],
    [
      "a completion",
      read(
        openChatMeter,
        "application/json",
        `{"model":"grok-4.3","choices":[{"finish_reason":"stop"}],"usage":{${CHAT}}}`,
      ),
    ],
    [
      "the last chunk of a completion",
      read(openChatMeter, "text/event-stream", chunk(FINISH), chunk(`"usage":{${CHAT}}`), "data: [DONE]\n\n"),
    ],
    [
      "a message",
      read(
        openMessagesMeter,
        "application/json",
        `{"type":"message","model":"grok-4.3","content":[{"type":"text","text":"x"}],"usage":{${CLAUDE},${COST}}}`,
      ),
    ],
    [
      "the last event of a message",
      read(
        openMessagesMeter,
        "text/event-stream",
        `data: {"type":"message_start","message":{"model":"grok-4.3","usage":{"input_tokens":1000,"output_tokens":1}}}\n\n`,
        `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":100,${COST}}}\n\n`,
        'data: {"type":"message_stop"}\n\n',
      ),
    ],
    [
      "a content answer",
      read(
        openContentMeter,
        "application/json",
        `{"modelVersion":"grok-4.3","candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,${COST}}}`,
      ),
    ],
    [
      "embeddings",
      read(
        openEmbeddingsMeter,
        "application/json",
        `{"model":"grok-4.3","data":[],"usage":{"prompt_tokens":1000,"total_tokens":1000,${COST}}}`,
      ),
    ],
  ];

  test.each([...ROWS])("is read from %s with all its digits", (_, reading) => {
    const believed = bill(reading, { isBelieved: true, multiplier: "2" });
    expect(believed).toEqual({
      providerUsd: "0.001234567890123456789",
      suspect: null,
      official: "0.001234567890123456789",
      charged: "0.00246913578",
      priceSource: "reported",
    });
    expect(reading.rawUsage).toMatch(/0\.0012345678901234567890|1\.2345678901234567890e-3/);
  });

  test.each([
    ['"cost_in_usd_ticks":15000000', "0.0015"],
    ['"cost_in_usd_ticks":15000000,"cost":7', "0.0015"],
    ['"cost":{"input_cost":0.001,"total_cost":0.0015,"currency":"USD"}', "0.0015"],
    ['"cost":1.5e-3', "0.0015"],
  ])("%s is $%s", (cost, usd) => {
    expect(bill(ask(cost))).toMatchObject({ providerUsd: usd, suspect: null, official: OURS });
  });

  test.each([
    '"cost":"0.0015"',
    '"cost":-0.0015',
    '"cost":1e-31',
    `"cost":0.${"1".repeat(31)}`,
    '"cost":true',
    '"cost":[0.0015]',
    '"cost":{"total":1}',
    '"cost":{"total_cost":0.0015,"currency":"EUR"}',
    '"cost_in_usd_ticks":"15000000"',
    '"c\\u006fst":0.0015',
  ])("%s is ignored, and the line is suspect, whoever's word counts", (cost) => {
    const unreadable = {
      providerUsd: null,
      suspect: "the seller's own amount cannot be read",
      official: OURS,
    };
    expect(bill(ask(cost))).toMatchObject(unreadable);
    expect(bill(ask(cost), { isBelieved: true })).toMatchObject(unreadable);
  });

  test.each(['"cost":null', '"costs":5', '"cost_details":{"upstream_inference_cost":7}'])(
    "%s is none",
    (cost) => {
      expect(bill(ask(cost))).toMatchObject({ providerUsd: null, suspect: null, official: OURS });
    },
  );
});

describe("an amount that differs from ours", () => {
  const differs = (usd: string): string =>
    `the seller says that it cost $${usd}, and the price book makes it $${OURS}`;

  test.each(["0.001515", "0.00148515", "0.0015", "0.0014851485149"])(
    "by up to 1 %% is no matter: %s",
    (usd) => {
      expect(bill(ask(`"cost":${usd}`))).toMatchObject({ providerUsd: usd, suspect: null });
    },
  );

  test.each(["0.0015152", "0.00148", "0.0065", "0"])("by more makes the line suspect: %s", (usd) => {
    expect(bill(ask(`"cost":${usd}`))).toMatchObject({ suspect: differs(usd), official: OURS });
  });

  test("by a millionth of a dollar is rounding, however small the amounts are", () => {
    const tiny = read(
      openResponsesMeter,
      "application/json",
      response('"input_tokens":1,"output_tokens":0,"cost":0.00000225'),
    );
    expect(bill(tiny)).toMatchObject({ official: "0.00000125", suspect: null });
    const more = read(
      openResponsesMeter,
      "application/json",
      response('"input_tokens":1,"output_tokens":0,"cost":0.00000226'),
    );
    expect(bill(more).suspect).toContain("$0.00000226");
  });

  test("is compared with the book only, and not with prices of the config", () => {
    const overrides = new Map([["grok-4.3", { input: "1", output: "1" }]]);
    expect(bill(ask('"cost":7'), { overrides })).toMatchObject({ priceSource: "config", suspect: null });
  });

  test("is not compared where it leaves something out", () => {
    expect(bill(ask('"cost":0.00001,"is_byok":true'))).toMatchObject({
      providerUsd: "0.00001",
      suspect: null,
    });
  });
});

describe("a seller that is believed", () => {
  test("gives usage without a price its amount", () => {
    const unpriced = read(
      openResponsesMeter,
      "application/json",
      response(
        `${COUNTS},"cost_in_usd_ticks":65000000,"server_side_tool_usage_details":{"document_search_calls":2}`,
      ),
    );
    expect(bill(unpriced)).toMatchObject({ official: null, providerUsd: "0.0065" });
    expect(bill(unpriced, { isBelieved: true })).toMatchObject({
      official: "0.0065",
      priceSource: "reported",
    });
  });

  test.each([
    ["without an amount", ask('"cost":null')],
    ["with a part of the amount", ask('"cost":0.00001,"is_byok":true')],
  ])("is not believed %s: the book counts, and the line is suspect", (_, reading) => {
    expect(bill(reading, { isBelieved: true })).toMatchObject({
      official: OURS,
      suspect: "the seller named no amount for all of it: the price book's counts",
    });
  });

  test("is not believed before the end of an answer", () => {
    const start =
      '{"type":"message_start","message":{"model":"grok-4.3","usage":{"input_tokens":1000,"output_tokens":1,"cost":0.001}}}';
    const begun = read(openMessagesMeter, "text/event-stream", `data: ${start}\n\n`);
    expect(bill(begun, { isBelieved: true })).toMatchObject({
      priceSource: expect.stringContaining("book"),
      suspect: expect.stringContaining("named no amount"),
    });
  });
});
