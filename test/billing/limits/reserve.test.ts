import { describe, expect, test } from "bun:test";
import { AnswerHistory } from "../../../src/billing/limits/forecasts.ts";
import { forecastCost, type Quote, type ReservedRequest } from "../../../src/billing/limits/reserve.ts";
import { formatUsd } from "../../../src/lib/money.ts";

/** Prices a token of output at one dollar, and input at nothing. */
const outputOnly: Quote = ({ output = 0 }) => String(output);
const OPENAI_CAPS = ["max_completion_tokens", "max_output_tokens"];
function request(body: string, more: Partial<ReservedRequest> = {}): ReservedRequest {
  const quotes = more.quotes ?? [outputOnly];
  return {
    body: Buffer.from(body),
    prompt: { tokens: 7, cached: 0 },
    answer: null,
    hasOutput: true,
    scan: null,
    capNames: [...OPENAI_CAPS, "max_tokens", "generationConfig", "generation_config"],
    ...more,
    quotes,
  };
}

const expectedOf = (asked: ReservedRequest): string | null => {
  const forecast = forecastCost(asked);
  return forecast && formatUsd(forecast.expected);
};

describe("the expected cost of a request is forecast from its prompt and earlier answers", () => {
  test.each([
    ["the cap, with no earlier answers", '{"max_tokens":500}', null, "500"],
    ["4,000 tokens of a larger cap, with no earlier answers", '{"max_tokens":128000}', null, "4000"],
    ["4,000 tokens without a cap", "{}", null, "4000"],
    ["the mean of recent responses, where the cap is larger", '{"max_tokens":128000}', 800, "800"],
    ["the cap, where recent responses used more", '{"max_tokens":500}', 800, "500"],
    ["the cap of the responses dialect", '{"max_output_tokens":500}', null, "500"],
    ["the cap of chat", '{"max_completion_tokens":500}', null, "500"],
    ["the larger of two caps", '{"max_tokens":5,"max_completion_tokens":500}', null, "500"],
    ["the cap of the content dialect", '{"generationConfig":{"maxOutputTokens":500}}', null, "500"],
    ["the content cap in snake case", '{"generation_config":{"max_output_tokens":500}}', null, "500"],
    ["a cap with escapes in its name", '{"max_\\u0074okens":500}', null, "500"],
    ["a fraction as the next whole number", '{"max_tokens":1000.5}', null, "1001"],
    ["no cap that the body has twice", '{"max_tokens":1,"max_tokens":128000}', null, "4000"],
    [
      "no cap that the body has twice in the content dialect",
      '{"generationConfig":{"maxOutputTokens":1,"maxOutputTokens":128000}}',
      null,
      "4000",
    ],
    ["no cap that is a text", '{"max_tokens":"1"}', null, "4000"],
    ["no cap that is null", '{"max_tokens":null}', null, "4000"],
    ["no cap of zero or less", '{"max_tokens":-5}', null, "4000"],
    ["each answer of several", '{"max_tokens":500,"n":8}', null, "4000"],
    [
      "each candidate of several",
      '{"generationConfig":{"maxOutputTokens":500,"candidateCount":3}}',
      null,
      "1500",
    ],
    ["recent responses for each of several answers", '{"n":3}', 800, "2400"],
  ] as const)("the expected cost counts %s", (_, body, mean, usd) => {
    expect(expectedOf(request(body, { answer: mean }))).toBe(usd);
  });

  test.each([
    [0, "100"],
    [60, "46"],
    [100, "10"],
  ])(
    "the expected cost counts %d cached tokens of the session at the price of a cache read",
    (cached, usd) => {
      const quotes: Quote[] = [({ input = 0, cache_read: read = 0 }) => String((input * 10 + read) / 10)];
      expect(expectedOf(request("{}", { quotes, prompt: { tokens: 100, cached } }))).toBe(usd);
    },
  );

  test.each([
    ['{"max_tokens":1}', ["max_output_tokens"]],
    ['{"generationConfig":{"maxOutputTokens":1}}', ["max_output_tokens"]],
    ['{"max_tokens":1}', ["generationConfig", "generation_config"]],
  ])("the expected cost ignores the token cap of another dialect: %s", (body, capNames) => {
    expect(expectedOf(request(body, { capNames }))).toBe("4000");
  });

  test("the expected cost is that of the dearest channel, and unknown if one channel has no price", () => {
    expect(expectedOf(request("{}", { quotes: [() => "1", () => "3", () => "2"] }))).toBe("3");
    expect(expectedOf(request("{}", { quotes: [() => "1", () => null] }))).toBe(null);
  });
});

describe("the most that a request may cost is forecast", () => {
  test.each([
    ["its cap", '{"max_tokens":20000}', "20000"],
    ["32,000 tokens of a larger cap", '{"max_tokens":128000}', "32000"],
    ["32,000 tokens without a cap", "{}", "32000"],
    ["4,000 tokens of a smaller cap, which the upstream may not obey", '{"max_tokens":500}', "4000"],
    ["all of several answers", '{"max_tokens":20000,"n":3}', "60000"],
  ])("the most that a request may cost is %s", (_, body, usd) => {
    expect(formatUsd(forecastCost(request(body, { answer: 20 }))!.most)).toBe(usd);
  });

  test("the most that a request may cost includes the expected prompt, and for embeddings it is the prompt's cost alone", () => {
    const quotes: Quote[] = [
      ({ input = 0, cache_read: read = 0, output = 0 }) => String((input * 10 + read) / 10 + output),
    ];
    const prompt = { tokens: 100, cached: 90 };
    expect(formatUsd(forecastCost(request("{}", { quotes, prompt }))!.most)).toBe("32019");
    expect(formatUsd(forecastCost(request("{}", { quotes, prompt, hasOutput: false }))!.most)).toBe("19");
  });
});

test("answers of a model that has not answered yet are expected to be as long as those of the most similar model", () => {
  const history = new AnswerHistory();
  history.add("claude-opus-4-8", 300);
  history.add("claude-haiku-4-5", 100);
  expect(history.expect("us.anthropic.claude-opus-5")).toBe(300);
  expect(history.expect("llama-4")).toBeNull();
});
