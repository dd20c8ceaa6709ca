// Runs the official SDKs against a server that answers nothing but the gateway's own errors and lists.

import * as Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { ApiError, GoogleGenAI } from "@google/genai";
import { streamText } from "ai";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import * as OpenAI from "openai";
import { chat } from "../../src/dialects/formats/chat.ts";
import { content } from "../../src/dialects/formats/content.ts";
import type { Dialect } from "../../src/dialects/dialect.ts";
import { errorFields } from "../../src/dialects/errors.ts";
import { dialectOf } from "../../src/dialects/platforms.ts";
import { messages } from "../../src/dialects/formats/messages.ts";
import { responses } from "../../src/dialects/formats/responses.ts";
import { type ErrorCode, GatewayError } from "../../src/lib/errors.ts";

let answer: (request: Request) => Response = () => new Response(null, { status: 500 });
let asked = 0;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    asked += 1;
    return answer(request);
  },
});
beforeEach(() => {
  asked = 0;
});
afterAll(() => server.stop(true));

const origin = `http://127.0.0.1:${server.port}`;
const anthropic = new Anthropic.Anthropic({ apiKey: "k", baseURL: origin, logLevel: "off" });
const openai = new OpenAI.OpenAI({ apiKey: "k", baseURL: `${origin}/v1` });
const genai = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: origin } });
const aiSdk = createOpenAI({ apiKey: "k", baseURL: `${origin}/v1` });

function refuse(dialect: Dialect, code: ErrorCode): void {
  const error = new GatewayError(code, "because of this");
  const headers = errorFields(error).map(([name, value]): [string, string] => [name, value]);
  answer = () => new Response(dialect.errorBody(error, "req_1"), { status: error.status, headers });
}

/** Answers with a stream that begins with `begun` and then breaks. */
function breakOff(dialect: Dialect, begun: string): void {
  const event = dialect.errorEvent(new GatewayError("upstream_failed", "because of this"), "req_1");
  answer = () => new Response(begun + event, { headers: { "content-type": "text/event-stream" } });
}

async function readFailure(act: () => PromiseLike<unknown>): Promise<Error> {
  try {
    await act();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error("nothing was thrown");
}

async function readAll(stream: PromiseLike<AsyncIterable<unknown>>): Promise<unknown[]> {
  const events: unknown[] = [];
  for await (const event of await stream) events.push(event);
  return events;
}

const PROMPT = { model: "m", max_tokens: 1, messages: [{ role: "user" as const, content: "x" }] };

describe("the Anthropic SDK understands the gateway's own errors", () => {
  test.each([
    ["key_unknown", Anthropic.AuthenticationError],
    ["wrong_platform", Anthropic.PermissionDeniedError],
    ["unknown_model", Anthropic.NotFoundError],
    ["bad_request", Anthropic.BadRequestError],
    ["body_too_large", Anthropic.APIError],
  ] as const)("the Anthropic SDK raises an error for %s without a retry", async (code, kind) => {
    refuse(messages, code);
    const failure = await readFailure(() => anthropic.messages.create(PROMPT));
    expect(failure).toBeInstanceOf(kind);
    expect(failure.message).toContain("because of this");
    expect(asked).toBe(1);
  });

  test.each([
    ["rate_limited", Anthropic.RateLimitError],
    ["upstream_failed", Anthropic.InternalServerError],
    ["overloaded", Anthropic.InternalServerError],
  ] as const)("the Anthropic SDK raises the right error class for %s", async (code, kind) => {
    refuse(messages, code);
    const failure = await readFailure(() => anthropic.messages.create(PROMPT, { maxRetries: 0 }));
    expect(failure).toBeInstanceOf(kind);
    expect(failure.message).toContain("because of this");
  });

  const start = `event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n`;
  test.each([
    ["at its first event", ""],
    ["later", start],
  ])("the Anthropic SDK raises an error when a stream breaks %s", async (_when, begun) => {
    breakOff(messages, begun);
    const raw = await readFailure(() => readAll(anthropic.messages.create({ ...PROMPT, stream: true })));
    expect(raw).toBeInstanceOf(Anthropic.APIError);
    expect(raw.message).toContain("because of this");
    const helped = await readFailure(() => anthropic.messages.stream(PROMPT).finalMessage());
    expect(helped.message).toContain("because of this");
  });

  test("the Anthropic SDK raises an error when a stream breaks inside an event", async () => {
    breakOff(messages, `${start}event: content_block_delta\ndata: {"type":"content_bl\n\n`);
    await readFailure(() => readAll(anthropic.messages.create({ ...PROMPT, stream: true })));
  });
});

describe("the OpenAI SDK understands the gateway's own errors", () => {
  interface Options {
    readonly maxRetries?: number;
  }
  const calls = [
    [
      "responses",
      responses,
      (options: Options) => openai.responses.create({ model: "m", input: "x" }, options),
    ],
    [
      "chat",
      chat,
      (options: Options) => openai.chat.completions.create({ model: "m", messages: [] }, options),
    ],
  ] as const;
  describe.each(calls)("the OpenAI SDK on %s", (_name, dialect, call) => {
    test.each([
      ["key_missing", OpenAI.AuthenticationError, "invalid_api_key"],
      ["wrong_platform", OpenAI.PermissionDeniedError, "model_not_found"],
      ["unknown_model", OpenAI.NotFoundError, "model_not_found"],
      ["bad_request", OpenAI.BadRequestError, null],
    ] as const)("the OpenAI SDK raises an error for %s without a retry", async (code, kind, wireCode) => {
      refuse(dialect, code);
      const failure = await readFailure(() => call({}));
      expect(failure).toBeInstanceOf(kind);
      expect(failure).toMatchObject({ code: wireCode });
      expect(failure.message).toContain("because of this");
      expect(asked).toBe(1);
    });

    test.each([
      ["limit_spent", OpenAI.RateLimitError, "insufficient_quota"],
      ["rate_limited", OpenAI.RateLimitError, "rate_limit_exceeded"],
      ["unavailable", OpenAI.InternalServerError, "server_error"],
    ] as const)("the OpenAI SDK raises the right error class for %s", async (code, kind, wireCode) => {
      refuse(dialect, code);
      const failure = await readFailure(() => call({ maxRetries: 0 }));
      expect(failure).toBeInstanceOf(kind);
      expect(failure).toMatchObject({ code: wireCode });
      expect(failure.message).toContain("because of this");
    });
  });

  const created = `event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}\n\n`;
  const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}\n\n`;

  test.each([
    ["at its first event", ""],
    ["later", created],
  ])("the OpenAI and AI SDKs raise an error when a responses stream breaks %s", async (_when, begun) => {
    breakOff(responses, begun);
    const raw = await readFailure(() =>
      readAll(openai.responses.create({ model: "m", input: "x", stream: true })),
    );
    expect(raw).toBeInstanceOf(OpenAI.APIError);
    expect(raw.message).toContain("because of this");
    const helped = await readFailure(() =>
      openai.responses.stream({ model: "m", input: "x" }).finalResponse(),
    );
    expect(helped.message).toContain("because of this");
    expect(await readAiSdkErrors(aiSdk.responses("m"))).toEqual(["because of this"]);
  });

  test.each([
    ["at its first event", ""],
    ["later", chunk],
  ])("the OpenAI and AI SDKs raise an error when a chat stream breaks %s", async (_when, begun) => {
    breakOff(chat, begun);
    const raw = await readFailure(() =>
      readAll(openai.chat.completions.create({ model: "m", messages: [], stream: true })),
    );
    expect(raw).toBeInstanceOf(OpenAI.APIError);
    expect(raw.message).toContain("because of this");
    const [shown, ...others] = await readAiSdkErrors(aiSdk.chat("m"));
    expect(shown).toContain("because of this");
    expect(others).toEqual([]);
  });
});

async function readAiSdkErrors(model: Parameters<typeof streamText>[0]["model"]): Promise<string[]> {
  const errors: string[] = [];
  const { fullStream } = streamText({
    model,
    prompt: "x",
    maxRetries: 0,
    onError: ({ error }) => {
      errors.push(error instanceof Error ? error.message : JSON.stringify(error));
    },
  });
  await readAll(Promise.resolve(fullStream));
  return errors;
}

describe("the Google SDK understands the gateway's own errors", () => {
  test.each([
    ["key_unknown", 401, "UNAUTHENTICATED"],
    ["wrong_platform", 403, "PERMISSION_DENIED"],
    ["unknown_model", 404, "NOT_FOUND"],
    ["rate_limited", 429, "RESOURCE_EXHAUSTED"],
    ["unavailable", 503, "UNAVAILABLE"],
  ] as const)("the Google SDK raises an error with the status of %s", async (code, status, rpc) => {
    refuse(content, code);
    const failure = await readFailure(() => genai.models.generateContent({ model: "m", contents: "x" }));
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status });
    expect(failure.message).toContain("because of this");
    expect(failure.message).toContain(rpc);
  });

  const chunk = `data: {"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}]}\r\n\r\n`;
  test.each([
    ["at its first event", ""],
    ["later", chunk],
  ])("the Google SDK raises an error when a stream breaks %s", async (_when, begun) => {
    breakOff(content, begun);
    const failure = await readFailure(() =>
      readAll(genai.models.generateContentStream({ model: "m", contents: "x" })),
    );
    expect(failure.message).toContain("because of this");
  });
});

describe("a list of models is one page, whatever a client asks for:", () => {
  const models = Array.from({ length: 5 }, (_, index) => ({ id: `m${index}`, raw: null }));
  const wanted = models.map(({ id }) => id);
  const serve = (dialect: Dialect) => {
    answer = (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const single = models.find(({ id }) => pathname.endsWith(`/${id}`));
      return new Response(
        single === undefined ? dialect.listBody(models, searchParams) : dialect.modelBody(single),
        {
          headers: { "content-type": "application/json" },
        },
      );
    };
  };

  test.each(["messages" as const, "relay" as const])(
    "the Anthropic SDK reads the %s platform's list of models",
    async (platform) => {
      serve(dialectOf(platform));
      const listed = await readAll(Promise.resolve(anthropic.models.list({ limit: 2 })));
      expect(listed).toEqual(wanted.map((id) => expect.objectContaining({ id, display_name: id })));
      expect(asked).toBe(1);
      expect(await anthropic.models.retrieve("m1")).toMatchObject({ type: "model", id: "m1" });
    },
  );

  test.each(["responses" as const, "relay" as const])(
    "the OpenAI SDK reads the %s platform's list of models",
    async (platform) => {
      serve(dialectOf(platform));
      const listed = await readAll(Promise.resolve(openai.models.list()));
      expect(listed).toEqual(wanted.map((id) => expect.objectContaining({ id, object: "model" })));
      expect(await openai.models.retrieve("m1")).toMatchObject({ object: "model", id: "m1" });
    },
  );

  test.each(["content" as const, "relay" as const])(
    "the Google SDK reads the %s platform's list of models",
    async (platform) => {
      serve(dialectOf(platform));
      const listed = await readAll(genai.models.list({ config: { pageSize: 2 } }));
      expect(listed).toEqual(
        wanted.map((id) => expect.objectContaining({ name: `models/${id}`, displayName: id })),
      );
      expect(asked).toBe(1);
    },
  );
});
