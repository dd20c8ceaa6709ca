// Tests answers as sellers really send them, and requests that only one provider can serve, through a real gateway.

import { describe, expect, test } from "bun:test";
import type { Any } from "../../bridges/calls.ts";
import { startPieceUpstream as serve } from "../../harness/upstreams/piece-upstream.ts";
import { flushLedger } from "../world.ts";
import { channelOf, open, openFar, post } from "./far.ts";

const ASKED = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
const ITEM = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }] };
const COUNTS = { input_tokens: 1, output_tokens: 1 };
const ANSWERS: Readonly<Record<string, Any>> = {
  chat: {
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
  messages: {
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    usage: COUNTS,
  },
  responses: {
    object: "response",
    status: "completed",
    output: [ITEM],
    usage: { ...COUNTS, total_tokens: 2 },
  },
};
const PATHS: Readonly<Record<string, string>> = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};
/** A sign of life before an answer that is not a stream, as OpenRouter writes it. */
const SIGN = "\n         \n";

describe.each(Object.keys(ANSWERS))("blanks before the JSON answer of a %s channel", (dialect) => {
  const text = JSON.stringify(ANSWERS[dialect]);
  const blanks = SIGN.repeat(300);

  test.each([
    ["in one read with the answer", [blanks + text]],
    ["in reads before the answer", [" ".repeat(2_000_000), blanks, text.slice(0, 30), text.slice(30)]],
    ["in one read with the answer's beginning", [blanks + text.slice(0, 20), text.slice(20)]],
  ])("blanks %s do not make a body count as empty, and no other channel is asked", async (_name, pieces) => {
    const first = serve(() => ({ pieces }));
    const second = serve(() => ({ pieces: [text] }));
    const gateway = open(
      { first: channelOf(dialect, first), second: channelOf(dialect, second, { priority: 2 }) },
      { g: { platform: dialect === "chat" ? "responses" : dialect, channels: ["first", "second"] } },
    );
    const answer = await post(gateway, "g", PATHS[dialect]!, { ...ASKED, input: "Hello" });
    expect([answer.status, (await answer.text()).trim()]).toEqual([200, text]);
    expect([first.bodies.length, second.bodies.length]).toEqual([1, 0]);
  });

  test("blanks before an answer that is cut do not raise its cost", async () => {
    let before = "";
    const upstream = serve(() => ({ pieces: [before + text.slice(0, text.length / 2)] }));
    const platform = dialect === "chat" ? "responses" : dialect;
    const gateway = open(
      { first: channelOf(dialect, upstream, { free: false }) },
      { g: { platform, channels: ["first"] } },
      { prices: { m: { input: "3", output: "15" } } },
    );
    for (before of ["", " ".repeat(60_000), SIGN.repeat(5000)])
      await (await post(gateway, "g", PATHS[dialect]!, { ...ASKED, input: "Hello" })).text();
    await gateway.recorded(3);
    await flushLedger();
    const costs = gateway.ledger().map(({ basis, usage, charge_usd }) => ({ basis, usage, charge_usd }));
    expect(costs).toEqual(Array.from({ length: 3 }, () => costs[0]!));
  });
});

/** JSON answers of Perplexity have an empty delta next to the message. Some servers give no finish_reason. */
const WITH_DELTA = {
  ...ANSWERS["chat"],
  choices: [
    {
      index: 0,
      finish_reason: null,
      message: { role: "assistant", content: "Paris" },
      delta: { role: "assistant", content: "" },
    },
  ],
};

test.each([
  ["messages", "/v1/messages", "messages"],
  ["responses", "/v1/responses", "responses"],
  ["content", "/v1beta/models/m:generateContent", "content"],
])(
  "a %s client gets the text of a JSON answer that also has an empty delta",
  async (client, path, platform) => {
    const upstream = serve(() => ({ pieces: [JSON.stringify(WITH_DELTA)] }));
    const gateway = openFar(platform, channelOf("chat", upstream));
    const body =
      client === "content" ? { contents: [{ parts: [{ text: "Hello" }] }] } : { ...ASKED, input: "Hello" };
    const answer = await post(gateway, "g", path, body);
    expect([answer.status, (await answer.text()).includes("Paris")]).toEqual([200, true]);
  },
);

test("tokens that Mistral reports as cached are billed as read from the cache", async () => {
  const usage = { prompt_tokens: 77, completion_tokens: 1, total_tokens: 78, num_cached_tokens: 76 };
  const upstream = serve(() => ({ pieces: [JSON.stringify({ ...ANSWERS["chat"], usage })] }));
  const gateway = open(
    { far: channelOf("chat", upstream, { free: undefined }) },
    { g: { platform: "responses", channels: ["far"] } },
    { prices: { m: { input: "1", cache_read: "0.1", output: "10" } } },
  );
  await post(gateway, "g", PATHS["chat"]!, ASKED);
  await gateway.recorded(1);
  await flushLedger();
  const [line]: Any = gateway.ledger();
  expect([line.usage, line.basis, line.charge_usd]).toEqual([
    { input: 1, cache_read: 76, output: 1 },
    "exact",
    "0.0000186",
  ]);
});

test("P165: on failover to another dialect, a request that continues a thread gets 400, and a request that starts a thread is converted", async () => {
  const busy = '{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}';
  const own = serve(() => ({ status: 529, pieces: [busy] }));
  const far = serve(() => ({ pieces: [JSON.stringify(ANSWERS["chat"])] }));
  const gateway = open(
    { own: channelOf("messages", own), far: channelOf("chat", far) },
    { g: { platform: "messages", channels: ["own", "far"], convert: true } },
  );
  const thread = { type: "continue", previous_message_id: "msg_1" };
  const answer = await post(gateway, "g", "/v1/messages", { ...ASKED, thread });
  const { error }: Any = await answer.json();
  expect([answer.status, error.type]).toEqual([400, "invalid_request_error"]);
  expect(error.message).toStartWith("thread:");
  expect(far.bodies.length).toBe(0);
  const again = await post(gateway, "g", "/v1/messages", { ...ASKED, thread: { type: "create" } });
  expect([again.status, again.headers.get("x-gateway-adjusted"), far.bodies.length]).toEqual([
    200,
    "thread",
    1,
  ]);
});

describe("a value of the wrong kind gets 400, and is no fault of the gateway", () => {
  const HUGE = 9007199254740993n;
  const write = (body: Any): string =>
    JSON.stringify(body, (_, value) => (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value));
  const source = (media_type: Any): Any => ({
    type: "image",
    source: { type: "base64", media_type, data: "AA" },
  });

  test.each<[string, string, Any]>([
    ["messages", "/v1/messages", { ...ASKED, messages: [{ role: "user", content: [{ type: HUGE }] }] }],
    ["messages", "/v1/messages", { ...ASKED, messages: [{ role: "user", content: [source(HUGE)] }] }],
    ["responses", "/v1/responses", { model: "m", input: [{ role: "user", content: [{ type: HUGE }] }] }],
  ])("a value of the wrong kind from a %s client gets 400", async (platform, path, body) => {
    const upstream = serve(() => ({ pieces: [JSON.stringify(ANSWERS["chat"])] }));
    const gateway = openFar(platform, channelOf("chat", upstream));
    const headers = { authorization: "Bearer sk-test-g", "content-type": "application/json" };
    const answer = await fetch(gateway.url + path, { method: "POST", body: write(body), headers });
    expect(answer.status).toBe(400);
  });

  test("a model's name that is half of a surrogate pair reaches a content channel, and is no fault of the gateway", async () => {
    const upstream = serve(() => ({
      status: 404,
      pieces: ['{"error":{"code":404,"message":"no such model"}}'],
    }));
    const gateway = openFar("messages", channelOf("content", upstream));
    const answer = await post(gateway, "g", "/v1/messages", { ...ASKED, model: "\ud800" });
    expect([answer.status, upstream.bodies.length]).toEqual([404, 1]);
  });
});
