// More about groups with `convert: true`: the key of the upstream's cache, refusals, aliases,
// estimates, limits, other endpoints, long requests, settings of a chat channel, and a change of the channel.

import { expect, onTestFinished, test } from "bun:test";
import type { DialectName } from "../../../src/dialects/dialect.ts";
import { type Any, readEvents } from "../../bridges/calls.ts";
import { formRequest, formUser, keepAnswer, type ModelTurn } from "../../bridges/session.ts";
import { flushLedger } from "../world.ts";
import { channelOf, open, openFar, post } from "./far.ts";
import { playList, type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.ts";

const SCRIPT: readonly ModelTurn[] = [{ thought: "hm", text: "Hello", calls: [] }];
const HELLO = formUser("messages", { results: [], text: "Hello", image: false }, []);
function openUpstream(dialect: DialectName): ScriptedUpstream {
  const upstream = startScriptedUpstream(dialect, playList(SCRIPT));
  onTestFinished(() => upstream.stop());
  return upstream;
}

test("each session named by an agent has its own cache key upstream, and x-gateway-session does not change it", async () => {
  const far = openUpstream("responses");
  const gateway = openFar("messages", channelOf("responses", far));
  const body = formRequest("messages", HELLO, false);
  const senders: Record<string, string>[] = [
    { "x-session-id": "one" },
    { "x-session-id": "one" },
    { "x-session-id": "two" },
    { "x-gateway-session": "run-1", "user-agent": "GeminiCLI/0.61.0" },
    { "x-gateway-session": "run-2", "user-agent": "GeminiCLI/0.61.0" },
    { "user-agent": "GeminiCLI/0.61.0" },
    { "user-agent": "other/1" },
  ];
  for (const sender of senders) await post(gateway, "g", "/v1/messages", body, sender);
  const keys = far.asked.map(({ body: { prompt_cache_key: key } }) => key);
  expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2, 3, 3, 3, 6]);
});

test("a client's request that a channel refuses starts no cooldown (decolua/9router#4050)", async () => {
  const far = openUpstream("chat");
  const gateway = openFar("messages", channelOf("chat", far));
  const format = { type: "json_schema", schema: { type: "object", properties: {} } };
  const title = { ...formRequest("messages", HELLO, true), output_config: { format } };
  for (let tries = 0; tries < 6; tries += 1) {
    far.next = () => Response.json({ error: { message: "response_format: no" } }, { status: 400 });
    expect((await post(gateway, "g", "/v1/messages", title)).status).toBe(400);
  }
  const next = await post(gateway, "g", "/v1/messages", formRequest("messages", HELLO, true));
  expect([next.status, far.asked.length]).toEqual([200, 7]);
});

test("an alias serves all the models that an agent's helpers ask for (anthropics/claude-code#16115, cfal/garcon#488)", async () => {
  const far = openUpstream("chat");
  const gateway = openFar(
    "messages",
    channelOf("chat", far, { models: ["qwen3-coder"], aliases: { "claude-*": "qwen3-coder" } }),
  );
  for (const model of [
    "claude-haiku-4-5-20251001",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-fable-5-1",
  ]) {
    const answer = await post(gateway, "g", "/v1/messages", {
      ...formRequest("messages", HELLO, false),
      model,
    });
    const { model: named }: Any = await answer.json();
    expect([answer.status, named]).toEqual([200, model]);
  }
  expect(far.asked.map(({ body }) => body.model)).toEqual(Array.from({ length: 4 }, () => "qwen3-coder"));
});

const PLAIN_COUNT = { model: "m", messages: HELLO, input: "Hi", contents: [{ parts: [{ text: "Hi" }] }] };

test.each([0, "100", null])(
  "if an answer's token counts are %j, the client and the line get the same estimate",
  async (count) => {
    const far = openUpstream("chat");
    const gateway = openFar("messages", channelOf("chat", far));
    const message = { role: "assistant", content: "An answer of some length." };
    const usage = { prompt_tokens: count, completion_tokens: count, total_tokens: count };
    far.next = () => Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }], usage });
    const answer: Any = await (
      await post(gateway, "g", "/v1/messages", { model: "m", max_tokens: 9, messages: HELLO })
    ).json();
    await gateway.recorded(1);
    const [line]: Any = gateway.ledger();
    expect([line.basis, line.usage.input > 0]).toEqual(["partial", true]);
    expect([answer.usage.input_tokens, answer.usage.output_tokens]).toEqual([
      line.usage.input,
      line.usage.output,
    ]);
  },
);

test.each([
  ["requests_per_minute", [200, 200, 429]],
  ["concurrent_requests", [200, 200, 200]],
])("with %s: 2, three converted count_tokens requests get %j", async (limit, expected) => {
  const far = openUpstream("responses");
  const gateway = openFar("messages", channelOf("responses", far), { key: { limits: { [limit]: 2 } } });
  const statuses = [];
  for (let tries = 0; tries < 3; tries += 1) {
    statuses.push((await post(gateway, "g", "/v1/messages/count_tokens", PLAIN_COUNT)).status);
  }
  expect(statuses).toEqual(expected);
});

test("a group with convert: true refuses WebSockets, and endpoints that have no conversion", async () => {
  const far = openUpstream("chat");
  const gateway = openFar("responses", channelOf("chat", far));
  const compact = await post(gateway, "g", "/v1/responses/compact", { model: "m", input: "Hi" });
  expect(compact.status).toBe(404);
  const headers = { authorization: "Bearer sk-test-g" };
  expect((await fetch(`${gateway.url}/v1/responses/resp_1`, { headers })).status).toBe(404);
  const upgrade = await fetch(`${gateway.url}/v1/responses`, {
    headers: {
      ...headers,
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    },
  });
  expect(upgrade.status).toBe(426);
  expect(far.asked).toEqual([]);
});

test("a long request is converted in steps, between which the gateway serves others", async () => {
  const far = openUpstream("chat");
  const gateway = openFar("messages", channelOf("chat", far));
  const text = "A long prompt. ".repeat(200_000);
  const long = formUser("messages", { results: [], text, image: false }, []);
  const answers = await Promise.all(
    [long, HELLO, long].map((history) =>
      post(gateway, "g", "/v1/messages", formRequest("messages", history, true)),
    ),
  );
  for (const answer of answers) expect(await answer.text()).toContain("message_stop");
  expect(far.asked.filter(({ text: sent }) => sent.length > text.length)).toHaveLength(2);
  const refused = { ...formRequest("messages", long, true), mcp_servers: [{ url: "https://x" }] };
  expect((await post(gateway, "g", "/v1/messages", refused)).status).toBe(400);
  await gateway.recorded(4);
  await flushLedger();
  expect([far.problems, gateway.ledger().length]).toEqual([[], 3]);
});

test("a channel's `chat` settings change the requests that it gets", async () => {
  const far = openUpstream("chat");
  const chat = { cap: "max_completion_tokens", reasoning: "qwen", systems: "first" };
  const gateway = openFar("messages", channelOf("chat", far, { chat }));
  await post(gateway, "g", "/v1/messages", formRequest("messages", HELLO, false));
  expect(far.asked[0]?.body).toMatchObject({
    max_completion_tokens: 4096,
    chat_template_kwargs: { enable_thinking: true },
  });
});

test("a session that moves to a channel of its own dialect goes on, and this channel gets no thoughts of the other channel", async () => {
  const [own, far] = [openUpstream("messages"), openUpstream("chat")];
  const gateway = open(
    { own: channelOf("messages", own), far: channelOf("chat", far) },
    {
      native: { platform: "messages", channels: ["own"] },
      crossed: { platform: "messages", channels: ["far"], convert: true },
    },
  );
  const first = await post(gateway, "crossed", "/v1/messages", formRequest("messages", HELLO, true));
  const kept = keepAnswer("messages", readEvents(await first.text()));
  expect(JSON.stringify(kept)).toContain('"gw1.');
  const second = await post(
    gateway,
    "native",
    "/v1/messages",
    formRequest("messages", [...HELLO, ...kept, ...HELLO], true),
  );
  expect(second.status).toBe(200);
  expect(own.asked[0]?.body.messages[1].content).toEqual([{ type: "text", text: "Hello" }]);
});
