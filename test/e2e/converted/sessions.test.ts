// Plays sessions of agents on a model of another provider, for each pair of dialects, with a strict upstream.

import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";
import { describe, expect, onTestFinished, test } from "bun:test";
import { DIALECT_NAMES, type DialectName } from "../../../src/dialects/dialect.ts";
import { type Any, readEvents } from "../../bridges/calls.ts";
import { flatten } from "../../bridges/judge.ts";
import { checkPublishedTypes } from "../../bridges/published-types.ts";
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

/** The platform of a channel that speaks the dialect. Chat clients use a group of the platform responses. */
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
  for (const part of [gateway, upstream]) onTestFinished(() => part.stop());
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

const DIRECTIONS = DIALECT_NAMES.flatMap((client) =>
  DIALECT_NAMES.filter((upstream) => upstream !== client && `${client}>${upstream}` !== "chat>responses").map(
    (upstream) => [client, upstream] as const,
  ),
);

/** The requests that the channels of each dialect got. */
const asked: Readonly<Record<DialectName, Any[]>> = { messages: [], responses: [], chat: [], content: [] };

describe.each(DIRECTIONS)("%s clients on a %s channel", (client, dialect) => {
  test(`a session of a ${client} client on a ${dialect} channel is answered and billed, and its prompts only grow`, async () => {
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
    asked[dialect].push(...upstream.asked.map(({ body }) => body));
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

  test(`a JSON answer for a ${client} client of a ${dialect} channel has the same content as a stream`, async () => {
    const { post } = openWorld(client, dialect, SCRIPT.slice(2));
    const history = formUser(client, { results: [], text: "Hello", image: false }, []);
    const whole = await post(formRequest(client, history, false), false);
    const streamed = await post(formRequest(client, history, true), true);
    expect(whole.headers.get("content-type")).toStartWith("application/json");
    // Each answer has an id of its own.
    const plain = (kept: Any[]): Any[] => kept.map((each) => ({ ...each, id: null }));
    expect(plain(keepAnswer(client, [await whole.json()]))).toEqual(
      plain(keepAnswer(client, readEvents(await streamed.text()))),
    );
  });

  test(`an error of a ${dialect} channel reaches a ${client} client in the client's shape`, async () => {
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

test("every request to a channel has the types that the channel's provider publishes", async () => {
  for (const dialect of DIALECT_NAMES) expect(asked[dialect].length).toBeGreaterThan(0);
  expect(await checkPublishedTypes(asked)).toBe("");
});

/** A client that holds the conversation in its SDK's own objects. `say` sends a text, or the results of the calls. */
interface Sdk {
  say(said: string | readonly string[], isStreamed: boolean): Promise<{ text: string; calls: string[] }>;
}

const KEY = { apiKey: "sk-test-converted", maxRetries: 0 };

const SDKS: Readonly<Record<DialectName, (url: string) => Sdk>> = {
  messages(baseURL) {
    const sdk = new Anthropic({ ...KEY, baseURL });
    const messages: Any[] = [];
    return {
      async say(said, isStreamed) {
        const results = (ids: readonly string[]): Any[] =>
          ids.map((tool_use_id) => ({ type: "tool_result", tool_use_id, content: "ok" }));
        messages.push({ role: "user", content: typeof said === "string" ? said : results(said) });
        const { model, max_tokens, tools, thinking } = formRequest("messages", [], false);
        const body = { model, max_tokens, tools, thinking, messages };
        const answer = isStreamed
          ? await sdk.messages.stream(body).finalMessage()
          : await sdk.messages.create(body);
        messages.push({ role: "assistant", content: answer.content });
        const { content } = answer;
        const calls = content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
        const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
        return { text, calls };
      },
    };
  },
  responses(url) {
    const sdk = new OpenAI({ ...KEY, baseURL: `${url}/v1` });
    const input: Any[] = [];
    return {
      async say(said, isStreamed) {
        if (typeof said === "string") input.push({ role: "user", content: said });
        else for (const call_id of said) input.push({ type: "function_call_output", call_id, output: "ok" });
        const body = { ...formRequest("responses", [], false), input, stream: undefined };
        const answer = isStreamed
          ? await sdk.responses.stream(body).finalResponse()
          : await sdk.responses.create(body);
        input.push(...answer.output);
        const calls = answer.output.flatMap((item) => (item.type === "function_call" ? [item.call_id] : []));
        return { text: answer.output_text, calls };
      },
    };
  },
  chat(url) {
    const sdk = new OpenAI({ ...KEY, baseURL: `${url}/v1` });
    const messages: Any[] = [];
    return {
      async say(said, isStreamed) {
        if (typeof said === "string") messages.push({ role: "user", content: said });
        else for (const tool_call_id of said) messages.push({ role: "tool", tool_call_id, content: "ok" });
        const body = { ...formRequest("chat", [], false), messages, stream: undefined };
        const answer = isStreamed
          ? await sdk.chat.completions.stream(body).finalChatCompletion()
          : await sdk.chat.completions.create(body);
        const { message } = answer.choices[0]!;
        messages.push(message);
        return { text: message.content ?? "", calls: (message.tool_calls ?? []).map(({ id }) => id) };
      },
    };
  },
  content(baseUrl) {
    const sdk = new GoogleGenAI({ apiKey: KEY.apiKey, httpOptions: { baseUrl } });
    const { tools, generationConfig } = formRequest("content", [], false);
    const chat = sdk.chats.create({ model: "asked", config: { tools, ...generationConfig } });
    const names = new Map<string, string>();
    return {
      async say(said, isStreamed) {
        const results = (ids: readonly string[]): Any[] =>
          ids.map((id) => ({ functionResponse: { id, name: names.get(id), response: { result: "ok" } } }));
        const message = typeof said === "string" ? said : results(said);
        const chunks: Any[] = [];
        if (!isStreamed) chunks.push(await chat.sendMessage({ message }));
        else for await (const chunk of await chat.sendMessageStream({ message })) chunks.push(chunk);
        const calls = chunks.flatMap((chunk) => chunk.functionCalls ?? []);
        for (const { id, name } of calls) names.set(id, name);
        return { text: chunks.map((chunk) => chunk.text ?? "").join(""), calls: calls.map(({ id }) => id) };
      },
    };
  },
};

/** Opens a client of LangChain, which has one class for both of OpenAI's dialects. */
function openLangChain(url: string, useResponsesApi: boolean): Sdk {
  const configuration = { baseURL: `${url}/v1` };
  const model = new ChatOpenAI({ ...KEY, model: "asked", useResponsesApi, configuration });
  const tools: Any[] = formRequest("chat", [], false).tools;
  const messages: Any[] = [];
  return {
    async say(said, isStreamed) {
      if (typeof said === "string") messages.push({ role: "user", content: said });
      else for (const tool_call_id of said) messages.push({ role: "tool", tool_call_id, content: "ok" });
      let answer: Any = null;
      if (!isStreamed) answer = await model.invoke(messages, { tools });
      else
        for await (const chunk of await model.stream(messages, { tools }))
          answer = answer?.concat(chunk) ?? chunk;
      messages.push(answer);
      return { text: answer.text, calls: answer.tool_calls.map(({ id }: Any) => id) };
    },
  };
}

/** Opens a client of the AI SDK, which has a model for each of OpenAI's dialects. */
function openAiSdk(url: string, dialect: "chat" | "responses"): Sdk {
  const model = createOpenAI({ apiKey: KEY.apiKey, baseURL: `${url}/v1` })[dialect]("asked");
  const tools = Object.fromEntries(
    formRequest("chat", [], false).tools.map(({ function: { name, parameters } }: Any) => [
      name,
      tool({ inputSchema: jsonSchema(parameters) }),
    ]),
  );
  const messages: Any[] = [];
  const names = new Map<string, string>();
  return {
    async say(said, isStreamed) {
      const results = (ids: readonly string[]): Any[] =>
        ids.map((toolCallId) => {
          const output = { type: "text", value: "ok" };
          return { type: "tool-result", toolCallId, toolName: names.get(toolCallId), output };
        });
      if (typeof said === "string") messages.push({ role: "user", content: said });
      else messages.push({ role: "tool", content: results(said) });
      // Without this option, the SDK sends ids in place of items, as if OpenAI had kept the items.
      const providerOptions = { openai: { store: false } };
      const call = { model, tools, messages, maxRetries: 0, providerOptions };
      const answer = isStreamed ? streamText(call) : await generateText(call);
      const [text, calls, { messages: added }] = [
        await answer.text,
        await answer.toolCalls,
        await answer.response,
      ];
      messages.push(...added);
      for (const { toolCallId, toolName } of calls) names.set(toolCallId, toolName);
      return { text, calls: calls.map(({ toolCallId }) => toolCallId) };
    },
  };
}

const WAYS = ["streamed", "not streamed"] as const;
const ALL_DIRECTIONS = [...DIRECTIONS, ["chat", "responses"] as const];

describe.each(WAYS)("sessions whose conversation is in an SDK's own objects (%s)", (way) => {
  test.each(ALL_DIRECTIONS)("the SDK of a %s client completes a session on a %s channel", (client, dialect) =>
    holdSession(client, dialect, way, SDKS[client]),
  );

  const ofOpenai = ALL_DIRECTIONS.flatMap(([client, dialect]) =>
    client === "chat" || client === "responses" ? [[client, dialect] as const] : [],
  );
  test.each(ofOpenai)("LangChain as a %s client completes a session on a %s channel", (client, dialect) =>
    holdSession(client, dialect, way, (url) => openLangChain(url, client === "responses")),
  );

  test.each(ofOpenai)("the AI SDK as a %s client completes a session on a %s channel", (client, dialect) =>
    holdSession(client, dialect, way, (url) => openAiSdk(url, client)),
  );
});

async function holdSession(
  client: DialectName,
  dialect: DialectName,
  way: (typeof WAYS)[number],
  open: (url: string) => Sdk,
): Promise<void> {
  const { upstream, gateway } = openWorld(client, dialect);
  const sdk = open(gateway.url);
  let answer = await sdk.say("Hi", way === "streamed");
  expect(answer).toEqual({ text: "I look.", calls: ["call_1", "call_2"] });
  while (answer.calls.length > 0) answer = await sdk.say(answer.calls, way === "streamed");
  expect(answer.text).toBe("Done: ä 🙂");
  expect(upstream.problems).toEqual([]);
  const seen = flatten(dialect, upstream.asked.at(-1)?.body).filter(([kind]) => kind !== "thought");
  expect(seen).toEqual([
    ["user", "Hi"],
    ["assistant", "I look."],
    ["call", "call_1", "Read", READ.args],
    ["call", "call_2", "Read", READ.args],
    ["result", "call_1", "ok"],
    ["result", "call_2", "ok"],
    ["call", "call_3", "Bash", { command: "false" }],
    ["result", "call_3", "ok"],
  ]);
}
