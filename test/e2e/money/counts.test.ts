// Wrong counts from the upstream: a ledger line never reads them as zero and calls itself exact.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { replay } from "../../harness/upstreams/replay.ts";
import { makeRequest, openWorld, type World } from "../world.ts";

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

async function bill(dialect: "messages" | "responses", body: object) {
  const bytes = Buffer.from(JSON.stringify(body));
  world.upstream.next({ answer: replay({ family: dialect, bytes, contentType: "application/json" }) });
  const { answer, lines } = await world.trace(makeRequest(dialect));
  expect([answer.status, answer.body.equals(bytes)]).toEqual([200, true]);
  return lines[0]!;
}

const message = (usage: object) => ({ type: "message", model: "claude-haiku-4-5", content: [{}], usage });
const response = (usage: object) => ({ object: "response", model: "gpt-5.4", status: "completed", usage });
test("a count that cannot be read makes the line unknown, without an amount", async () => {
  const line = await bill("messages", message({ input_tokens: "12", output_tokens: 5 }));
  expect(line).toMatchObject({ outcome: "complete", basis: "unknown", charge_usd: null });
  expect(line["suspect"]).toContain("input_tokens cannot be read");
});

test("a part that is more than its whole makes the line suspect", async () => {
  const details = { cached_tokens: 1500 };
  const line = await bill(
    "responses",
    response({ input_tokens: 1000, output_tokens: 5, input_tokens_details: details }),
  );
  expect(line).toMatchObject({ outcome: "complete", basis: "exact" });
  expect(line["suspect"]).toContain("input_tokens_details is more than the total");
});

test("usage under chat's names in a Responses answer is billed exactly", async () => {
  const usage = { prompt_tokens: 24, completion_tokens: 18, total_tokens: 42 };
  const line = await bill("responses", response(usage));
  expect(line).toMatchObject({ basis: "exact", usage: { input: 24, output: 18 }, raw_usage: usage });
  expect(line["suspect"]).toBeUndefined();
});
