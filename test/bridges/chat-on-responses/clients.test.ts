// The official SDKs take the bridge for the native endpoint: recordings are played
// to them through it, and it answers them out of the simulated upstream.

import { type ChatStream, convertReply, convertRequest, openChatStream } from "./direction.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { APIError, NotFoundError, RateLimitError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import type { Json } from "./accumulate.ts";
import {
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
  chat: ChatStream,
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
  const sent = await request.bytes();
  const { model, stream: isStream = false }: Json = JSON.parse(Buffer.from(sent).toString());
  const { body, conversion } = convertRequest(sent, model, isStream);
  const reply = await fetch(`${upstream}/v1/responses`, { method: "POST", headers: json, body });
  if (!reply.ok) {
    const error = conversion.convertError(reply.status, await reply.bytes());
    return new Response(error.body, { status: error.status, headers: json });
  }
  const count = () => ({ input: 1, output: 1 });
  if (isStream) return stream(conversion.openStream(count), reply.body ?? []);
  const whole = conversion.convertReply(await reply.bytes(), count);
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
    const { parsed: _, annotations, reasoning_content: __, reasoning_details: _____, ...rest } = message;
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

  test("raises the native exceptions", async () => {
    const refused = await fail(client.chat.completions.create({ ...ask("Hi"), stop: ["x"] }));
    expect(refused).toMatchObject({ status: 400, param: "stop", code: "unsupported_parameter" });
    upstream.next("status-429");
    expect(await fail(client.chat.completions.create(ask("Hi")))).toBeInstanceOf(RateLimitError);
    upstream.next("status-404");
    expect(await fail(client.chat.completions.create(ask("Hi")))).toBeInstanceOf(NotFoundError);
  });
});
