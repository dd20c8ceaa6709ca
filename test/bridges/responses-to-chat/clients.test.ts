// The official SDKs take the bridge for the native endpoint: recordings are played
// to them through it, and it answers them out of the simulated upstream.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, stepCountIs, Output, streamText, tool } from "ai";
import OpenAI, { APIError, NotFoundError, RateLimitError } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { convertError } from "../../../src/bridges/responses-to-chat/errors.ts";
import { convertReply } from "../../../src/bridges/responses-to-chat/response/completion.ts";
import { convertRequest } from "../../../src/bridges/responses-to-chat/request/request.ts";
import { openChatStream } from "../../../src/bridges/responses-to-chat/response/stream.ts";
import type { AnswerStream } from "../../../src/bridges/common/answer-stream.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import type { Json } from "./accumulate.ts";
import {
  ASKED,
  absent,
  contextOf,
  findRecording,
  listRecordings,
  readBytes,
  readTerminal,
  type Recording,
} from "./recordings.ts";

const json = { "content-type": "application/json" };

/** An upstream's body through the bridge: held until the bridge says what the status is. */
async function stream(
  chat: AnswerStream,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Response> {
  let text = "";
  let refusal: { status: number; body: string } | null = null;
  for await (const piece of pieces) {
    const emitted = chat.push(piece);
    text += emitted.text;
    refusal ??= emitted.phase === "refused" ? emitted.refusal : null;
  }
  const last = chat.end();
  refusal ??= last.phase === "refused" ? last.refusal : null;
  if (refusal !== null) return new Response(refusal.body, { status: refusal.status, headers: json });
  return new Response(text + last.text, { headers: { "content-type": "text/event-stream" } });
}

async function answer(request: Request, upstream: string): Promise<Response> {
  const { body, context } = convertRequest(await request.bytes(), ASKED);
  const reply = await fetch(`${upstream}/v1/responses`, { method: "POST", headers: json, body });
  if (!reply.ok) {
    const error = convertError(reply.status, await reply.text(), context);
    return new Response(error.body, { status: error.status, headers: json });
  }
  if (context.stream) return stream(openChatStream(context), reply.body ?? []);
  const whole = convertReply(await reply.json(), context);
  return new Response(whole.body, { status: whole.status, headers: json });
}

function play(recording: Recording): Promise<Response> {
  return stream(openChatStream(contextOf(recording)), [readBytes(recording)]);
}

let upstream: DemoUpstream;
let server: Bun.Server<undefined>;
let client: OpenAI;
beforeAll(() => {
  upstream = startDemoUpstream();
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const recording = request.headers.get("x-recording");
      if (recording !== null) return play(findRecording(recording));
      try {
        return await answer(request, upstream.url);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const { message, param, wireCode: code, status } = error;
        return Response.json({ error: { message, type: "invalid_request_error", param, code } }, { status });
      }
    },
  });
  client = new OpenAI({ apiKey: "sk-any", baseURL: `http://127.0.0.1:${server.port}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  await server.stop(true);
  upstream.stop();
});

const ask = (content: string) => ({ model: "gpt-5", messages: [{ role: "user" as const, content }] });

/** What a promise of a client fails with. */
async function fail(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await promise.then(() => "no failure");
  } catch (error) {
    return error;
  }
}

describe.skipIf(absent)("the official SDK's stream accumulates a recording to the whole reply", () => {
  const playable = listRecordings("openai-responses").filter(
    ({ stream: streamed, status, expect: expected }) =>
      streamed &&
      status === 200 &&
      expected.expected_chat_finish_reason &&
      expected.delta_text_matches !== false,
  );
  /** Version 6 of the SDK's stream helper expects a function's name in every tool call. */
  const playedByHelper = playable.filter(
    ({ id }) => id !== "openai-responses/vercel-ai--openai-custom-tool-1",
  );

  test("the SDK accumulates every recording but the one with a custom tool", () => {
    expect(playable.length - playedByHelper.length).toBe(1);
  });

  /** Without what the SDK adds of its own, or leaves out. */
  function strip(completion: Json): Json {
    const [{ message, ...choice }] = completion["choices"];
    const { parsed: _, annotations, reasoning_content: __, ...rest } = message;
    const calls = message.tool_calls?.map((call: Json) => {
      const { parsed_arguments: ___, ...func } = call["function"] ?? {};
      return { ...call, function: func };
    });
    // Version 6 of the SDK makes null of an empty text.
    const content = message.content || null;
    const reported = {
      ...rest,
      content,
      annotations: annotations ?? [],
      ...(calls ? { tool_calls: calls } : {}),
    };
    const { system_fingerprint: ____, ...top } = completion;
    return { ...top, id: "", choices: [{ ...choice, logprobs: null, message: reported }] };
  }

  for (const recording of playedByHelper) {
    test(recording.id, async () => {
      const options = { headers: { "x-recording": recording.id } };
      const final = await client.chat.completions.stream(ask("any"), options).finalChatCompletion();
      const whole: Json = JSON.parse(
        convertReply(readTerminal(readBytes(recording)), contextOf(recording)).body,
      );
      expect(strip(final)).toEqual(strip(whole));
    });
  }

  for (const id of [
    "spliced--error-flat-0",
    "spliced--error-nested-0",
    "spliced--failed-0",
    "spliced--truncated-0",
  ]) {
    test(`${id} raises an error`, async () => {
      const options = { headers: { "x-recording": `openai-responses/${id}` } };
      const error = await fail(client.chat.completions.stream(ask("any"), options).finalChatCompletion());
      expect(error).toBeInstanceOf(APIError);
    });
  }

  test("an error before the first text is an HTTP error", async () => {
    const options = { headers: { "x-recording": "openai-responses/vercel-ai--openai-error-1" } };
    const error = await fail(client.chat.completions.create({ ...ask("any"), stream: true }, options));
    expect(error).toMatchObject({ status: 503 });
  });
});

describe("the official SDK with the simulated upstream", () => {
  const Weather = z.object({ city: z.string(), days: z.int() });

  test("gets the same completion whole and streamed", async () => {
    const whole = await client.chat.completions.create(ask("Hello"));
    expect(whole.choices[0]?.message.content).toContain("Hello");
    expect(whole.usage?.total_tokens).toBeGreaterThan(5);
    let text = "";
    let last: OpenAI.ChatCompletionChunk | null = null;
    const stream_options = { include_usage: true };
    for await (const chunk of await client.chat.completions.create({
      ...ask("Hello"),
      stream: true,
      stream_options,
    })) {
      text += chunk.choices[0]?.delta.content ?? "";
      last = chunk;
    }
    expect(text).toBe(whole.choices[0]?.message.content ?? "");
    expect(last?.usage?.completion_tokens).toBe(whole.usage?.completion_tokens);
  });

  test("gets no chunk without a choice unless it asks for usage", async () => {
    for await (const chunk of await client.chat.completions.create({ ...ask("Hello"), stream: true })) {
      expect(chunk.choices).toHaveLength(1);
      expect(chunk).not.toHaveProperty("usage");
    }
  });

  test("parses structured answers", async () => {
    const response_format = zodResponseFormat(Weather, "weather");
    const whole = await client.chat.completions.parse({ ...ask("Weather?"), response_format });
    expect(Weather.safeParse(whole.choices[0]?.message.parsed).success).toBe(true);
    const streamed = await client.chat.completions
      .stream({ ...ask("Weather?"), response_format })
      .finalChatCompletion();
    expect(streamed.choices[0]?.message.parsed).toEqual(whole.choices[0]?.message.parsed ?? null);
  });

  for (const streamed of [false, true]) {
    test(`runs tools to the end, ${streamed ? "streamed" : "whole"}`, async () => {
      const asked: unknown[] = [];
      const tool = zodFunction({
        name: "weather",
        parameters: Weather,
        function: (given) => {
          asked.push(given);
          return "sunny";
        },
      });
      const params = { ...ask("Use the weather tool"), tools: [tool] };
      const runner = streamed
        ? client.chat.completions.runTools({ ...params, stream: true })
        : client.chat.completions.runTools(params);
      const content = await runner.finalContent();
      expect(asked).toHaveLength(1);
      expect(Weather.safeParse(asked[0]).success).toBe(true);
      expect(content).toContain("sunny");
      expect(runner.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    });
  }

  test("raises the native exceptions", async () => {
    const refused = await fail(client.chat.completions.create({ ...ask("Hi"), stop: ["x"] }));
    expect(refused).toMatchObject({ status: 400, param: "stop", code: "unsupported_parameter" });
    upstream.next("status-429");
    expect(await fail(client.chat.completions.create(ask("Hi")))).toBeInstanceOf(RateLimitError);
    upstream.next("status-404");
    expect(await fail(client.chat.completions.create(ask("Hi")))).toBeInstanceOf(NotFoundError);
  });
});

describe("@ai-sdk/openai with the simulated upstream", () => {
  const open = () =>
    createOpenAI({ apiKey: "sk-any", baseURL: `http://127.0.0.1:${server.port}/v1` }).chat("gpt-5");
  const schema = z.object({ city: z.string(), days: z.int() });
  const weather = tool({ inputSchema: schema, execute: () => "sunny" });

  test("gets text, whole and streamed", async () => {
    const whole = await generateText({ model: open(), prompt: "Hello" });
    const streamed = streamText({ model: open(), prompt: "Hello" });
    expect(await streamed.text).toBe(whole.text);
    expect(await streamed.finishReason).toBe("stop");
    expect((await streamed.usage).outputTokens).toBe(whole.usage.outputTokens);
  });

  test("uses tools over several steps", async () => {
    const params = {
      model: open(),
      prompt: "Use the weather tool",
      tools: { weather },
      stopWhen: stepCountIs(3),
    };
    expect((await generateText(params)).text).toContain("sunny");
    expect(await streamText(params).text).toContain("sunny");
  });

  test("gets structured output", async () => {
    const { output } = await generateText({
      model: open(),
      prompt: "Weather?",
      output: Output.object({ schema }),
    });
    expect(schema.safeParse(output).success).toBe(true);
  });
});

describe("@langchain/openai with the simulated upstream", () => {
  const open = () =>
    new ChatOpenAI({
      model: "gpt-5",
      apiKey: "sk-any",
      maxRetries: 0,
      configuration: { baseURL: `http://127.0.0.1:${server.port}/v1` },
    });
  const schema = z.object({ city: z.string(), days: z.int() });

  test("gets text, whole and streamed", async () => {
    const whole = await open().invoke("Hello");
    expect(whole.text).toContain("Hello");
    let text = "";
    for await (const chunk of await open().stream("Hello")) text += chunk.text;
    expect(text).toBe(whole.text);
  });

  test("uses tools and reports their results", async () => {
    const bound = open().bindTools([
      { type: "function", function: { name: "weather", parameters: z.toJSONSchema(schema) } },
    ]);
    const asked = await bound.invoke("Use the weather tool");
    expect(asked.tool_calls?.[0]?.name).toBe("weather");
    const id = asked.tool_calls?.[0]?.id ?? "";
    const said = await bound.invoke([
      { role: "user", content: "Use the weather tool" },
      asked,
      { role: "tool", content: "sunny", tool_call_id: id },
    ]);
    expect(said.text).toContain("sunny");
  });

  test("gets structured output", async () => {
    const weather = await open()
      .withStructuredOutput(schema, { name: "weather", method: "jsonSchema" })
      .invoke("Weather?");
    expect(schema.safeParse(weather).success).toBe(true);
  });
});
