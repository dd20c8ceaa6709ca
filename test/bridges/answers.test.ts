// Tests how converted answers end and fail, and what a client can send back of them.

import { describe, expect, test } from "bun:test";
import { ChatAnswerReader } from "../../src/bridges/chat/read-answer.ts";
import { ContentAnswerReader } from "../../src/bridges/content/read-answer.ts";
import { MessagesAnswerReader } from "../../src/bridges/messages/read-answer.ts";
import type { AnswerReader } from "../../src/bridges/neutral/read-answer.ts";
import { ResponsesAnswerReader } from "../../src/bridges/responses/read-answer.ts";
import { openEnvelopes } from "../../src/bridges/neutral/envelope.ts";
import { MAX_BLOCKS, Sequence } from "../../src/bridges/neutral/sequence.ts";
import { DIALECT_NAMES, type DialectName } from "../../src/dialects/dialect.ts";
import {
  type Any,
  convert,
  type Converted,
  DIRECTIONS,
  readDirection,
  readEvents,
  openStream,
  refusal,
  slicesOf,
  sse,
  stream,
  textOf,
  whole,
} from "./calls.ts";
import { formAnswer, joinAnswer } from "./provider.ts";
import { formRequest, formUser } from "./session.ts";

const COUNTS = { prompt: 10, read: 4, output: 6, reasoning: 2 };
const TURN = { thought: null, text: "Hello", calls: [] };

function ask(direction: string, setting: Any = {}): Converted {
  const [client] = readDirection(direction);
  const user = formUser(client, { results: [], text: "Hi", image: false }, []);
  return convert(direction, formRequest(client, user, true), setting);
}

/** Returns the upstream's answer, changed so that it names this reason for its end. */
function endWith(upstream: DialectName, reason: string): Any[] {
  const events = formAnswer(upstream, TURN, COUNTS);
  const text = JSON.stringify(events);
  const words: Any = {
    messages: ['"stop_reason":"end_turn"', `"stop_reason":"${reason}"`],
    chat: ['"finish_reason":"stop"', `"finish_reason":"${reason}"`],
    content: ['"finishReason":"STOP"', `"finishReason":"${reason}"`],
    responses: [
      '"status":"completed","output"',
      `"status":"incomplete","incomplete_details":{"reason":"${reason}"},"output"`,
    ],
  };
  const [from, to] = words[upstream];
  expect(text).toContain(from);
  return JSON.parse(text.replaceAll(from, to));
}

/** The reason for the end, as the client sees it. */
const SEEN: Readonly<Record<DialectName, (events: Any[]) => unknown>> = {
  messages: (events) => events.at(-2).delta?.stop_reason,
  responses: (events) => events.at(-1).response.incomplete_details?.reason ?? events.at(-1).response.status,
  chat: (events) => events.at(-3).choices?.[0].finish_reason,
  content: (events) => events.at(-1).candidates?.[0].finishReason,
};

test.each(DIRECTIONS)("%s: pieces of a text that arrive together reach the client joined", (direction) => {
  const [, upstream] = readDirection(direction);
  const events = formAnswer(upstream, { ...TURN, text: "one two three" }, COUNTS, (text) =>
    text.split(/(?= )/),
  );
  const count = (chunks: readonly string[]): number => stream(ask(direction), chunks).events.length;
  expect(count(events.map((event) => sse([event]))) - count([sse(events)])).toBe(2);
});

test.each(DIRECTIONS)("%s: two calls with the same id reach the client as two, with two ids", (direction) => {
  const [, upstream] = readDirection(direction);
  const calls = [1, 2].map((at) => ({ id: "c", name: "Read", args: { at } }));
  const events = formAnswer(upstream, { ...TURN, calls }, COUNTS);
  const { body } = whole(ask(direction), joinAnswer(upstream, events));
  for (const answer of [stream(ask(direction), [sse(events)]).text, JSON.stringify(body)]) {
    const ids = new Set(answer.match(/"(?:call_)?id":"(?:c|call_\w+)"/g));
    const inputs = new Set(answer.match(/\{\\*"at\\*":[12]\}/g));
    expect([ids.size, inputs.size]).toEqual([2, 2]);
  }
});

describe("the finish reason of an answer is converted", () => {
  test.each([
    ["messages>chat", "stop", "end_turn"],
    ["messages>chat", "length", "max_tokens"],
    ["messages>chat", "content_filter", "refusal"],
    ["messages>responses", "max_output_tokens", "max_tokens"],
    ["messages>responses", "content_filter", "refusal"],
    ["messages>responses", "novelty", "max_tokens"],
    ["messages>content", "STOP", "end_turn"],
    ["messages>content", "MAX_TOKENS", "max_tokens"],
    ["messages>content", "SAFETY", "refusal"],
    ["messages>content", "RECITATION", "refusal"],
    ["responses>messages", "end_turn", "completed"],
    ["responses>messages", "max_tokens", "max_output_tokens"],
    ["responses>messages", "stop_sequence", "completed"],
    ["responses>messages", "refusal", "content_filter"],
    ["responses>messages", "model_context_window_exceeded", "max_output_tokens"],
    ["responses>chat", "length", "max_output_tokens"],
    ["responses>content", "MAX_TOKENS", "max_output_tokens"],
    ["chat>messages", "end_turn", "stop"],
    ["chat>messages", "max_tokens", "length"],
    ["chat>messages", "refusal", "content_filter"],
    ["chat>messages", "model_context_window_exceeded", "length"],
    ["chat>content", "PROHIBITED_CONTENT", "content_filter"],
    ["content>messages", "end_turn", "STOP"],
    ["content>messages", "max_tokens", "MAX_TOKENS"],
    ["content>messages", "refusal", "SAFETY"],
    ["content>responses", "max_output_tokens", "MAX_TOKENS"],
    ["content>chat", "content_filter", "SAFETY"],
  ])("%s: the finish reason %s becomes %s for the client", (direction, reason, seen) => {
    const [client, upstream] = readDirection(direction);
    const { events, phase } = stream(ask(direction), [sse(endWith(upstream, reason))]);
    expect(phase).toBe("done");
    expect(SEEN[client](events)).toBe(seen);
  });

  test.each([
    ["messages>content", "MALFORMED_FUNCTION_CALL"],
    ["messages>content", "UNEXPECTED_TOOL_CALL"],
    ["responses>messages", "pause_turn"],
    ["chat>messages", "pause_turn"],
    ["content>messages", "novelty"],
    ["messages>chat", "novelty"],
  ])("%s: the finish reason %s is a failure", (direction, reason) => {
    const [, upstream] = readDirection(direction);
    const { text, phase } = stream(ask(direction), [sse(endWith(upstream, reason))]);
    expect([phase, text.includes('"error"')]).toEqual(["broken", true]);
  });

  test("Codex gets a capped answer as a complete one, because Codex takes an incomplete one for a broken stream", () => {
    const { events } = stream(ask("responses>messages", { isCodex: true }), [
      sse(endWith("messages", "max_tokens")),
    ]);
    expect(events.at(-1).type).toBe("response.completed");
  });

  test("Codex gets a refusal as text, and a refusal without words as a failure", () => {
    const refused = [{ id: "up", choices: [{ delta: { refusal: "No." }, finish_reason: "stop" }] }, "[DONE]"];
    const { events } = stream(ask("responses>chat", { isCodex: true }), [sse(refused)]);
    expect(events.at(-1).response.output[0].content[0]).toMatchObject({ type: "output_text", text: "No." });
    const native = stream(ask("responses>chat"), [sse(refused)]).events.at(-1).response.output[0].content[0];
    expect(native).toEqual({ type: "refusal", refusal: "No." });
    const silent = [{ promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 3 } }];
    const failed = stream(ask("responses>content", { isCodex: true }), [sse(silent)]).events.at(-1);
    expect([failed.type, failed.response.error.code]).toEqual(["response.failed", "invalid_prompt"]);
  });
});

describe("failures of an upstream reach the client in its dialect", () => {
  /** Returns the status and the message that a client gets for an upstream's error. */
  function fail(direction: string, status: number, body: unknown): [number, string] {
    const error = ask(direction).conversion.convertError(status, Buffer.from(JSON.stringify(body)));
    return [error.status, JSON.parse(error.body).error.message];
  }

  test.each<[string, number, unknown, number, string]>([
    [
      "OpenAI",
      400,
      { error: { code: "context_length_exceeded", message: "Too long." } },
      400,
      "prompt is too long — Too long.",
    ],
    [
      "vLLM",
      400,
      {
        message:
          "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens",
      },
      400,
      "prompt is too long: 5000 tokens > 4096 maximum — ",
    ],
    [
      "llama.cpp",
      400,
      { error: { type: "exceed_context_size_error", message: "m", n_prompt_tokens: 9, n_ctx: 8 } },
      400,
      "prompt is too long: 9 tokens > 8 maximum — m",
    ],
    [
      "LM Studio",
      500,
      { error: "Trying to keep the first 9 tokens when context the overflows" },
      400,
      "prompt is too long — ",
    ],
    [
      "LiteLLM",
      400,
      { error: { message: "litellm.ContextWindowExceededError: x" } },
      400,
      "prompt is too long — ",
    ],
    [
      "an output that does not fit",
      400,
      {
        message:
          "maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion).",
      },
      400,
      "input length and `max_tokens` exceed context limit: 1000 + 4000 > 4096 — ",
    ],
    ["MiniMax", 400, { base_resp: { status_msg: "invalid params" } }, 400, "invalid params"],
    [
      "a wrong signature",
      400,
      { error: { message: "The encrypted content could not be verified." } },
      400,
      "invalid signature in thinking block — ",
    ],
    ["too many requests", 429, { error: { message: "Slow down." } }, 429, "Slow down."],
    ["an overload", 503, { error: { message: "Busy." } }, 503, "Busy."],
    ["an unknown model", 404, { error: { message: "No such model." } }, 404, "No such model."],
    [
      "an empty quota",
      429,
      { error: { code: "insufficient_quota", message: "sk-… has no credit" } },
      503,
      "The upstream's quota is used up. Try again later.",
    ],
    ["no JSON", 500, "oops", 500, "oops"],
  ])("an error reaches Claude Code in words that it knows: %s", (_name, status, body, seen, message) => {
    const [got, text] = fail("messages>chat", status, body);
    expect(got).toBe(seen);
    expect(text).toStartWith(message);
  });

  test("the error about a prompt that is too long has the code and the field of the client's dialect", () => {
    const body = {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 9 tokens > 8 maximum" },
    };
    const wire = (direction: string): Any => {
      const { body: text } = ask(direction).conversion.convertError(400, Buffer.from(JSON.stringify(body)));
      return JSON.parse(text).error;
    };
    expect(wire("responses>messages")).toMatchObject({ code: "context_length_exceeded", param: "input" });
    expect(wire("chat>messages")).toMatchObject({ code: "context_length_exceeded", param: "messages" });
    expect(wire("content>messages")).toMatchObject({
      code: 400,
      message: expect.stringContaining(
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
      ),
    });
  });

  test.each([
    ["responses>messages", "messages.3.content.0.tool_use.id: Wrong.", "input: Wrong."],
    ["chat>responses", "Invalid 'input[3].content[0].text': too long.", "Invalid 'messages': too long."],
    [
      "messages>content",
      "* GenerateContentRequest.contents[1].parts: empty",
      "* GenerateContentRequest.messages: empty",
    ],
    ["chat>responses", "Invalid 'tools[2].parameters'.", "Invalid 'tools[].function.parameters'."],
  ])(
    "an error about a place in the request names the client's own field (%s: %s)",
    (direction, message, seen) => {
      const body = Buffer.from(JSON.stringify({ error: { message } }));
      const { body: text } = ask(direction).conversion.convertError(400, body);
      expect(JSON.parse(text).error.message).toBe(seen);
    },
  );

  test.each<[DialectName, Any]>([
    ["messages", { type: "error", error: { type: "overloaded_error", message: "Busy." } }],
    [
      "responses",
      { type: "response.failed", response: { error: { code: "server_error", message: "Busy." } } },
    ],
    ["responses", { type: "error", code: "server_error", message: "Busy." }],
    ["chat", { error: { code: 502, message: "Busy." } }],
    ["content", { error: { code: 503, status: "UNAVAILABLE", message: "Busy." } }],
  ])(
    "an error of a %s upstream sets the response's status, or becomes an event if the answer has begun",
    (upstream, event) => {
      for (const client of DIALECT_NAMES.filter((each) => each !== upstream)) {
        if (`${client}>${upstream}` === "chat>responses") continue;
        const converted = ask(`${client}>${upstream}`);
        const before = upstream === "responses" ? [{ type: "response.created", response: {} }] : [];
        const early = stream(converted, [sse([...before, event])]);
        expect([early.phase, early.text]).toEqual(["refused", ""]);
        expect(early.refusal?.status).toBeGreaterThanOrEqual(500);
        const begun = formAnswer(upstream, TURN, COUNTS).slice(0, -2);
        const late = stream(converted, [sse([...begun, event])]);
        if (late.phase === "refused") continue;
        expect(late.phase).toBe("broken");
        expect(late.text).toContain("Busy.");
      }
    },
  );

  test("an event that is not JSON is a failure", () => {
    expect(stream(ask("messages>chat"), ["data: oops\n\n"]).phase).toBe("refused");
  });

  test("a body that is not an answer is a failure", () => {
    for (const direction of ["messages>chat", "messages>responses", "responses>messages", "messages>content"])
      expect(whole(ask(direction), { hello: 1 }).status).toBe(502);
  });

  test("a response that is still in progress is a failure", () => {
    expect(
      whole(ask("messages>responses"), { object: "response", status: "in_progress", output: [] }).status,
    ).toBe(502);
  });
});

test("a JSON answer to a request for a stream becomes a stream for the client", () => {
  const converted = ask("messages>chat");
  const body = {
    id: "up",
    choices: [{ message: { content: "Hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  };
  const open = openStream(converted.conversion);
  const output = open.pushWhole(Buffer.from(JSON.stringify(body, null, 2)));
  expect(output.phase).toBe("done");
  expect(textOf(output)).toContain('"text":"Hello"');
});

test("a long last event of a responses stream is written in short slices, which can be read twice", () => {
  const content = '"\\u002d"\u{1f600}\u0001'.repeat(200_000);
  const body = { choices: [{ message: { content }, finish_reason: "stop" }] };
  const output = openStream(ask("responses>chat").conversion).pushWhole(Buffer.from(JSON.stringify(body)));
  const slices = slicesOf(output);
  const text = slices.join("");
  expect(Math.max(...slices.map(({ length }) => length))).toBeLessThan(1 << 19);
  expect(textOf(output) === text && text.isWellFormed()).toBe(true);
  const { response } = readEvents(text).at(-1);
  expect(response.output[0].content[0].text === content).toBe(true);
});

test("a streamed answer to a request without `stream` becomes one JSON answer", () => {
  const { status, body } = whole(ask("messages>chat"), sse(formAnswer("chat", TURN, COUNTS)));
  expect([status, body.content]).toEqual([200, [{ type: "text", text: "Hello" }]]);
});

test("while an upstream sends nothing, its client gets the beginning of an answer, and then signs of life", () => {
  const beats: [string, string][] = [
    ["messages>chat", "event: ping"],
    ["responses>chat", "event: response.in_progress"],
    ["chat>messages", ": keepalive"],
    [
      "content>messages",
      `data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]`,
    ],
  ];
  for (const [direction, beat] of beats) {
    const [, upstream] = readDirection(direction);
    const open = openStream(ask(direction).conversion);
    const begun = open.idle();
    expect([begun.phase, begun.texts]).toEqual(["open", expect.stringContaining(beat)]);
    const [first, ...rest] = formAnswer(upstream, TURN, COUNTS);
    expect(open.push(Buffer.from(sse([first]))).texts).not.toMatch(
      /message_start|response\.created|"role":"assistant"/,
    );
    expect(open.idle().texts).toStartWith(beat);
    expect(open.push(Buffer.from(sse(rest))).phase).toBe("done");
  }
});

test.each(DIRECTIONS)("%s: deeply nested JSON takes little time, in requests and answers", (direction) => {
  const [client, upstream] = readDirection(direction);
  const deep = (value: Any): string =>
    JSON.stringify(value).replace(/\\*"DEEP\\*"/, "[".repeat(40_000) + "]".repeat(40_000));
  const before = process.cpuUsage();
  const nested = deep({ ...formRequest(client, [], false), metadata: "DEEP" });
  expect(refusal(direction, nested)).toBe("400 null");
  const calls = [{ id: "c1", name: "Read", args: { path: "DEEP" } }];
  const answer = joinAnswer(upstream, formAnswer(upstream, { ...TURN, calls }, COUNTS));
  const { conversion } = ask(direction);
  const bytes = Buffer.from(deep(answer));
  conversion.convertReply(bytes, () => ({}));
  const open = openStream(conversion);
  open.pushWhole(bytes);
  open.end();
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(1e6);
});

describe("an envelope opens only unchanged, and for the channel of its sealed thought", () => {
  const seal = { type: "thinking", thinking: "hm", signature: "x" };
  const own = openEnvelopes(() => "secret", "claude-opus-4-8", "messages");
  const envelope = own.close(seal);

  test("an envelope opens for the channel, the model's family and the dialect that it was closed for", () => {
    expect(envelope).toStartWith("gw1.");
    expect(own.open(envelope)).toEqual(seal);
    expect(openEnvelopes(() => "secret", "claude-opus-4-8-20260601", "messages").open(envelope)).toEqual(
      seal,
    );
    expect(openEnvelopes(() => "other", "claude-opus-4-8", "messages").open(envelope)).toBeNull();
    expect(openEnvelopes(() => "secret", "claude-opus-5", "messages").open(envelope)).toBeNull();
    expect(openEnvelopes(() => "secret", "claude-opus-4-8", "responses").open(envelope)).toBeNull();
  });

  test("an envelope with a changed character does not open, wherever the character is", () => {
    for (let at = 0; at < envelope.length; at += 1) {
      const flipped = envelope[at] === "A" ? "B" : "A";
      expect(own.open(envelope.slice(0, at) + flipped + envelope.slice(at + 1))).toBeNull();
    }
    for (const other of ["", "gw1.", "gw1.0.x.y", null, 7, `${envelope}A`])
      expect(own.open(other)).toBeNull();
  });
});

describe("a conversion fails if it must keep too much of an answer", () => {
  const PIECE = "x".repeat(1024 * 1024);
  const item = (output_index: number, name: string) => ({
    type: "response.output_item.added",
    output_index,
    item: { type: "function_call", call_id: `c_${output_index}`, name },
  });
  const start = (index: number, content_block: object) => ({
    type: "content_block_start",
    index,
    content_block,
  });
  const grow = (n: number, type: string, delta: object) =>
    n === 0 ? start(0, { type }) : { type: "content_block_delta", index: 0, delta };
  const chunk = (delta: object) => ({ choices: [{ index: 0, delta }] });
  const part = (content: object) => ({ candidates: [{ content: { parts: [content] } }] });
  const call = (index: number) => ({ index, id: `c_${index}`, function: { name: "f", arguments: "" } });

  test.each<[string, new (to: Sequence) => AnswerReader, (number: number) => unknown]>([
    ["calls of Responses", ResponsesAnswerReader, (n) => item(n, "f")],
    ["names of Responses", ResponsesAnswerReader, (n) => item(n, PIECE)],
    ["blocks of Messages", MessagesAnswerReader, (n) => start(n, { type: "tool_use", id: `t_${n}` })],
    ["beginnings of Messages", MessagesAnswerReader, (n) => start(n, { type: "deep_use", x: PIECE })],
    ["signatures of Messages", MessagesAnswerReader, (n) => grow(n, "thinking", { signature: PIECE })],
    ["unknown input of Messages", MessagesAnswerReader, (n) => grow(n, "deep", { partial_json: PIECE })],
    ["calls of Chat Completions", ChatAnswerReader, (n) => chunk({ tool_calls: [call(n)] })],
    ["reasoning details", ChatAnswerReader, () => chunk({ reasoning_details: [{ data: PIECE }] })],
    ["calls of Gemini", ContentAnswerReader, () => part({ functionCall: { name: "f" } })],
    ["signatures of Gemini", ContentAnswerReader, () => part({ thoughtSignature: PIECE })],
  ])("a conversion fails if it must keep too much of an answer: %s", (_, Reader, form) => {
    const sequence = new Sequence("r");
    const reader = new Reader(sequence);
    for (let n = 0; n <= MAX_BLOCKS && !sequence.isOver; n += 1) reader.read(form(n), "");
    expect(sequence.failure?.message).toContain("too long to convert");
  });

  test("if a piece makes an upstream's text too long, the conversion fails, and passes on nothing of that piece", () => {
    const sequence = new Sequence("r");
    const block = sequence.open("text");
    sequence.delta(block, "x".repeat(8 << 20));
    expect([sequence.failure?.message, block.text]).toEqual([expect.stringContaining("too long"), ""]);
  });
});
