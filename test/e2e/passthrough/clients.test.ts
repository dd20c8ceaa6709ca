// The official SDKs and two frameworks as clients of every platform that they
// support: text, streaming, a tool call, and their own error classes.

import * as AnthropicSdk from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { GoogleGenAI, Type } from "@google/genai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as OpenAiSdk from "openai";
import { keyOf, type Platform } from "../../harness/gateway.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

/** Fails unless this many requests have ended since then and were billed exactly. */
async function expectBilled(before: number, count: number): Promise<void> {
  const records = (await world.gateway.recorded(before + count)).slice(before);
  expect(records).toHaveLength(count);
  for (const record of records)
    expect(record).toMatchObject({ status: 200, outcome: "complete", problem: null });
  for (const { chargeUsd } of records) expect(Number(chargeUsd)).toBeGreaterThan(0);
}

/** The error that is thrown; null: none. The SDKs' promises are of a class of their own. */
async function failure(act: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await act();
    return null;
  } catch (error) {
    return error;
  }
}

const SCHEMA = {
  type: "object" as const,
  properties: { city: { type: "string" as const } },
  required: ["city"],
};
const ASK_TOOL = "Please use weather.";

describe.each([
  ["messages", ""],
  ["relay", "/relay"],
] as const)("@anthropic-ai/sdk on the %s platform", (platform, prefix) => {
  const open = (key = keyOf(platform)) =>
    new AnthropicSdk.Anthropic({
      apiKey: key,
      baseURL: world.gateway.url + prefix,
      maxRetries: 0,
      logLevel: "off",
    });
  const ask = { model: "claude-haiku-4-5", max_tokens: 200 };
  const hello = { ...ask, messages: [{ role: "user" as const, content: "Hello" }] };

  test("the SDK of Anthropic reads text, whole and streamed, and counts tokens", async () => {
    const before = world.gateway.records.length;
    const whole = await open().messages.create(hello);
    expect(whole.content[0]).toMatchObject({
      type: "text",
      text: expect.stringContaining('You said: "Hello"'),
    });
    const stream = open().messages.stream(hello);
    let text = "";
    stream.on("text", (piece) => (text += piece));
    const final = await stream.finalMessage();
    expect(final.content[0]).toMatchObject({ text });
    expect(final.stop_reason).toBe("end_turn");
    await expectBilled(before, 2);
    expect((await open().messages.countTokens(hello)).input_tokens).toBeGreaterThan(0);
  });

  test("a tool is called and its result sent", async () => {
    const before = world.gateway.records.length;
    const tools = [{ name: "weather", description: "the weather", input_schema: SCHEMA }];
    const question = { role: "user" as const, content: ASK_TOOL };
    const asked = await open()
      .messages.stream({ ...ask, tools, messages: [question] })
      .finalMessage();
    expect(asked.stop_reason).toBe("tool_use");
    const call = asked.content.find((block) => block.type === "tool_use")!;
    expect(call).toMatchObject({ name: "weather", input: { city: expect.any(String) } });
    const result = { type: "tool_result" as const, tool_use_id: call.id, content: "Sunny" };
    const messages = [
      question,
      { role: "assistant" as const, content: asked.content },
      { role: "user" as const, content: [result] },
    ];
    const reported = await open().messages.create({ ...ask, tools, messages });
    expect(reported.content[0]).toMatchObject({ text: expect.stringContaining("Sunny") });
    await expectBilled(before, 2);
  });
});

describe("openai on the responses platform", () => {
  const open = (key = keyOf("responses")) =>
    new OpenAiSdk.OpenAI({ apiKey: key, baseURL: `${world.gateway.url}/v1`, maxRetries: 0 });
  const hello = { model: "gpt-5.4", input: "Hello" };
  const chat = { model: "gpt-5.4", messages: [{ role: "user" as const, content: "Hello" }] };

  test("openai on the responses platform reads text, whole and streamed", async () => {
    const before = world.gateway.records.length;
    expect((await open().responses.create(hello)).output_text).toContain('You said: "Hello"');
    const final = await open().responses.stream(hello).finalResponse();
    expect(final.output_text).toContain('You said: "Hello"');
    await expectBilled(before, 2);
  });

  test("a stored response is read, listed and deleted", async () => {
    const { id } = await open().responses.create({ ...hello, store: true });
    expect((await open().responses.retrieve(id)).id).toBe(id);
    expect((await open().responses.inputItems.list(id)).data.length).toBeGreaterThan(0);
    await open().responses.delete(id);
    expect(await failure(() => open().responses.retrieve(id))).toBeInstanceOf(OpenAiSdk.NotFoundError);
  });

  test("a tool is called and its result sent", async () => {
    const before = world.gateway.records.length;
    const tools = [{ type: "function" as const, name: "weather", strict: false, parameters: SCHEMA }];
    const asked = await open().responses.stream({ model: "gpt-5.4", tools, input: ASK_TOOL }).finalResponse();
    const call = asked.output.find((item) => item.type === "function_call")!;
    expect(JSON.parse(call.arguments)).toEqual({ city: expect.any(String) });
    const result = { type: "function_call_output" as const, call_id: call.call_id, output: "Sunny" };
    const input = [{ role: "user" as const, content: ASK_TOOL }, call, result];
    expect((await open().responses.create({ model: "gpt-5.4", tools, input })).output_text).toContain(
      "Sunny",
    );
    await expectBilled(before, 2);
  });

  test("openai on the responses platform reads chat completions: text, whole and streamed, and a tool", async () => {
    const before = world.gateway.records.length;
    expect((await open().chat.completions.create(chat)).choices[0]!.message.content).toContain(
      'You said: "Hello"',
    );
    const final = await open()
      .chat.completions.stream({ ...chat, stream_options: { include_usage: true } })
      .finalChatCompletion();
    expect(final.choices[0]!.message.content).toContain('You said: "Hello"');
    expect(final.usage!.total_tokens).toBeGreaterThan(0);
    const tools = [{ type: "function" as const, function: { name: "weather", parameters: SCHEMA } }];
    const question = { role: "user" as const, content: ASK_TOOL };
    const asked = await open()
      .chat.completions.stream({ ...chat, tools, messages: [question] })
      .finalChatCompletion();
    const { message } = asked.choices[0]!;
    const [call] = message.tool_calls!;
    expect(call).toMatchObject({ type: "function", function: { name: "weather" } });
    const result = { role: "tool" as const, tool_call_id: call!.id, content: "Sunny" };
    const reported = await open().chat.completions.create({
      ...chat,
      tools,
      messages: [question, message, result],
    });
    expect(reported.choices[0]!.message.content).toContain("Sunny");
    await expectBilled(before, 4);
  });

  test("openai on the responses platform reads embeddings as numbers and in base64, of one text and of several", async () => {
    const before = world.gateway.records.length;
    const model = "text-embedding-3-small";
    // The SDK asks for base64 by itself, and decodes it.
    const packed = await open().embeddings.create({ model, input: "Hello" });
    const plain = await open().embeddings.create({ model, input: "Hello", encoding_format: "float" });
    expect(plain.data[0]!.embedding).toHaveLength(8);
    for (const [index, value] of packed.data[0]!.embedding.entries())
      expect(value).toBeCloseTo(plain.data[0]!.embedding[index]!, 6);
    const many = await open().embeddings.create({ model, input: ["a", "b"], dimensions: 3 });
    expect(many.data.map(({ embedding }) => embedding.length)).toEqual([3, 3]);
    expect(many.usage.prompt_tokens).toBe(many.usage.total_tokens);
    await expectBilled(before, 3);
    expect(await failure(() => open(keyOf("relay")).embeddings.create({ model, input: "x" }))).toBeInstanceOf(
      OpenAiSdk.PermissionDeniedError,
    );
  });
});

describe.each([
  ["content", "", "v1beta"],
  ["content", "", "v1"],
  ["relay", "/relay", "v1beta"],
  ["relay", "/relay", "v1"],
] as const)("@google/genai on the %s platform (%s/%s)", (platform: Platform, prefix, apiVersion) => {
  const open = (key = keyOf(platform)) =>
    new GoogleGenAI({ apiKey: key, apiVersion, httpOptions: { baseUrl: world.gateway.url + prefix } });
  const hello = { model: "gemini-2.5-pro", contents: "Hello" };

  test("the SDK of Google reads text, whole and streamed, counts tokens and gets embeddings", async () => {
    const before = world.gateway.records.length;
    expect((await open().models.generateContent(hello)).text).toContain('You said: "Hello"');
    let text = "";
    for await (const chunk of await open().models.generateContentStream(hello)) text += chunk.text ?? "";
    expect(text).toContain('You said: "Hello"');
    await expectBilled(before, 2);
    expect((await open().models.countTokens(hello)).totalTokens).toBeGreaterThan(0);
    const embedded = await open().models.embedContent({ model: "gemini-embedding-001", contents: "Hello" });
    expect(embedded.embeddings).toHaveLength(1);
  });

  test("a tool is called and its result sent", async () => {
    const before = world.gateway.records.length;
    const parameters = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] };
    const config = { tools: [{ functionDeclarations: [{ name: "weather", parameters }] }] };
    const asked = await open().models.generateContent({
      model: "gemini-2.5-pro",
      contents: ASK_TOOL,
      config,
    });
    const [call] = asked.functionCalls!;
    expect(call).toMatchObject({ name: "weather", args: { city: expect.any(String) } });
    const result = { functionResponse: { name: "weather", response: { output: "Sunny" } } };
    const contents = [
      { role: "user", parts: [{ text: ASK_TOOL }] },
      asked.candidates![0]!.content!,
      { role: "user", parts: [result] },
    ];
    const reported = await open().models.generateContent({ model: "gemini-2.5-pro", contents, config });
    expect(reported.text).toContain("Sunny");
    await expectBilled(before, 2);
  });
});

describe.each(["chat", "responses"] as const)("@ai-sdk/openai through %s", (way) => {
  const model = () => {
    const provider = createOpenAI({ apiKey: keyOf("responses"), baseURL: `${world.gateway.url}/v1` });
    return way === "chat" ? provider.chat("gpt-5.4") : provider.responses("gpt-5.4");
  };

  test("the SDK reads text, streams and calls a tool", async () => {
    const before = world.gateway.records.length;
    expect((await generateText({ model: model(), prompt: "Hello" })).text).toContain('You said: "Hello"');
    const stream = streamText({ model: model(), prompt: "Hello" });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    expect(text).toContain('You said: "Hello"');
    const weather = tool({
      description: "the weather",
      inputSchema: jsonSchema<{ city: string }>(SCHEMA),
      execute: () => "Sunny",
    });
    const answered = await generateText({
      model: model(),
      prompt: ASK_TOOL,
      tools: { weather },
      stopWhen: stepCountIs(2),
    });
    expect(answered.text).toContain("Sunny");
    await expectBilled(before, 4);
  });
});

describe.each([false, true])("@langchain/openai (responses: %s)", (useResponsesApi) => {
  const model = () =>
    new ChatOpenAI({
      model: "gpt-5.4",
      apiKey: keyOf("responses"),
      useResponsesApi,
      maxRetries: 0,
      configuration: { baseURL: `${world.gateway.url}/v1` },
    });

  test("the SDK reads text, streams and calls a tool", async () => {
    const before = world.gateway.records.length;
    expect((await model().invoke("Hello")).text).toContain('You said: "Hello"');
    let text = "";
    for await (const chunk of await model().stream("Hello")) text += chunk.text;
    expect(text).toContain('You said: "Hello"');
    const weather = { type: "function" as const, function: { name: "weather", parameters: SCHEMA } };
    const answered = await model().bindTools([weather]).invoke(ASK_TOOL);
    expect(answered.tool_calls).toMatchObject([{ name: "weather", args: { city: expect.any(String) } }]);
    await expectBilled(before, 3);
  });
});
