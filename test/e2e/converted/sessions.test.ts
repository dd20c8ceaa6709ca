// A session of an agent on a model of another provider, through a real gateway: for each direction, with a strict upstream.

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { afterAll, describe, expect, test } from "bun:test";
import { DIALECT_NAMES, type DialectName } from "../../../src/dialects/dialect.ts";
import { type Any, readEvents } from "../../bridges/calls.ts";
import { formRequest, formUser, keepAnswer, type ModelTurn } from "../../bridges/session.ts";
import { type InsideGateway, startGatewayHere } from "../../harness/gateway.ts";
import { flushLedger } from "../world.ts";
import { COUNTS, playList, type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.ts";

const READ = { name: "Read", args: { path: "a" } };
const SCRIPT: readonly ModelTurn[] = [
  {
    thought: "hm",
    text: "I look.",
    calls: [
      { ...READ, id: "call_1" },
      { ...READ, id: "call_2" },
    ],
  },
  { thought: "hm", text: null, calls: [{ id: "call_3", name: "Bash", args: { command: "false" } }] },
  { thought: null, text: "Done: ä 🙂", calls: [] },
];

/** The platform of a channel, and of a group whose clients speak the dialect. */
const PLATFORM_OF: Readonly<Record<DialectName, string>> = {
  messages: "messages",
  responses: "responses",
  chat: "chat",
  content: "content",
};
const GROUP_OF: Readonly<Record<DialectName, string>> = { ...PLATFORM_OF, chat: "responses" };
const MODEL_OF: Readonly<Record<DialectName, string>> = {
  messages: "claude-opus-4-8",
  responses: "gpt-5.6",
  chat: "qwen3-coder",
  content: "gemini-3.5-pro",
};

interface World {
  readonly upstream: ScriptedUpstream;
  readonly gateway: InsideGateway;
  readonly post: (body: Any, stream: boolean) => Promise<Response>;
}

const stops: (() => unknown)[] = [];

function openWorld(client: DialectName, dialect: DialectName, script: readonly ModelTurn[] = SCRIPT): World {
  const upstream = startScriptedUpstream(dialect, playList(script));
  const gateway = startGatewayHere({
    config: {
      channels: {
        far: {
          platform: PLATFORM_OF[dialect],
          base_url: upstream.url,
          credential: "credential-of-far",
          aliases: { asked: MODEL_OF[dialect] },
          price_provider: "openai",
        },
      },
      groups: { g: { platform: GROUP_OF[client], channels: ["far"], convert: true } },
      keys: [{ name: "k", group: "g", secret: "sk-test-converted" }],
    },
  });
  stops.push(
    () => gateway.stop(),
    () => upstream.stop(),
  );
  const paths: Readonly<Record<DialectName, (stream: boolean) => string>> = {
    messages: () => "/v1/messages?beta=true",
    responses: () => "/v1/responses",
    chat: () => "/v1/chat/completions",
    content: (stream) =>
      `/v1beta/models/asked:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  };
  const post = (body: Any, stream: boolean): Promise<Response> =>
    fetch(gateway.url + paths[client](stream), {
      method: "POST",
      body: JSON.stringify(body),
      headers: {
        authorization: "Bearer sk-test-converted",
        "content-type": "application/json",
        "anthropic-beta": "x",
      },
    });
  return { upstream, gateway, post };
}

afterAll(async () => {
  for (const stop of stops) await stop();
});

const DIRECTIONS = DIALECT_NAMES.flatMap((client) =>
  DIALECT_NAMES.filter((upstream) => upstream !== client && `${client}>${upstream}` !== "chat>responses").map(
    (upstream) => [client, upstream] as const,
  ),
);

describe.each(DIRECTIONS)("%s clients on a %s channel", (client, dialect) => {
  test(`a session of a ${client} client on a ${dialect} channel is answered, billed and kept in the cache`, async () => {
    const { upstream, gateway, post } = openWorld(client, dialect);
    const history: Any[] = [];
    let calls: ModelTurn["calls"] = [];
    for (const [at, turn] of SCRIPT.entries()) {
      const text = at === 0 ? "Hello" : null;
      history.push(...formUser(client, { results: ["one", "two"], text, image: at === 1 }, calls));
      const response = await post(formRequest(client, history, true), true);
      const answer = await response.text();
      expect([response.status, response.headers.get("x-gateway-converted")]).toEqual([
        200,
        `${client}->${dialect}`,
      ]);
      history.push(...keepAnswer(client, readEvents(answer)));
      calls = turn.calls;
    }
    expect(upstream.problems).toEqual([]);
    expect(upstream.asked.map(({ body, path }) => body.model ?? /models\/([^:]+)/.exec(path)?.[1])).toEqual(
      SCRIPT.map(() => MODEL_OF[dialect]),
    );
    const cached = upstream.asked.map(({ text }) =>
      text.replaceAll(/,"(?:cache_control|prompt_cache_breakpoint)":\{[^{}]*\}/g, "").replace(/[\]}]+$/, ""),
    );
    expect(cached[2]?.startsWith(cached[1] ?? "none")).toBe(true);
    expect(upstream.asked[2]?.text).toContain("hm");
    expect(JSON.stringify(history)).toContain("Done: ä 🙂");
    for (const { headers } of upstream.asked) {
      expect(headers.get("anthropic-beta")).toBeNull();
      expect(JSON.stringify([...headers])).toContain("credential-of-far");
    }
    await gateway.recorded(3);
    await flushLedger();
    const lines = gateway.ledger();
    expect(lines.map(({ converted, outcome }) => [converted, outcome])).toEqual(
      SCRIPT.map(() => [dialect, "complete"]),
    );
    const usage: Any = lines[0]?.["usage"];
    expect((usage.input ?? 0) + (usage.cache_read ?? 0)).toBe(COUNTS.prompt);
    expect(usage.output).toBe(COUNTS.output);
  });

  test(`a whole answer for a ${client} client of a ${dialect} channel has its charge, and says what its stream says`, async () => {
    const { post } = openWorld(client, dialect, SCRIPT.slice(2));
    const history = formUser(client, { results: [], text: "Hello", image: false }, []);
    const whole = await post(formRequest(client, history, false), false);
    const streamed = await post(formRequest(client, history, true), true);
    expect(whole.headers.get("content-type")).toStartWith("application/json");
    // Each answer has names of its own.
    const plain = (kept: Any[]): Any[] => kept.map((each) => ({ ...each, id: null }));
    expect(plain(keepAnswer(client, [await whole.json()]))).toEqual(
      plain(keepAnswer(client, readEvents(await streamed.text()))),
    );
  });

  test(`an error of a ${dialect} channel reaches a ${client} client in its own shape`, async () => {
    const { upstream, post } = openWorld(client, dialect);
    const history = formUser(client, { results: [], text: "Hello", image: false }, []);
    upstream.next = () =>
      Response.json(
        { error: { code: "context_length_exceeded", message: "prompt is too long: 9 tokens > 8 maximum" } },
        { status: 400 },
      );
    const refused = await post(formRequest(client, history, true), true);
    expect(refused.status).toBe(400);
    expect(await refused.text()).toMatch(/prompt is too long|input token count/);
    upstream.next = () => new Response("", { headers: { "content-type": "text/event-stream" } });
    const cut = await post(formRequest(client, history, true), true);
    expect(cut.status).toBeGreaterThanOrEqual(500);
  });
});

describe("official clients", () => {
  const open = (client: DialectName, upstream: DialectName): World => openWorld(client, upstream);

  test.each<DialectName>(["chat", "responses", "content"])(
    "Anthropic's SDK reads a stream of a %s channel",
    async (dialect) => {
      const { gateway } = open("messages", dialect);
      const sdk = new Anthropic({ apiKey: "sk-test-converted", baseURL: gateway.url, maxRetries: 0 });
      const message = await sdk.messages
        .stream(formRequest("messages", [{ role: "user", content: "Hi" }], true))
        .finalMessage();
      expect(message.content[0]?.type).toBe("thinking");
      const said = message.content.filter(({ type }) => type !== "thinking");
      expect(said.map(({ type }) => type)).toEqual(["text", "tool_use", "tool_use"]);
      expect(message).toMatchObject({
        stop_reason: "tool_use",
        usage: { input_tokens: 60, cache_read_input_tokens: 40 },
      });
      const whole = await sdk.messages.create(
        formRequest("messages", [{ role: "user", content: "Hi" }], false),
      );
      expect(whole.content.at(-1)).toMatchObject({ type: "tool_use", input: { command: "false" } });
    },
  );

  test.each<DialectName>(["messages", "chat", "content"])(
    "OpenAI's SDK reads a response of a %s channel",
    async (dialect) => {
      const { gateway } = open("responses", dialect);
      const sdk = new OpenAI({ apiKey: "sk-test-converted", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
      const asked = formRequest("responses", [{ role: "user", content: "Hi" }], true);
      const final = await sdk.responses.stream(asked).finalResponse();
      expect(final.output[0]?.type).toBe("reasoning");
      const said = final.output.filter(({ type }) => type !== "reasoning");
      expect(said.map(({ type }) => type)).toEqual(["message", "function_call", "function_call"]);
      expect(final.output_text).toBe("I look.");
    },
  );

  test.each<DialectName>(["messages", "content"])(
    "OpenAI's SDK reads a chat of a %s channel",
    async (dialect) => {
      const { gateway } = open("chat", dialect);
      const sdk = new OpenAI({ apiKey: "sk-test-converted", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
      const asked = formRequest("chat", [{ role: "user", content: "Hi" }], true);
      const completion = await sdk.chat.completions.stream(asked).finalChatCompletion();
      expect(completion.choices[0]).toMatchObject({
        finish_reason: "tool_calls",
        message: { content: "I look." },
      });
      expect(completion.choices[0]?.message.tool_calls?.map(({ id }) => id)).toEqual(["call_1", "call_2"]);
    },
  );

  test.each<DialectName>(["messages", "responses", "chat"])(
    "Google's SDK reads a stream of a %s channel",
    async (dialect) => {
      const { gateway } = open("content", dialect);
      const sdk = new GoogleGenAI({ apiKey: "sk-test-converted", httpOptions: { baseUrl: gateway.url } });
      const tools = formRequest("content", [], true).tools;
      const stream = await sdk.models.generateContentStream({
        model: "asked",
        contents: "Hi",
        config: { tools },
      });
      const seen: Any[] = [];
      for await (const chunk of stream) seen.push(chunk);
      expect(seen.flatMap((chunk) => chunk.functionCalls ?? []).map(({ id }) => id)).toEqual([
        "call_1",
        "call_2",
      ]);
      expect(seen.at(-1)).toMatchObject({
        usageMetadata: { promptTokenCount: 100, cachedContentTokenCount: 40 },
      });
    },
  );
});
