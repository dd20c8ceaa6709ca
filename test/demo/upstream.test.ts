// The official clients read every answer of the demo.

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { afterAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { startUpstream } from "../../src/demo/upstream.ts";

const upstreams = {
  messages: startUpstream({ platform: "messages", paceMs: 0 }),
  responses: startUpstream({ platform: "responses", paceMs: 0 }),
  content: startUpstream({ platform: "content", paceMs: 0 }),
};
afterAll(() => Object.values(upstreams).forEach((upstream) => upstream.stop()));
const urlOf = (name: keyof typeof upstreams): string => `http://127.0.0.1:${upstreams[name].port}`;

const SAID = 'You said: "Hello" I am MODEL, a simulated model, and I have counted every word of this answer.';
const hello = [{ role: "user" as const, content: "Hello" }];

test("Anthropic's client gets an answer, a stream, a count and a list, and a conversation is read from the cache", async () => {
  const client = new Anthropic({ apiKey: "any", baseURL: urlOf("messages"), maxRetries: 0 });
  const ask = { model: "claude-haiku-4-5", max_tokens: 100, messages: hello };
  const text = SAID.replace("MODEL", ask.model);
  const whole = await client.messages.create(ask);
  expect(whole).toMatchObject({ content: [{ type: "text", text }], stop_reason: "end_turn" });
  expect((await client.messages.stream(ask).finalMessage()).content).toMatchObject([{ text }]);
  const cut = await client.messages.create({ ...ask, max_tokens: 3 });
  expect(cut).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 3 } });
  const { max_tokens: _, ...question } = ask;
  expect(await client.messages.countTokens(question)).toEqual({ input_tokens: whole.usage.input_tokens });
  expect((await client.models.list()).data.map(({ id }) => id)).toContain("claude-haiku-4-5");
  const system = "A long text. ".repeat(500);
  await client.messages.create({ ...ask, system });
  const again = await client.messages.create({ ...ask, system });
  expect(again.usage.cache_read_input_tokens).toBeGreaterThan(1024);
});

test("OpenAI's client gets responses, chat completions, embeddings and a list", async () => {
  const client = new OpenAI({ apiKey: "any", baseURL: `${urlOf("responses")}/v1`, maxRetries: 0 });
  const model = "gpt-5.4";
  const text = SAID.replace("MODEL", model);
  expect(await client.responses.create({ model, input: "Hello" })).toMatchObject({ output_text: text });
  const last = await client.responses.stream({ model, input: hello }).finalResponse();
  expect(last).toMatchObject({ output_text: text, usage: { output_tokens: 18 } });
  expect((await client.responses.inputTokens.count({ model, input: "Hello" })).input_tokens).toBeGreaterThan(
    0,
  );
  const chat = await client.chat.completions.create({ model, messages: hello });
  expect(chat.choices[0]?.message.content).toBe(text);
  const options = { stream_options: { include_usage: true } };
  const stream = client.chat.completions.stream({ model, messages: hello, ...options });
  expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(text);
  expect((await stream.totalUsage()).completion_tokens).toBe(18);
  expect((await client.embeddings.create({ model, input: "Hello" })).data[0]?.embedding).toHaveLength(8);
  expect((await client.models.retrieve(model)).id).toBe(model);
});

test("Google's client gets an answer, a stream, a count, an embedding and a list", async () => {
  const client = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: urlOf("content") } });
  const ask = { model: "gemini-2.5-pro", contents: "Hello" };
  const text = SAID.replace("MODEL", ask.model);
  expect((await client.models.generateContent(ask)).text).toBe(text);
  let streamed = "";
  for await (const chunk of await client.models.generateContentStream(ask)) streamed += chunk.text;
  expect(streamed).toBe(text);
  expect((await client.models.countTokens(ask)).totalTokens).toBeGreaterThan(0);
  const embedded = await client.models.embedContent({ ...ask, model: "gemini-embedding-001" });
  expect(embedded.embeddings?.[0]?.values).toHaveLength(8);
  expect((await client.models.get({ model: ask.model })).name).toBe("models/gemini-2.5-pro");
});

test("a path that no upstream has is a 404, and a body that is not JSON a 400", async () => {
  const ask = (path: string) => fetch(urlOf("messages") + path, { method: "POST", body: "{" });
  expect((await ask("/v1/nothing")).status).toBe(404);
  expect((await ask("/v1/messages")).status).toBe(400);
});
