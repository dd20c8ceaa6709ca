// The official clients take the simulated upstream for the real one. Texts, streams, tools and errors go through the gateway
// in test/e2e/passthrough/clients.test.ts; this is the rest.

import Anthropic, { InternalServerError, RateLimitError } from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { NotFoundError } from "openai";
import { startDemoUpstream, type DemoUpstream } from "../harness/upstreams/demo-upstream.ts";

let upstream: DemoUpstream;
beforeAll(() => {
  upstream = startDemoUpstream();
});
afterAll(() => upstream.stop());

const WEATHER = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 2 } },
  required: ["city", "days"],
  additionalProperties: false,
} as const;
/** What a promise of a client fails with (they are thenables, not promises: `rejects` won't take them). */
async function fail(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await promise.then(() => "no failure");
  } catch (error) {
    return error;
  }
}

const WEATHER_INPUT = { city: "demo city", days: 2 };

describe("@anthropic-ai/sdk", () => {
  const open = () => new Anthropic({ apiKey: "any", baseURL: upstream.url, maxRetries: 0 });
  const ask = (text: string) => ({
    model: "claude-haiku-4-5",
    max_tokens: 1000,
    messages: [{ role: "user" as const, content: text }],
  });

  test("gets thinking when it asks for it", async () => {
    const thinking = { type: "adaptive" as const };
    const message = await open()
      .messages.stream({ ...ask("Think"), thinking })
      .finalMessage();
    expect(message.content.map(({ type }) => type)).toEqual(["thinking", "text"]);
  });

  test("counts the same tokens as the usage of the answer", async () => {
    const { max_tokens: _, ...question } = ask("How many?");
    const counted = await open().messages.countTokens(question);
    const answered = await open().messages.create(ask("How many?"));
    expect(counted.input_tokens).toBe(answered.usage.input_tokens);
  });

  test("writes to the cache first and reads from it afterwards", async () => {
    const system = [
      {
        type: "text" as const,
        text: "A long text. ".repeat(99),
        cache_control: { type: "ephemeral" as const },
      },
    ];
    const first = await open().messages.create({ ...ask("one"), system });
    const second = await open().messages.create({ ...ask("two"), system });
    expect(first.usage.cache_creation_input_tokens).toBeGreaterThan(300);
    expect(first.usage.cache_read_input_tokens).toBe(0);
    expect(second.usage.cache_creation_input_tokens).toBe(0);
    expect(second.usage.cache_read_input_tokens).toBe(first.usage.cache_creation_input_tokens);
  });

  test("pages through the model list and reads one", async () => {
    const ids: string[] = [];
    for await (const model of open().models.list({ limit: 2 })) ids.push(model.id);
    expect(ids).toContain("claude-haiku-4-5");
    expect(ids.length).toBeGreaterThan(2);
    expect((await open().models.retrieve("claude-haiku-4-5")).display_name).toBe("Claude Haiku 4 5");
  });

  test("raises the right error class", async () => {
    const failing = { ...ask("x"), model: "demo-fault-status-529" };
    expect(await fail(open().messages.create(failing))).toBeInstanceOf(InternalServerError);
    const limited = open().messages.create({ ...ask("x"), model: "demo-fault-status-429" });
    expect(await fail(limited)).toBeInstanceOf(RateLimitError);
  });
});

describe("openai, responses", () => {
  const open = () => new OpenAI({ apiKey: "any", baseURL: `${upstream.url}/v1`, maxRetries: 0 });
  const model = "gpt-5.4";

  test("streams numbered events that end in the whole response", async () => {
    const stream = open().responses.stream({
      model,
      input: "Same?",
      reasoning: { effort: "low", summary: "auto" },
    });
    const numbers: number[] = [];
    for await (const event of stream) numbers.push(event.sequence_number);
    const final = await stream.finalResponse();
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
    expect(final.output_text).toContain("Same?");
    expect(final.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
  });

  test("calls functions in parallel, and custom tools", async () => {
    const tools = [
      { type: "function" as const, name: "weather", parameters: WEATHER, strict: true },
      { type: "custom" as const, name: "patch" },
    ];
    const response = await open()
      .responses.stream({ model, input: "Use all the tools", tools })
      .finalResponse();
    const [first, second] = response.output;
    if (first?.type !== "function_call" || second?.type !== "custom_tool_call") throw new Error("no calls");
    expect(JSON.parse(first.arguments)).toEqual(WEATHER_INPUT);
    expect(second.input).toBe("demo input");
  });

  test("gets JSON for the schema in its request", async () => {
    const format = { type: "json_schema" as const, name: "weather", schema: WEATHER };
    const response = await open().responses.create({ model, input: "JSON", text: { format } });
    expect(JSON.parse(response.output_text)).toEqual(WEATHER_INPUT);
  });

  test("stops at the requested number of tokens and reports it", async () => {
    const response = await open().responses.create({ model, input: "Long", max_output_tokens: 16 });
    expect(response.status).toBe("incomplete");
    expect(response.incomplete_details?.reason).toBe("max_output_tokens");
    expect(response.usage?.output_tokens).toBe(16);
  });

  test("reads, lists, cancels and deletes what was stored", async () => {
    const client = open();
    const { id } = await client.responses.create({ model, input: "Keep this" });
    expect((await client.responses.retrieve(id)).output_text).toContain("Keep this");
    expect(JSON.stringify((await client.responses.inputItems.list(id)).data)).toContain("Keep this");
    expect((await client.responses.cancel(id)).status).toBe("cancelled");
    await client.responses.delete(id);
    expect(await fail(client.responses.retrieve(id))).toBeInstanceOf(NotFoundError);
  });

  test("compacts and counts", async () => {
    const compacted = await open().responses.compact({ model, input: "Keep this" });
    expect(compacted.output.map(({ type }) => type)).toEqual(["message", "compaction"]);
    const counted = await open().responses.inputTokens.count({ model, input: "Keep this" });
    expect(counted.input_tokens).toBe(compacted.usage.input_tokens);
  });

  test("reads the model list and one model", async () => {
    const ids: string[] = [];
    for await (const each of open().models.list()) ids.push(each.id);
    expect(ids).toContain(model);
    expect((await open().models.retrieve(model)).id).toBe(model);
    expect(await fail(open().models.retrieve("nothing"))).toBeInstanceOf(NotFoundError);
  });
});

describe("openai, chat completions", () => {
  const open = () => new OpenAI({ apiKey: "any", baseURL: `${upstream.url}/v1`, maxRetries: 0 });
  const ask = (content: string) => ({ model: "gpt-5.4", messages: [{ role: "user" as const, content }] });

  test("streams, with usage in its own chunk only if requested", async () => {
    const read = async (options?: { include_usage: boolean }) => {
      const chunks = [];
      const extra = options === undefined ? {} : { stream_options: options };
      for await (const chunk of await open().chat.completions.create({
        ...ask("Hi"),
        stream: true,
        ...extra,
      })) {
        chunks.push(chunk);
      }
      return chunks;
    };
    expect((await read()).every(({ choices, usage }) => choices.length === 1 && usage === undefined)).toBe(
      true,
    );
    const counted = await read({ include_usage: true });
    expect(counted.at(-1)?.choices).toEqual([]);
    expect(counted.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0);
  });
});

describe("@google/genai", () => {
  const open = () => new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: upstream.url } });
  const model = "gemini-3.5-flash";

  test("streams cumulative snapshots of usage, thoughts apart", async () => {
    const thinkingConfig = { includeThoughts: true };
    const stream = await open().models.generateContentStream({
      model,
      contents: "Hi",
      config: { thinkingConfig },
    });
    const snapshots = [];
    let text = "";
    for await (const chunk of stream) {
      snapshots.push(chunk.usageMetadata);
      text += chunk.text ?? "";
    }
    const last = snapshots.at(-1);
    expect(text).toContain('You said: "Hi"');
    expect(last?.thoughtsTokenCount).toBeGreaterThan(0);
    expect(last?.totalTokenCount).toBe(
      (last?.promptTokenCount ?? 0) + (last?.candidatesTokenCount ?? 0) + (last?.thoughtsTokenCount ?? 0),
    );
    expect(snapshots.map((each) => each?.totalTokenCount ?? 0)).toEqual(
      snapshots.map((each) => each?.totalTokenCount ?? 0).toSorted((a, b) => a - b),
    );
  });

  test("calls a function and gets JSON of a schema", async () => {
    const functionDeclarations = [{ name: "weather", parametersJsonSchema: WEATHER }];
    const called = await open().models.generateContent({
      model,
      contents: "Use the tool",
      config: { tools: [{ functionDeclarations }] },
    });
    expect(called.functionCalls?.[0]?.args).toEqual(WEATHER_INPUT);
    const config = { responseMimeType: "application/json", responseJsonSchema: WEATHER };
    const answer = await open().models.generateContent({ model, contents: "JSON", config });
    expect(JSON.parse(answer.text ?? "")).toEqual(WEATHER_INPUT);
  });

  test("counts, embeds, and lists models page by page", async () => {
    const client = open();
    expect((await client.models.countTokens({ model, contents: "Hello" })).totalTokens).toBeGreaterThan(0);
    const embedded = await client.models.embedContent({
      model: "gemini-embedding-001",
      contents: ["a", "b"],
    });
    expect(embedded.embeddings?.map(({ values }) => values?.length)).toEqual([8, 8]);
    const names: (string | undefined)[] = [];
    for await (const each of await client.models.list({ config: { pageSize: 2 } })) names.push(each.name);
    expect(names).toContain("models/gemini-3.5-flash");
    expect((await client.models.get({ model })).name).toBe("models/gemini-3.5-flash");
  });
});
