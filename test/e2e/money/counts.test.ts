// Wrong counts from the upstream: a ledger line never reads them as zero and calls itself exact.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { replay } from "../../../src/demo/answers/replay.ts";
import { type DialectName, makeRequest, openWorld, type World } from "../world.ts";

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

async function bill(dialect: "messages" | "responses" | "content", body: object) {
  const bytes = Buffer.from(JSON.stringify(body));
  world.upstream.next({ answer: replay({ family: dialect, bytes, contentType: "application/json" }) });
  const { answer, lines } = await world.trace(makeRequest(dialect satisfies DialectName));
  expect([answer.status, answer.body.equals(bytes)]).toEqual([200, true]);
  return lines[0]!;
}

const message = (usage: object) => ({ type: "message", model: "claude-haiku-4-5", content: [{}], usage });
const response = (usage: object) => ({ object: "response", model: "gpt-5.4", status: "completed", usage });
const content = (usageMetadata: object) => ({
  candidates: [{ finishReason: "STOP" }],
  modelVersion: "gemini-2.5-pro",
  usageMetadata,
});

test.each([
  ["messages", message({ input_tokens: "12", output_tokens: 5 }), "input_tokens cannot be read"],
  ["messages", message({ input_tokens: null, output_tokens: 5 }), "input_tokens is missing"],
  ["messages", message({ output_tokens: 5 }), "input_tokens is missing"],
  ["messages", message({ input_tokens: -12, output_tokens: 5 }), "input_tokens cannot be read"],
  ["messages", message({ input_tokens: 12, output_tokens: 5.5 }), "output_tokens cannot be read"],
  ["messages", message({ input_tokens: 2 ** 60, output_tokens: 5 }), "input_tokens cannot be read"],
  ["responses", response({ input_tokens: "12", output_tokens: 5 }), "input_tokens cannot be read"],
  [
    "content",
    content({ promptTokenCount: "12", candidatesTokenCount: 5 }),
    "promptTokenCount cannot be read",
  ],
] as const)("%s %j: the line is unknown and has no amount", async (dialect, body, why) => {
  const line = await bill(dialect, body);
  expect(line).toMatchObject({ outcome: "complete", basis: "unknown", charge_usd: null });
  expect(line["suspect"]).toContain(why);
});

test.each([
  [
    "responses",
    response({ input_tokens: 1000, output_tokens: 5, input_tokens_details: { cached_tokens: 1500 } }),
    "input_tokens_details is more than the total",
  ],
  [
    "content",
    content({ promptTokenCount: 1000, cachedContentTokenCount: 1500, candidatesTokenCount: 5 }),
    "cachedContentTokenCount is more than the total",
  ],
] as const)("%s %j: the line is suspect", async (dialect, body, why) => {
  const line = await bill(dialect, body);
  expect(line).toMatchObject({ outcome: "complete", basis: "exact" });
  expect(line["suspect"]).toContain(why);
});

test("usage under chat's names in a Responses answer is billed exactly", async () => {
  const usage = { prompt_tokens: 24, completion_tokens: 18, total_tokens: 42 };
  const line = await bill("responses", response(usage));
  expect(line).toMatchObject({ basis: "exact", usage: { input: 24, output: 18 }, raw_usage: usage });
  expect(line["suspect"]).toBeUndefined();
});
