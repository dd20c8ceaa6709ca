// Chat Completions through the Responses API, with upstreams that answer in unexpected ways.

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { planSteps } from "../../harness/model/script.ts";
import { makeRequest, openWorld, type World } from "../world.ts";

let world: World;
beforeAll(() => {
  world = openWorld(() => ({ prices: { m: { input: "1", output: "2" } } }));
});
afterAll(() => world.stop());

const event = (type: string, more: object): string =>
  `event: ${type}\r\ndata: ${JSON.stringify({ type, ...more })}\r\n\r\n`;
const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
const response = { id: "resp_1", object: "response", created_at: 1, model: "m", output: [] };
const item = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text: "Hello é", annotations: [] }],
};
const BEGUN = [
  event("response.created", { response: { ...response, status: "in_progress", usage: null } }),
  event("response.output_item.added", { output_index: 0, item: { ...item, content: [] } }),
  event("response.output_text.delta", { item_id: "msg_1", output_index: 0, delta: "Hello é" }),
  event("response.output_item.done", { output_index: 0, item }),
];

function streamed(...events: readonly string[]): Answer {
  return {
    family: "responses",
    status: 200,
    fields: [["content-type", "text/event-stream"]],
    framing: "chunked",
    pieces: events.map((each) => Buffer.from(each)),
  };
}

test.each([[[]], [[item]]])(
  "a client that requested no stream gets none, whatever the upstream sends",
  async (output) => {
    const last = event("response.completed", {
      response: { ...response, status: "completed", usage, output },
    });
    world.upstream.next({ answer: streamed(...BEGUN, last) });
    const { answer, lines } = await world.trace(makeRequest("chat"));
    expect(answer.field("content-type")).toBe("application/json");
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      object: "chat.completion",
      choices: [{ message: { content: "Hello é" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 4 },
    });
    expect(answer.field("x-gateway-charge")).toBe("0.000011");
    expect(lines).toMatchObject([{ outcome: "complete", basis: "exact", charge_usd: "0.000011" }]);
  },
);

function whole(body: object): Answer {
  const pieces = [Buffer.from(JSON.stringify(body, null, 1))];
  return {
    family: "responses",
    status: 200,
    fields: [["content-type", "application/json"]],
    framing: "length",
    pieces,
  };
}

test("a client that requested a stream gets one from an upstream that does not stream", async () => {
  world.upstream.next({ answer: whole({ ...response, status: "completed", usage, output: [item] }) });
  const { answer, lines } = await world.trace(makeRequest("chat", true));
  expect(answer.field("content-type")).toStartWith("text/event-stream");
  const text = answer.body.toString();
  expect(text).toContain('"delta":{"content":"Hello é"}');
  expect(text).toContain('"finish_reason":"stop"');
  expect(text).toEndWith("data: [DONE]\n\n");
  expect(lines).toMatchObject([{ outcome: "complete", basis: "exact", charge_usd: "0.000011" }]);
});

test("a stream that ends early or as a failure ends with an error", async () => {
  world.upstream.next({ answer: streamed(...BEGUN) });
  const cut = await world.trace(makeRequest("chat"));
  expect(cut.answer.status).toBe(502);
  expect(cut.lines).toMatchObject([{ outcome: "upstream_cut", status: 502 }]);

  const error = { code: "context_length_exceeded", message: "too long" };
  for (const last of [
    event("response.failed", { response: { ...response, status: "failed", error, usage: null } }),
    event("error", { error }),
    event("error", error),
  ]) {
    world.upstream.next({ answer: streamed(...BEGUN, last) });
    const failed = await world.trace(makeRequest("chat"));
    expect(failed.answer.status).toBe(400);
    expect(JSON.parse(failed.answer.body.toString()).error).toMatchObject({ ...error, param: "messages" });
    expect(failed.lines).toMatchObject([{ outcome: "upstream_error", status: 400 }]);
  }
});

test.each(["chat", "responses"] as const)(
  "an answer that failed costs nothing, however its connection ends (%s)",
  async (dialect) => {
    const error = { code: "context_length_exceeded", message: "too long" };
    const last = event("response.failed", {
      response: { ...response, status: "failed", error, usage: null },
    });
    for (const events of [[...BEGUN, last], BEGUN.slice(0, 1).concat(last)]) {
      const { before, head, body } = planSteps(streamed(...events), {});
      world.upstream.next({ steps: () => [...before, head, ...body, "fin"] });
      const { answer, lines, record } = await world.trace(makeRequest(dialect, true));
      expect(answer.body.toString()).toContain("too long");
      expect(lines).toMatchObject([{ outcome: "upstream_error", basis: "exact", charge_usd: "0" }]);
      expect(record.problem).toBeNull();
    }
  },
);

test("an event that cannot be converted breaks the stream, and the ledger records it", async () => {
  const last = event("response.completed", {
    response: { ...response, status: "completed", usage, output: [item] },
  });
  world.upstream.next({ answer: streamed(...BEGUN, "data: {broken\r\n\r\n", last) });
  const { answer, lines } = await world.trace(makeRequest("chat", true));
  expect(answer.text).toContain("an event that is not JSON");
  expect(answer.text).not.toContain("[DONE]");
  expect(lines).toMatchObject([{ outcome: "upstream_error", basis: "exact", charge_usd: "0.000011" }]);
});
