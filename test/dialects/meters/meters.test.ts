// Tests meters with cases that no recording has: how answers end, hostile bytes, lines of any length.

import { describe, expect, test } from "bun:test";
import type { Meter, Reading } from "../../../src/billing/usage.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";
import { openResponsesMeter } from "../../../src/dialects/meters/responses.ts";

type Open = (contentType: string) => Meter;
const OPEN = {
  messages: openMessagesMeter,
  responses: openResponsesMeter,
  chat: openChatMeter,
  content: openContentMeter,
};
type Dialect = keyof typeof OPEN;

function events(...list: readonly unknown[]): string {
  return list
    .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
    .join("");
}

function read(open: Open, text: string, contentType = "text/event-stream"): Reading {
  const meter = open(contentType);
  meter.see(new TextEncoder().encode(text));
  return meter.read();
}

const readBody = (open: Open, body: unknown): Reading => read(open, JSON.stringify(body), "application/json");

const start = (usage: unknown) => ({ type: "message_start", message: { model: "m", usage } });
const delta = (usage: unknown) => ({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage });
const completed = (response: unknown) => ({ type: "response.completed", response });
const usage = (reading: Reading) => reading.parts.map((part) => part.usage);

describe("a meter knows how an answer ended", () => {
  const BEGUN = start({ input_tokens: 1 });
  const COUNTED = delta({ output_tokens: 2 });
  const STOPPED = { choices: [{ finish_reason: "stop" }] };
  const USED = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } };
  const usageMetadata = { promptTokenCount: 1 };
  const OVERLOADED = { type: "error", error: { type: "overloaded_error" } };
  const FLAT = 'data: {"type":"error","code":"server_error","message":"x"}\n\n';
  const event = (type: string, response: unknown) => ({ type: `response.${type}`, response });

  test.each<[Dialect, how: string, given: string | unknown[], Reading["end"], boolean]>([
    ["messages", "in full", [BEGUN, COUNTED, { type: "message_stop" }], "complete", true],
    ["messages", "without its last event", [BEGUN, COUNTED], "open", true],
    ["messages", "only begun", [start({ input_tokens: 1, output_tokens: 1 })], "open", false],
    ["messages", "broken off", [BEGUN, OVERLOADED], "error", false],
    ["responses", "in full", [completed({ usage: { input_tokens: 1, output_tokens: 1 } })], "complete", true],
    ["responses", "at its cap", [event("incomplete", { usage: null })], "complete", true],
    ["responses", "failed", [event("failed", { status: "failed", usage: null })], "error", false],
    ["responses", "an error event", FLAT, "error", false],
    ["responses", "begun", [event("created", { status: "in_progress", usage: null })], "open", false],
    ["chat", "in full", [STOPPED, USED, "[DONE]"], "complete", true],
    ["chat", "without [DONE]", [STOPPED, USED], "complete", true],
    ["chat", "without its usage", [STOPPED, "[DONE]"], "complete", false],
    ["chat", "broken off", [{ choices: [] }, { error: { message: "x" } }], "error", false],
    ["content", "in full", [{ candidates: [{ finishReason: "STOP" }], usageMetadata }], "complete", true],
    ["content", "cut", [{ candidates: [{}], usageMetadata }], "open", false],
    ["content", "blocked", [{ promptFeedback: { blockReason: "SAFETY" } }], "complete", true],
    [
      "content",
      "an error outside of any event",
      `${events({ candidates: [{}] })}{\n  "error": {\n    "code": 503\n  }\n}\n`,
      "error",
      false,
    ],
  ])("the meter of %s knows how an answer ended: %s", (dialect, _how, given, end, final) => {
    const text = typeof given === "string" ? given : events(...given);
    expect(read(OPEN[dialect], text)).toMatchObject({ end, final });
  });

  test("a last line without a newline counts if it is complete, and is ignored if it was cut", () => {
    const text = events(start({ input_tokens: 1, output_tokens: 1 }), delta({ output_tokens: 20 })).trimEnd();
    expect(usage(read(openMessagesMeter, text))).toEqual([{ input: 1, output: 20 }]);
    expect(usage(read(openMessagesMeter, text.slice(0, -1)))).toEqual([{ input: 1, output: 1 }]);
  });

  test("a JSON body is complete when its JSON is, and a failure if it has an error", () => {
    const body = JSON.stringify({
      type: "message",
      model: "m",
      usage: { input_tokens: 1, output_tokens: 2 },
      content: [],
    });
    expect(read(openMessagesMeter, body, "application/json")).toMatchObject({
      end: "complete",
      final: true,
      model: "m",
    });
    const cut = read(openMessagesMeter, body.slice(0, -1), "application/json");
    expect(cut).toMatchObject({ end: "open", final: false, parts: [{ usage: { input: 1, output: 2 } }] });
    expect(read(openMessagesMeter, '{"type":"error","error":{"type":"x"}}', "application/json").end).toBe(
      "error",
    );
    expect(read(openResponsesMeter, '{"error":{"code":"x"}}', "application/json").end).toBe("error");
    expect(
      read(
        openResponsesMeter,
        '{"object":"response","status":"failed","error":{"code":"x"}}',
        "application/json",
      ).end,
    ).toBe("error");
    expect(read(openContentMeter, '[{"error":{"code":503}}]', "application/json").end).toBe("error");
  });

  test("a JSON array of chunks is complete after a finish reason, or after its closing bracket", () => {
    const value = (more: object) =>
      JSON.stringify({ candidates: [more], usageMetadata: { promptTokenCount: 3 } });
    const cut = `[${value({})},\n${value({ finishReason: "STOP" }).slice(0, -1)}`;
    expect(read(openContentMeter, cut, "application/json")).toMatchObject({ end: "open", final: false });
    expect(read(openContentMeter, `${cut}}`, "application/json")).toMatchObject({
      end: "complete",
      final: true,
    });
    expect(read(openContentMeter, `[${value({})}]`, "application/json")).toMatchObject({ end: "complete" });
  });

  test("if the content type does not say whether an answer is JSON or a stream, its first byte does", () => {
    expect(read(openChatMeter, ' {"usage":{"prompt_tokens":1}}', "").end).toBe("complete");
    expect(read(openChatMeter, events("[DONE]"), "text/plain").end).toBe("complete");
    expect(openChatMeter("").read()).toMatchObject({ end: "open", parts: [] });
  });
});

describe("the meter of messages reads reports, passes and calls", () => {
  test("a later report replaces an earlier one field by field; null and absent fields replace nothing", () => {
    const split = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 20 };
    const text = events(
      start({
        input_tokens: 10,
        cache_read_input_tokens: 5,
        cache_creation_input_tokens: 120,
        cache_creation: split,
        output_tokens: 1,
      }),
      delta({
        input_tokens: 50,
        cache_read_input_tokens: null,
        output_tokens: 9,
        cache_creation_input_tokens: 150,
      }),
      delta({ output_tokens: 7 }),
    );
    expect(usage(read(openMessagesMeter, text))).toEqual([
      { input: 50, cache_read: 5, cache_write_5m: 130, cache_write_1h: 20, output: 7 },
    ]);
  });

  test("a late split of cache writes by lifetime counts, and one that a later total contradicts does not", () => {
    const late = events(
      start({ input_tokens: 0, output_tokens: 0 }),
      delta({
        input_tokens: 1,
        output_tokens: 1,
        cache_creation: { ephemeral_1h_input_tokens: 30 },
        cache_creation_input_tokens: 30,
      }),
    );
    expect(usage(read(openMessagesMeter, late))).toEqual([{ input: 1, cache_write_1h: 30, output: 1 }]);
    const void_ = events(
      start({
        input_tokens: 1,
        cache_creation_input_tokens: 40,
        cache_creation: { ephemeral_1h_input_tokens: 40 },
      }),
      delta({ input_tokens: 41, cache_creation_input_tokens: 0, output_tokens: 2 }),
    );
    expect(usage(read(openMessagesMeter, void_))).toEqual([{ input: 41, output: 2 }]);
  });

  test("an answer's passes are separate parts of its usage only if their kinds or models differ", () => {
    const own = { type: "message", input_tokens: 5, output_tokens: 6 };
    const advisor = { type: "advisor_message", model: "other", input_tokens: 7, output_tokens: 8 };
    const totals = {
      input_tokens: 5,
      output_tokens: 6,
      output_tokens_details: { thinking_tokens: 3 },
      server_tool_use: { web_search_requests: 2 },
    };
    expect(
      read(openMessagesMeter, events(start(totals), delta({ iterations: [own, advisor] }))).parts,
    ).toEqual([
      { model: null, pass: "message", usage: { input: 5, output: 6, reasoning: 3, web_search: 2 } },
      { model: "other", pass: "advisor_message", usage: { input: 7, output: 8 } },
    ]);
    expect(
      read(openMessagesMeter, events(start(totals), delta({ iterations: [own, own] }))).parts,
    ).toHaveLength(1);
  });
});

test("a listener hears of an answer's calls before the stream has ended", () => {
  const heard: string[] = [];
  const listener = {
    begin: (id: string) => void heard.push(id),
    add: (id: string) => void heard.push(id),
  };
  const meter = openResponsesMeter("text/event-stream", listener);
  const item = { type: "function_call", id: "fc_1", call_id: "call_1", name: "run", arguments: "{}" };
  for (const event of [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.done", output_index: 0, item },
  ])
    meter.see(Buffer.from(events(event)));
  expect(heard).toEqual(["resp_1", "call_1"]);
});

describe("the meter of messages reads each kind of event:", () => {
  const streamed = (...list: readonly unknown[]) => read(openMessagesMeter, events(...list));

  test("reported usage stays final if a later event has no usage", () => {
    const shown = { input_tokens: 1, output_tokens: 2 };
    const reading = streamed(delta(shown), delta(undefined), delta({ output_tokens: null }));
    expect(reading).toMatchObject({ final: true, end: "open" });
    expect(reading.rawUsage).toEqual(shown);
    for (const nothing of [undefined, null, {}, { output_tokens: null }])
      expect(streamed(start(shown), delta(nothing)).final).toBe(false);
  });

  test("an error event may have no type", () => {
    expect(streamed({ error: { message: "no" } })).toMatchObject({ end: "error", final: false });
    for (const event of [{ type: "error" }, { type: "error", error: null }])
      expect(streamed(event).end).toBe("error");
    for (const event of [{ error: null }, { error: "no" }, {}, { type: "ping", error: {} }])
      expect(streamed(event).end).toBe("open");
  });

  test("a later event without a model does not remove the model", () => {
    const again = { type: "message_start", message: { usage: { input_tokens: 1 } } };
    expect(streamed(start({ input_tokens: 1 }), again).model).toBe("m");
  });

  test("thoughts and arguments count as output like text, and nothing else does", () => {
    const spoken = (part: object, type = "content_block_delta") =>
      streamed({ type, delta: part }).estimatedOutput;
    const text = "x".repeat(400);
    for (const name of ["text", "thinking", "partial_json"]) {
      expect(spoken({ [name]: text })).toBe(100);
      expect(spoken({ [name]: text }, "content_block_stop")).toBe(0);
    }
    expect(spoken({ signature: text })).toBe(0);
  });

  const passOf = (type: string | undefined, output_tokens: number, model?: string) => ({
    ...(type === undefined ? {} : { type }),
    ...(model === undefined ? {} : { model }),
    input_tokens: 1,
    output_tokens,
  });
  const inPasses = (...iterations: readonly unknown[]) =>
    streamed(
      start({ input_tokens: 9 }),
      delta({ output_tokens: 9, server_tool_use: { web_search_requests: 3 }, iterations }),
    ).parts;

  test("the largest `message` pass gets the calls that have a fee, or the largest pass if none is `message`", () => {
    const shown = (...passes: readonly unknown[]) =>
      inPasses(...passes).map(({ pass, usage }) => [pass, usage.output, usage.web_search]);
    expect(shown(passOf("compaction", 8), passOf("message", 2), passOf(undefined, 5))).toEqual([
      ["compaction", 8, undefined],
      ["message", 2, undefined],
      ["message", 5, 3],
    ]);
    expect(shown(passOf("compaction", 2), passOf("advisor", 8), passOf("advisor", 5))).toEqual([
      ["compaction", 2, undefined],
      ["advisor", 8, 3],
      ["advisor", 5, undefined],
    ]);
  });

  test("passes of kind `message` are separate parts only if one pass names its model", () => {
    expect(inPasses(passOf("message", 2), passOf("message", 7))).toEqual([
      { model: null, pass: "message", usage: { input: 9, output: 9, web_search: 3 } },
    ]);
    expect(inPasses(passOf("message", 2), passOf("message", 7, "other"), { type: "message" })).toEqual([
      { model: null, pass: "message", usage: { input: 1, output: 2 } },
      { model: "other", pass: "message", usage: { input: 1, output: 7, web_search: 3 } },
      { model: null, pass: "message", usage: {} },
    ]);
  });

  test.each<[object, object]>([
    [{ cache_read_input_tokens: 5 }, { input: 0, cache_read: 5, output: 0 }],
    [{ cache_creation_input_tokens: 1 }, { input: 0, cache_write_5m: 1, output: 0 }],
    [
      { output_tokens: 1, cache_creation: { ephemeral_1h_input_tokens: 1 } },
      { input: 0, cache_write_1h: 1, output: 1 },
    ],
    [
      { input_tokens: 1, cache_read_input_tokens: 0, server_tool_use: { web_search_requests: 0 } },
      { input: 1, output: 0 },
    ],
  ])("the usage %j is counted as %j", (shown, counted) => {
    expect(usage(streamed(start(shown)))).toEqual([counted]);
  });

  test("cache writes are split by lifetime if the lifetimes add up to the total", () => {
    const split = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 };
    const late = start({ input_tokens: 1, cache_creation_input_tokens: 7, cache_creation: split });
    const reading = streamed(late, delta({ cache_creation_input_tokens: 7, output_tokens: 2 }));
    expect(usage(reading)).toEqual([{ input: 1, cache_write_5m: 3, cache_write_1h: 4, output: 2 }]);
  });

  test("a body or line that is too long to keep in memory is read, too", () => {
    const long = "x".repeat(70_000);
    const counted = { input_tokens: 1, output_tokens: 2 };
    const body = { type: "message", content: [{ text: long }], model: "m", usage: counted };
    const whole = {
      model: "m",
      parts: [{ usage: { input: 1, output: 2 } }],
      rawUsage: counted,
    };
    expect(readBody(openMessagesMeter, body)).toMatchObject(whole);
    const begun = { type: "message_start", message: { content: long, model: "m", usage: counted } };
    expect(streamed(begun)).toMatchObject(whole);
    expect(streamed({ error: { details: long, type: "x" } }).end).toBe("error");
  });
});

describe("the meter of Responses reads each kind of event:", () => {
  const streamed = (...list: readonly unknown[]) => read(openResponsesMeter, events(...list));
  const done = (item: object, output_index?: number) => ({
    type: "response.output_item.done",
    ...(output_index === undefined ? {} : { output_index }),
    item,
  });

  test.each([
    ["queued", true],
    ["in_progress", true],
    ["completed", false],
    ["incomplete", false],
    ["cancelled", false],
  ])("a stored response with the status %s still runs: %p", (status, goesOn) => {
    const shown = { object: "response", id: "resp_1", status };
    expect(readBody(openResponsesMeter, shown).stored).toEqual({ id: "resp_1", goesOn });
    expect(streamed({ type: "response.created", response: shown }).stored).toEqual({ id: "resp_1", goesOn });
  });

  test("a response without an id is not stored, and a field that an event leaves out keeps its value", () => {
    const first = {
      id: "resp_1",
      status: "in_progress",
      model: "m",
      service_tier: "flex",
      usage: { output_tokens: 2 },
    };
    expect(streamed(completed({ model: "m" })).stored).toBeUndefined();
    const reading = streamed({ type: "response.created", response: first }, completed({ usage: null }));
    expect(reading).toMatchObject({
      model: "m",
      tariff: { service_tier: "flex" },
      stored: { id: "resp_1", goesOn: true },
    });
    expect(reading.rawUsage).toEqual({ output_tokens: 2 });
    expect(streamed(completed({})).tariff).toEqual({});
  });

  test("an answer counts as failed if an event's name or the response's status says so", () => {
    for (const event of [
      { type: "response.failed" },
      { type: "response.failed", response: {} },
      { type: "response.in_progress", response: { status: "failed" } },
    ])
      expect(streamed(event).end).toBe("error");
    expect(streamed({ type: "response.incomplete", response: { status: "incomplete" } }).end).toBe(
      "complete",
    );
  });

  test("only deltas of a Responses stream count as output, and events that repeat text do not", () => {
    const text = "x".repeat(400);
    expect(streamed({ type: "response.output_text.delta", delta: text }).estimatedOutput).toBe(100);
    expect(streamed({ type: "response.output_text.done", delta: text }).estimatedOutput).toBe(0);
  });

  test("calls without ids are distinguished by their index, and calls in one container count once", () => {
    const search = { type: "file_search_call" };
    expect(usage(streamed(done(search, 0), done(search, 1), done(search, 1)))).toEqual([{ file_search: 2 }]);
    const runIn = (container_id: string, id: string) => ({ type: "code_interpreter_call", id, container_id });
    expect(usage(streamed(done(runIn("a", "1")), done(runIn("a", "2")), done(runIn("b", "3"))))).toEqual([
      { code_interpreter: 2 },
    ]);
    const ids = ["1", "2"].map((id) => done({ ...search, id }));
    expect(usage(streamed(...ids, ...ids))).toEqual([{ file_search: 2 }]);
  });

  test("web searches count as web_search_preview if that tool was offered, and opening a page is no search", () => {
    const tools = [{ type: "function" }, { type: "web_search_preview_2025_03_11" }];
    const output = [
      { type: "file_search_call", id: "1" },
      { type: "web_search_call", id: "2" },
      { type: "web_search_call", id: "3", action: { type: "open_page" } },
    ];
    expect(usage(streamed(completed({ tools, output })))).toEqual([
      { file_search: 1, web_search_preview: 1 },
    ]);
    expect(usage(streamed(completed({ output })))).toEqual([{ file_search: 1, web_search: 1 }]);
  });

  test("an item that is too long to keep in memory is counted, too", () => {
    const item = { type: "code_interpreter_call", outputs: "x".repeat(70_000), id: "1", container_id: "a" };
    const search = {
      type: "web_search_call",
      results: "x".repeat(70_000),
      id: "2",
      action: { type: "open_page" },
    };
    const unnamed = { type: "file_search_call", results: "x".repeat(70_000) };
    const again = { ...item, id: "3" };
    const list = [done(item, 0), done(again, 1), done(search, 2), done(unnamed, 3), done(unnamed, 4)];
    expect(usage(streamed(...list))).toEqual([{ code_interpreter: 1, file_search: 2 }]);
  });
});

describe("the meter of the content dialect reads each kind of chunk:", () => {
  const streamed = (...list: readonly unknown[]) => read(openContentMeter, events(...list));
  const counting = (usageMetadata: object) => usage(streamed({ usageMetadata }));

  test.each<[string, object, object]>([
    ["the prompt alone", { promptTokenCount: 5 }, { input: 5, output: 0 }],
    ["candidates alone", { candidatesTokenCount: 5 }, { input: 0, output: 5 }],
    ["thoughts alone", { thoughtsTokenCount: 5 }, { input: 0, output: 5, reasoning: 5 }],
    ["the tools' prompt", { toolUsePromptTokenCount: 5 }, { input: 0, output: 0, tool_prompt: 5 }],
    [
      "the images, audio and video of the output",
      {
        candidatesTokenCount: 100,
        candidatesTokensDetails: [
          { modality: "IMAGE", tokenCount: 10 },
          { modality: "AUDIO", tokenCount: 20 },
          { modality: "VIDEO", tokenCount: 30 },
          { modality: "AUDIO" },
        ],
      },
      { input: 0, output: 40, output_image: 10, output_audio: 20, output_video: 30 },
    ],
    [
      "sound that was cached",
      {
        promptTokenCount: 100,
        cachedContentTokenCount: 30,
        promptTokensDetails: [{ modality: "AUDIO", tokenCount: 50 }],
        cacheTokensDetails: [{ modality: "AUDIO", tokenCount: 20 }],
      },
      { input: 40, cache_read: 10, input_audio: 30, cache_read_audio: 20, output: 0 },
    ],
  ])("the usage of a content answer has %s", (_, shown, counted) => {
    expect(counting(shown)).toEqual([counted]);
  });

  test("the tier, the model and the counts keep their values until new ones come", () => {
    const first = {
      modelVersion: "m",
      usageMetadata: { promptTokenCount: 1, trafficType: "ON_DEMAND_FLEX" },
    };
    const reading = streamed(first, { candidates: [] }, { usageMetadata: null });
    expect(reading).toMatchObject({
      model: "m",
      tariff: { traffic_type: "ON_DEMAND_FLEX" },
    });
    expect(reading.rawUsage).toEqual(first.usageMetadata);
    expect(streamed({ usageMetadata: { promptTokenCount: 1 } }).tariff).toEqual({});
  });

  test("an unspecified finish reason does not end the answer", () => {
    for (const finishReason of ["FINISH_REASON_UNSPECIFIED", 0, null, ""])
      expect(streamed({ candidates: [{ finishReason }] }).end).toBe("open");
  });

  describe("a finish reason in every chunk does not end an answer too early", () => {
    const write = (text: string, finishReason = "STOP") => ({
      candidates: [{ content: { parts: [{ text }] }, finishReason }],
    });
    const long = "x".repeat(70_000);
    const see = (text: string, contentType: string, pieceBytes: number) => {
      const meter = openContentMeter(contentType);
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length; at += pieceBytes) meter.see(bytes.subarray(at, at + pieceBytes));
      return meter.read();
    };

    test.each([
      ["events", "text/event-stream", events(write("one")), events(write("two")).trimEnd()],
      ["long events", "text/event-stream", events(write(long)), events(write(long)).trimEnd()],
      ["an array", "application/json", `[${JSON.stringify(write("one"))}\n,`, JSON.stringify(write("two"))],
    ])("an answer in %s is open until its last chunk is whole", (_, contentType, first, second) => {
      for (const pieceBytes of [first.length + second.length, 10_000]) {
        const begun = see(first + second.slice(0, -1), contentType, pieceBytes);
        expect([begun.end, begun.final]).toEqual(["open", false]);
        for (const whole of [first, first + second]) {
          const { end, final } = see(whole, contentType, pieceBytes);
          expect([end, final]).toEqual(["complete", true]);
        }
      }
    });

    test("an answer that had a finish reason is open again if another event begins, not if a comment does", () => {
      const one = events(write("one"));
      for (const begun of ["d", "data:", 'data: {"candidates"'])
        expect(see(one + begun, "", 1).end).toBe("open");
      for (const rest of ["\n", ": ping", ": ping\n\n"]) expect(see(one + rest, "", 1).end).toBe("complete");
    });
  });

  test("code and the arguments of a call count as output like text", () => {
    const text = "x".repeat(400);
    const spoken = (part: object) =>
      streamed({ candidates: [{ content: { parts: [part] } }] }).estimatedOutput;
    expect(spoken({ text })).toBe(100);
    expect(spoken({ executableCode: { code: text } })).toBe(100);
    expect(spoken({ functionCall: { name: "f", args: { a: text } } })).toBe(102);
    expect(spoken({ inlineData: { data: text } })).toBe(0);
  });
});

describe("a long body is metered although its unread text is dropped", () => {
  const counted = { input_tokens: 1, output_tokens: 2 };
  const responses = {
    object: "response",
    id: "resp_1",
    status: "in_progress",
    model: "m",
    service_tier: "flex",
    tools: [{ type: "web_search_preview" }],
    output: [
      { type: "web_search_call", id: "1", action: { type: "search" } },
      { type: "web_search_call", id: "2", action: { type: "find" } },
      { type: "code_interpreter_call", id: "3", container_id: "a" },
      { type: "code_interpreter_call", id: "4", container_id: "a" },
    ],
    usage: counted,
  };
  const grounded = {
    webSearchQueries: ["why"],
    groundingChunks: [{ web: {} }, { maps: { placeId: "p" } }],
  };
  const candidates = [{ finishReason: "STOP", groundingMetadata: grounded }];

  test.each<[string, Open, object, Partial<Reading>]>([
    ["messages", openMessagesMeter, { type: "message", model: "m", usage: counted }, { model: "m" }],
    ["messages, failed", openMessagesMeter, { error: { type: "x" } }, { end: "error" }],
    ["responses", openResponsesMeter, responses, { stored: { id: "resp_1", goesOn: true } }],
    ["responses, failed", openResponsesMeter, { error: { code: "x" } }, { end: "error" }],
    ["responses, status failed", openResponsesMeter, { ...responses, status: "failed" }, { end: "error" }],
    [
      "content",
      openContentMeter,
      { candidates, modelVersion: "m", usageMetadata: { promptTokenCount: 1, serviceTier: "FLEX" } },
      { model: "m", tariff: { service_tier: "FLEX" } },
    ],
    [
      "content, blocked",
      openContentMeter,
      { promptFeedback: { blockReason: "SAFETY" } },
      { end: "complete" },
    ],
    ["content, failed", openContentMeter, { error: { code: 500 } }, { end: "error" }],
  ])("a meter reads the same from a long body as from a short one: %s", (_, open, body, shown) => {
    const short = readBody(open, body);
    const long = readBody(open, { ...body, unread: "x".repeat(70_000) });
    expect(short).toMatchObject(shown);
    expect({ ...long, estimatedOutput: 0 }).toEqual({ ...short, estimatedOutput: 0 });
  });
});

describe("the meters of Responses and chat read the counts that these dialects share", () => {
  test.each<[string, object, object]>([
    ["input alone", { input_tokens: 5 }, { input: 5, output: 0 }],
    ["output alone", { output_tokens: 5 }, { input: 0, output: 5 }],
    [
      "sound and pictures in the input",
      { input_tokens: 100, input_tokens_details: { audio_tokens: 20, image_tokens: 30, cached_tokens: 10 } },
      { input: 40, cache_read: 10, input_audio: 20, input_image: 30, output: 0 },
    ],
    [
      "sound in the output",
      { output_tokens: 100, output_tokens_details: { audio_tokens: 60, reasoning_tokens: 10 } },
      { input: 0, output: 40, output_audio: 60, reasoning: 10 },
    ],
    [
      "reasoning inside of the output",
      {
        input_tokens: 10,
        output_tokens: 20,
        total_tokens: 30,
        output_tokens_details: { reasoning_tokens: 5 },
      },
      { input: 10, output: 20, reasoning: 5 },
    ],
    [
      "reasoning next to the output",
      {
        input_tokens: 10,
        output_tokens: 20,
        total_tokens: 35,
        output_tokens_details: { reasoning_tokens: 5 },
      },
      { input: 10, output: 25, reasoning: 5 },
    ],
    [
      "reasoning, and a total that does not say where",
      {
        input_tokens: 10,
        output_tokens: 20,
        total_tokens: 99,
        output_tokens_details: { reasoning_tokens: 5 },
      },
      { input: 10, output: 20, reasoning: 5 },
    ],
    [
      "reasoning without output and input",
      { output_tokens: 0, total_tokens: 5, output_tokens_details: { reasoning_tokens: 5 } },
      { input: 0, output: 5, reasoning: 5 },
    ],
    [
      "reasoning alone",
      { input_tokens: 3, total_tokens: 8, output_tokens_details: { reasoning_tokens: 5 } },
      { input: 3, output: 5, reasoning: 5 },
    ],
  ])("the counts that responses and chat share are read: %s", (_, shown, counted) => {
    expect(usage(read(openResponsesMeter, events(completed({ usage: shown }))))).toEqual([counted]);
  });
});

describe("the meter of Responses reads tool calls and the service tier", () => {
  const item = (of: object, at: number) => ({
    type: "response.output_item.done",
    output_index: at,
    item: of,
  });
  const search = { id: "ws_1", type: "web_search_call", action: { type: "search" } };

  test("tool calls are counted once, from finished items or from the last event", () => {
    const open = { id: "ws_2", type: "web_search_call", action: { type: "open_page" } };
    const file = { id: "fs_1", type: "file_search_call" };
    const code = (id: string, container_id: string) => ({ id, type: "code_interpreter_call", container_id });
    const output = [
      search,
      open,
      file,
      code("ci_1", "c1"),
      code("ci_2", "c1"),
      code("ci_3", "c2"),
      { type: "message" },
    ];
    const cut = events(...output.map(item));
    const calls = { web_search: 1, file_search: 1, code_interpreter: 2 };
    expect(usage(read(openResponsesMeter, cut))).toEqual([calls]);
    const whole = cut + events(completed({ usage: { input_tokens: 3, output_tokens: 4 }, output }));
    expect(usage(read(openResponsesMeter, whole))).toEqual([{ input: 3, output: 4, ...calls }]);
    const blank = cut + events(completed({ usage: { input_tokens: 3, output_tokens: 4 }, output: [] }));
    expect(usage(read(openResponsesMeter, blank))).toEqual([{ input: 3, output: 4, ...calls }]);
  });

  test("each of several tool calls is counted once, even if its id changes from event to event", () => {
    const again = { ...search, id: "ws_other" };
    const second = { ...search, id: "ws_2" };
    const done = events(item(search, 0), item(second, 1));
    const whole = (output: object[]) => done + events(completed({ usage: { input_tokens: 3 }, output }));
    const shown = [{ input: 3, output: 0, web_search: 2 }];
    expect(usage(read(openResponsesMeter, whole([again, { ...second, id: "ws_more" }])))).toEqual(shown);
    // If a relay leaves out an item, the item behind it has another place.
    expect(usage(read(openResponsesMeter, whole([second])))).toEqual(shown);
    const unplaced = events(item(search, Number.NaN), item(second, Number.NaN));
    expect(usage(read(openResponsesMeter, unplaced))).toEqual([{ web_search: 2 }]);
  });

  test("the last event of an answer is read at any length, and its service tier is used", () => {
    const output = [
      {
        type: "message",
        content: [{ type: "output_text", text: 'said "usage":{"input_tokens":1} '.repeat(300_000) }],
      },
      search,
    ];
    const text = events(
      { type: "response.created", response: { model: "m", service_tier: "auto", usage: null } },
      completed({
        model: "m-1",
        output,
        service_tier: "flex",
        usage: { input_tokens: 7, output_tokens: 8 },
        user: null,
      }),
    );
    const bytes = new TextEncoder().encode(text);
    expect(bytes.length).toBeGreaterThan(9_000_000);
    const meter = openResponsesMeter("text/event-stream");
    for (let at = 0; at < bytes.length; at += 16_000) meter.see(bytes.subarray(at, at + 16_000));
    const wanted = {
      model: "m-1",
      end: "complete",
      final: true,
      tariff: { service_tier: "flex" },
      parts: [{ usage: { input: 7, output: 8, web_search: 1 } }],
    };
    expect(meter.read()).toMatchObject(wanted);
    expect(read(openResponsesMeter, text)).toMatchObject(wanted);
    const body = JSON.stringify({
      object: "response",
      model: "m-1",
      output,
      service_tier: "flex",
      usage: { input_tokens: 7, output_tokens: 8 },
    });
    expect(read(openResponsesMeter, body, "application/json")).toMatchObject(wanted);
  });
});

describe("the meter of the content dialect reads modalities, searches and embeddings", () => {
  test("tokens are split by modality, and cached tokens without a modality are taken for text first", () => {
    const modal = (modality: string, tokenCount: number) => ({ modality, tokenCount });
    const of = (usageMetadata: object) => usage(read(openContentMeter, events({ usageMetadata })));
    expect(
      of({
        promptTokenCount: 100,
        promptTokensDetails: [modal("AUDIO", 30), modal("TEXT", 10), modal("DOCUMENT", 20)],
      }),
    ).toEqual([{ input: 70, input_audio: 30, output: 0 }]);
    expect(
      of({
        promptTokenCount: 100,
        cachedContentTokenCount: 80,
        promptTokensDetails: [modal("VIDEO", 60)],
        cacheTokensDetails: [modal("VIDEO", 50)],
      }),
    ).toEqual([{ input: 10, cache_read: 30, input_video: 10, cache_read_video: 50, output: 0 }]);
    expect(
      of({ promptTokenCount: 100, cachedContentTokenCount: 80, promptTokensDetails: [modal("IMAGE", 60)] }),
    ).toEqual([{ input: 0, cache_read: 40, input_image: 20, cache_read_image: 40, output: 0 }]);
  });

  test("the usage of embeddings is read although its details have another name", () => {
    const usageMetadata = {
      promptTokenCount: 1000,
      promptTokenDetails: [
        { modality: "TEXT", tokenCount: 100 },
        { modality: "VIDEO", tokenCount: 600 },
        { modality: "IMAGE", tokenCount: 300 },
      ],
    };
    const body = JSON.stringify({ embedding: { values: [0.1] }, usageMetadata });
    expect(usage(read(openContentMeter, body, "application/json"))).toEqual([
      { input: 100, input_image: 300, input_video: 600, output: 0 },
    ]);
  });

  test("the content dialect's enums are also read if they are numbers, which clients can ask for", () => {
    const usageMetadata = {
      promptTokenCount: 1000,
      promptTokensDetails: [
        { modality: 1, tokenCount: 100 },
        { modality: 3, tokenCount: 200 },
        { modality: 4, tokenCount: 700 },
      ],
      candidatesTokenCount: 90,
      candidatesTokensDetails: [{ modality: 2, tokenCount: 80 }],
    };
    const answer = (finishReason: number) => events({ candidates: [{ finishReason }], usageMetadata });
    expect(usage(read(openContentMeter, answer(1)))).toEqual([
      { input: 100, input_audio: 700, input_video: 200, output: 10, output_image: 80 },
    ]);
    expect(read(openContentMeter, answer(1)).end).toBe("complete");
    expect(read(openContentMeter, answer(0)).end).toBe("open");
    expect(read(openContentMeter, events({ promptFeedback: { blockReason: 1 } })).end).toBe("complete");
  });

  test("each different query is one `google_search`, and all queries of a prompt together are one `google_search_prompt`", () => {
    const grounded = (...webSearchQueries: string[]) => ({
      candidates: [{ groundingMetadata: { webSearchQueries, groundingChunks: [{ maps: { title: "x" } }] } }],
    });
    expect(usage(read(openContentMeter, events(grounded("a", "b"), grounded("b", "c"))))).toEqual([
      { google_search: 3, google_search_prompt: 1, maps_grounding: 1 },
    ]);
  });

  test("empty queries are free and are not counted", () => {
    const grounded = (...webSearchQueries: string[]) =>
      events({ candidates: [{ groundingMetadata: { webSearchQueries } }] });
    expect(usage(read(openContentMeter, grounded("", "a", " ", "b")))).toEqual([
      { google_search: 2, google_search_prompt: 1 },
    ]);
    expect(usage(read(openContentMeter, grounded("", " ")))).toEqual([]);
  });
});

describe("hostile bytes do not mislead a meter", () => {
  test("text and arguments that look like usage are not read as usage", () => {
    const fake =
      'x","usage":{"input_tokens":9,"output_tokens":9,"prompt_tokens":9},"usageMetadata":{"promptTokenCount":9},"type":"message_stop","y":"';
    const block = (delta: object) => ({ type: "content_block_delta", delta });
    const shown: [Dialect, event: object][] = [
      ["messages", block({ type: "text_delta", text: fake })],
      ["messages", block({ usage: { input_tokens: 9 }, partial_json: '{"usage":{}}' })],
      ["responses", { type: "response.output_text.delta", delta: fake }],
      ["chat", { choices: [{ delta: { content: `${fake} [DONE]` } }] }],
      ["content", { candidates: [{ content: { parts: [{ text: fake }] } }] }],
    ];
    for (const [dialect, event] of shown)
      expect(read(OPEN[dialect], `event: message_stop\n${events(event)}`)).toMatchObject({
        parts: [],
        end: "open",
      });
    const body = JSON.stringify({
      type: "message",
      content: [{ type: "tool_use", input: { usage: { input_tokens: 9 } } }, { text: fake }],
      usage: { input_tokens: 1, output_tokens: 1 },
    });
    expect(usage(read(openMessagesMeter, body, "application/json"))).toEqual([{ input: 1, output: 1 }]);
  });

  test("malformed lines are ignored, and the next line is read", () => {
    const text = `data: {"type":"message_delta","usage":{"output_tokens":\n\nmessage_\ndata:\n\n\0\xff\n${events(start({ input_tokens: 4 }))}`;
    expect(usage(read(openMessagesMeter, text))).toEqual([{ input: 4, output: 0 }]);
    expect(
      read(
        openMessagesMeter,
        events("null", "1", '"message_start"', "[]", '{"type":"message_start","message":"message_"}'),
      ).parts,
    ).toEqual([]);
  });

  test("a line of 50 MB is not kept in memory, and the next line is read", () => {
    const meter = openMessagesMeter("text/event-stream");
    const body = openMessagesMeter("application/json");
    meter.see(Buffer.from('data: {"type":"content_block_delta","delta":{"text":"'));
    body.see(Buffer.from('{"type":"message","content":[{"text":"'));
    const chunk = Buffer.alloc(64 * 1024, "message_ ");
    const before = process.memoryUsage().arrayBuffers;
    for (let sent = 0; sent < 50_000_000; sent += chunk.length) {
      meter.see(chunk);
      body.see(chunk);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40_000_000);
    meter.see(Buffer.from(`"}}\n\n${events(start({ input_tokens: 4 }))}`));
    body.see(Buffer.from('"}],"usage":{"input_tokens":4}}'));
    expect([usage(meter.read()), usage(body.read())]).toEqual([
      [{ input: 4, output: 0 }],
      [{ input: 4, output: 0 }],
    ]);
  });
});

describe("far into a stream, where only samples of its text are read,", () => {
  const FILLERS = {
    messages: { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "a word or two" } },
    responses: { type: "response.output_text.delta", delta: "a word or two" },
    chat: { choices: [{ index: 0, delta: { content: "a word or two" }, finish_reason: null }] },
    content: { candidates: [{ content: { parts: [{ text: "a word or two" }] } }] },
  };

  /** Puts `late` so far into a stream that the meter does not read the text around it. */
  function readBehind(dialect: Dialect, ...late: readonly unknown[]): Reading {
    const meter = OPEN[dialect]("text/event-stream");
    const filler = events(FILLERS[dialect]);
    meter.see(Buffer.from(filler.repeat(Math.ceil(200_000 / filler.length))));
    for (const event of late) meter.see(Buffer.from(filler + events(event) + filler));
    return meter.read();
  }

  test.each<[Dialect, string, Partial<Reading>, unknown[]]>([
    ["messages", "the model", { model: "m" }, [start({ input_tokens: 1 })]],
    ["messages", "the usage", { final: true, end: "open" }, [delta({ output_tokens: 2 })]],
    ["messages", "the end", { end: "complete" }, [{ type: "message_stop" }]],
    ["messages", "an error", { end: "error" }, [{ type: "error", error: { type: "overloaded_error" } }]],
    ["responses", "the end", { end: "complete", model: "m" }, [completed({ model: "m" })]],
    [
      "responses",
      "a call with a fee",
      { parts: [{ model: null, pass: "message", usage: { file_search: 1 } }] },
      [{ type: "response.output_item.done", item: { type: "file_search_call", id: "fs" }, output_index: 0 }],
    ],
    ["responses", "an error", { end: "error" }, [{ type: "error", message: "no" }]],
    [
      "chat",
      "the usage",
      { parts: [{ model: null, pass: "message", usage: { input: 1, output: 2 } }], end: "open" },
      [{ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }],
    ],
    ["chat", "the end", { end: "complete" }, ["[DONE]"]],
    [
      "chat",
      "the end without [DONE]",
      { end: "complete" },
      [
        { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
        { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } },
      ],
    ],
    ["chat", "an error", { end: "error" }, [{ error: { message: "no" } }]],
    [
      "content",
      "the usage",
      { parts: [{ model: null, pass: "message", usage: { input: 1, output: 2 } }], end: "open" },
      [{ usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 } }],
    ],
    ["content", "the end", { end: "complete" }, [{ candidates: [{ finishReason: "STOP" }] }]],
    [
      "content",
      "the searches",
      { parts: [{ model: null, pass: "message", usage: { google_search: 1, google_search_prompt: 1 } }] },
      [{ candidates: [{ groundingMetadata: { webSearchQueries: ["why"] } }] }],
    ],
    ["content", "a blocked prompt", { end: "complete" }, [{ promptFeedback: { blockReason: "SAFETY" } }]],
    ["content", "an error", { end: "error" }, [{ error: { code: 500 } }]],
  ])("far into a stream, the meter of %s finds %s", (dialect, _, found, late) => {
    expect(readBehind(dialect)).toMatchObject({ end: "open", final: false, parts: [] });
    expect(readBehind(dialect, ...late)).toMatchObject(found);
  });

  const LONG = "x".repeat(30_000);
  test.each<[Dialect, string, object]>([
    [
      "messages",
      "a server tool's result",
      { type: "content_block_start", content_block: { type: "web_search_tool_result", content: LONG } },
    ],
    [
      "messages",
      "a thought's signature",
      { type: "content_block_delta", delta: { type: "signature_delta", signature: LONG } },
    ],
    ["responses", "text that is repeated", { type: "response.output_text.done", text: LONG }],
    [
      "responses",
      "hidden reasoning",
      { type: "response.output_item.added", item: { type: "reasoning", encrypted_content: LONG } },
    ],
  ])("%s: %s is not counted as output", (dialect, _, event) => {
    const rest = readBehind(dialect, { type: "ping" }).estimatedOutput;
    expect(Math.abs(readBehind(dialect, event).estimatedOutput - rest)).toBeLessThan(20);
  });
});

describe("a meter estimates the output from the text", () => {
  const words = Array.from({ length: 4000 }, (_, i) => " word".repeat(1 + ((i * 7) % 5)));
  const response = {
    type: "response.output_text.delta",
    item_id: "msg_0123456789",
    obfuscation: "xxxxxxxxx",
  };
  const chunk = { id: "chatcmpl-1", model: "m", usage: null };
  const usageMetadata = { promptTokenCount: 1 };
  test.each<[Dialect, (text: string) => unknown]>([
    ["messages", (text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })],
    ["responses", (text) => ({ ...response, delta: text })],
    ["chat", (text) => ({ ...chunk, choices: [{ index: 0, delta: { content: text } }] })],
    ["content", (text) => ({ candidates: [{ content: { parts: [{ text }] } }], usageMetadata })],
  ])("the meter of a long %s stream estimates one token per four bytes of text", (dialect, wrap) => {
    const lines = words.map((text) => Buffer.from(events(wrap(text))));
    for (const chunks of [lines, [Buffer.concat(lines)]]) {
      const meter = OPEN[dialect]("text/event-stream");
      for (const chunk of chunks) meter.see(chunk);
      const exact = words.join("").length / 4;
      expect(meter.read().estimatedOutput / exact).toBeWithin(0.9, 1.1);
    }
  });

  test("estimated output is a quarter of the text's bytes in a JSON array of chunks", () => {
    const chunk = (text: string) =>
      JSON.stringify({
        candidates: [
          { content: { parts: [{ text, thoughtSignature: "s".repeat(300) }], role: "model" }, index: 0 },
        ],
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 1, promptTokensDetails: [] },
        responseId: "r".repeat(40),
      });
    const list = `[${words.map(chunk).join("\r\n,\r\n")}`;
    for (const size of [100, 7000, list.length]) {
      const meter = openContentMeter("application/json");
      for (let at = 0; at < list.length; at += size) meter.see(Buffer.from(list.slice(at, at + size)));
      expect(meter.read().estimatedOutput / (words.join("").length / 4)).toBeWithin(0.9, 1.1);
    }
  });

  test("estimated output is zero for a body with a picture", () => {
    const meter = openContentMeter("application/json");
    meter.see(
      Buffer.from(`{"candidates":[{"content":{"parts":[{"inlineData":{"data":"${"x".repeat(1 << 20)}`),
    );
    expect(meter.read()).toMatchObject({ end: "open", parts: [], estimatedOutput: 0 });
  });

  test("estimated output leaves out repeated and hidden text", () => {
    const long = "x".repeat(3000);
    const repeated = events(
      { type: "response.created", response: { instructions: long } },
      { type: "response.output_item.added", item: { encrypted_content: long } },
      { type: "response.output_text.delta", delta: "four" },
      { type: "response.output_text.done", text: long },
      { type: "response.output_item.done", item: { content: long } },
    );
    expect(read(openResponsesMeter, repeated).estimatedOutput).toBe(1);
    const hidden = events(
      { type: "content_block_start", content_block: { type: "web_search_tool_result", content: long } },
      { type: "content_block_delta", delta: { type: "text_delta", text: "four" } },
      { type: "content_block_delta", delta: { type: "signature_delta", signature: long } },
    );
    expect(read(openMessagesMeter, hidden).estimatedOutput).toBe(1);
  });
});

describe("a meter notices whether a body that is not streamed has output", () => {
  const LONG = "long ".repeat(40_000);
  const callOf = (input: object) => [{ type: "function_call", name: "f", ...input }];
  const bodies: [Dialect, string, boolean, object][] = [
    ...["Hi", LONG, ""].flatMap((text): [Dialect, string, boolean, object][] => {
      const name = text.length > 10 ? "a long text" : `the text ${JSON.stringify(text)}`;
      const item = { type: "message", content: [{ type: "output_text", text }] };
      const message = { role: "assistant", content: text };
      return [
        ["messages", name, text !== "", { type: "message", content: [{ type: "text", text }] }],
        ["responses", name, text !== "", { object: "response", output: [{ type: "reasoning" }, item] }],
        ["chat", name, text !== "", { choices: [{ message, finish_reason: "stop" }] }],
        ["content", name, text !== "", { candidates: [{ content: { parts: [{ text }] } }] }],
      ];
    }),
    ["messages", "no content", false, { type: "message", content: [] }],
    ["messages", "a tool call", true, { type: "message", content: [{ type: "tool_use", input: {} }] }],
    ["messages", "thoughts", true, { type: "message", content: [{ type: "thinking", thinking: "Hm" }] }],
    ["responses", "a function call", true, { object: "response", output: callOf({ arguments: "{}" }) }],
    ["responses", "a custom call", true, { object: "response", output: callOf({ input: "x" }) }],
    ["responses", "a refusal", true, { object: "response", output: [{ content: [{ refusal: "No" }] }] }],
    ["chat", "null", false, { choices: [{ message: { content: null }, finish_reason: "stop" }] }],
    [
      "chat",
      "a tool call",
      true,
      { choices: [{ message: { content: null, tool_calls: [{ function: { arguments: "{}" } }] } }] },
    ],
    ["chat", "a custom call", true, { choices: [{ message: { tool_calls: [{ custom: { input: "x" } }] } }] }],
    ["content", "a call", true, { candidates: [{ content: { parts: [{ functionCall: { args: {} } }] } }] }],
    ["content", "an error", false, { error: { message: "x".repeat(9000) } }],
    ["chat", "an error", false, { error: { message: "x".repeat(9000) } }],
  ];

  test.each(bodies)("a body of %s with %s has output: %p", (dialect, _name, hasText, body) => {
    const bytes = Buffer.from(JSON.stringify(body));
    for (const size of [bytes.length, 7]) {
      const meter = OPEN[dialect]("application/json");
      for (let at = 0; at < bytes.length; at += size) meter.see(bytes.subarray(at, at + size));
      expect(meter.read().hasText).toBe(hasText);
    }
  });
});

describe("P134: a count that cannot be trusted is never taken for zero and exact:", () => {
  const UNREADABLE = [-1, 1.5, 1e300, "12", {}, [], true, 2 ** 53].map((bad) => [bad] as const);
  const faults = (open: Open, ...list: readonly unknown[]) =>
    (read(open, events(...list)).faults ?? []).map(({ basis, text }) => `${basis}: ${text}`);
  const message = (usage: object) => faults(openMessagesMeter, start(usage), { type: "message_stop" });
  const response = (usage: object) => faults(openResponsesMeter, completed({ usage }));
  const chunk = (usage: object) => faults(openChatMeter, { usage }, "[DONE]");
  const snapshot = (usageMetadata: object) => faults(openContentMeter, { usageMetadata });

  test.each(UNREADABLE)("%j as the input or the output makes the line unknown", (bad) => {
    const unknown = (name: string) => [`unknown: the upstream's ${name} cannot be read`];
    expect(message({ input_tokens: bad, output_tokens: 3 })).toEqual(unknown("input_tokens"));
    expect(message({ input_tokens: 3, output_tokens: bad })).toEqual(unknown("output_tokens"));
    expect(message({ input_tokens: 3, cache_read_input_tokens: bad, output_tokens: 1 })).toEqual(
      unknown("cache_read_input_tokens"),
    );
    expect(response({ input_tokens: bad, output_tokens: 3 })).toEqual(unknown("input_tokens"));
    expect(response({ input_tokens: 3, output_tokens: bad })).toEqual(unknown("output_tokens"));
    expect(chunk({ prompt_tokens: bad, completion_tokens: 3 })).toEqual(unknown("prompt_tokens"));
    expect(snapshot({ promptTokenCount: bad })).toEqual(unknown("promptTokenCount"));
    expect(snapshot({ promptTokenCount: 1, candidatesTokenCount: bad })).toEqual(
      unknown("candidatesTokenCount"),
    );
    expect(snapshot({ promptTokenCount: 1, thoughtsTokenCount: bad })).toEqual(unknown("thoughtsTokenCount"));
  });

  test("if the output is counted, but the input is missing or null, the line is unknown", () => {
    const missing = (name: string) => [`unknown: the upstream's ${name} is missing beside the other counts`];
    for (const absent of [{}, { input_tokens: null, prompt_tokens: null, promptTokenCount: null }]) {
      expect(message({ ...absent, output_tokens: 3 })).toEqual(missing("input_tokens"));
      expect(response({ ...absent, output_tokens: 3 })).toEqual(missing("input_tokens"));
      expect(chunk({ ...absent, completion_tokens: 3 })).toEqual(missing("prompt_tokens"));
      expect(snapshot({ ...absent, candidatesTokenCount: 3 })).toEqual(missing("promptTokenCount"));
    }
  });

  test("a missing output makes the line suspect, but not in the content dialect", () => {
    const missing = (name: string) => [`suspect: the upstream's ${name} is missing beside the other counts`];
    expect(message({ input_tokens: 3 })).toEqual(missing("output_tokens"));
    expect(response({ input_tokens: 3 })).toEqual(missing("output_tokens"));
    expect(chunk({ prompt_tokens: 3, total_tokens: 9 })).toEqual(missing("completion_tokens"));
    expect(chunk({ prompt_tokens: 3, total_tokens: 3 })).toEqual(missing("completion_tokens"));
    expect(snapshot({ promptTokenCount: 3 })).toEqual([]);
  });

  test("the line of a messages stream is suspect if its only count of output came at the beginning", () => {
    const text = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
    const stop = { type: "message_delta", delta: { stop_reason: "end_turn" } };
    const end = { type: "message_stop" };
    const begin = start({ input_tokens: 3, output_tokens: 1 });
    const missing = "suspect: the upstream's output_tokens is missing beside the other counts";
    expect(faults(openMessagesMeter, begin, text, stop, end)).toEqual([missing]);
    expect(faults(openMessagesMeter, begin, text, end)).toEqual([missing]);
    // The output of a cut stream is estimated from its text, so no count is missing.
    expect(read(openMessagesMeter, events(begin, text)).faults).toBeUndefined();
    expect(faults(openMessagesMeter, begin, text, { ...stop, usage: { output_tokens: 9 } }, end)).toEqual([]);
  });

  test("a line is suspect if the usage came before the output's end, and did not come again", () => {
    const early = (name: string) => [
      `suspect: the upstream's ${name} did not come again when the output ended`,
    ];
    const candidate = { content: { parts: [{ text: "more" }] } };
    const usage = { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1 } };
    const end = { candidates: [{ ...candidate, finishReason: "STOP" }] };
    const provisional = { candidates: [candidate], ...usage };
    expect(faults(openContentMeter, provisional, end)).toEqual(early("usageMetadata"));
    expect(faults(openContentMeter, provisional, { ...end, ...usage })).toEqual([]);
    expect(faults(openContentMeter, end, usage)).toEqual([]);

    const counts = { usage: { prompt_tokens: 3, completion_tokens: 1 } };
    const stop = { choices: [{ delta: { content: "more" }, finish_reason: "stop" }] };
    const piece = { choices: [{ delta: { content: "some" } }], ...counts };
    expect(faults(openChatMeter, piece, stop)).toEqual(early("usage"));
    expect(faults(openChatMeter, piece, { ...stop, ...counts })).toEqual([]);
    expect(faults(openChatMeter, piece, stop, { choices: [], ...counts })).toEqual([]);

    const tokens = { usage: { input_tokens: 3, output_tokens: 1 } };
    const running = { type: "response.in_progress", response: { id: "r", ...tokens } };
    const done = { type: "response.completed", response: { id: "r" } };
    expect(faults(openResponsesMeter, running, done)).toEqual(early("usage"));
    expect(faults(openResponsesMeter, running, { ...done, response: { id: "r", ...tokens } })).toEqual([]);
    expect(faults(openResponsesMeter, running, { ...done, ...tokens })).toEqual([]);
  });

  test("ordinary usage has no faults, and neither have nulls in details", () => {
    const none = { input_tokens_details: null, output_tokens_details: { reasoning_tokens: null } };
    expect(response({ input_tokens: 2, output_tokens: 3, total_tokens: 5, ...none })).toEqual([]);
    expect(message({ input_tokens: 2, output_tokens: 3, cache_read_input_tokens: null })).toEqual([]);
    expect(
      read(openMessagesMeter, events(start({ input_tokens: 1, output_tokens: 1 }))).faults,
    ).toBeUndefined();
  });
});

describe("usage in the wrong place of a Responses answer is read if it can mean one thing only:", () => {
  const plain = { input_tokens: 24, output_tokens: 18 };
  const chatUsage = {
    prompt_tokens: 24,
    completion_tokens: 18,
    total_tokens: 42,
    prompt_tokens_details: { cached_tokens: 4 },
  };
  const inEvent = (event: object) =>
    read(openResponsesMeter, events({ type: "response.completed", ...event }));
  const inBody = (usage: object) => readBody(openResponsesMeter, { object: "response", usage });

  test("usage under the names of chat is read from a Responses answer", () => {
    const expected = [{ input: 20, cache_read: 4, output: 18 }];
    expect(usage(inEvent({ response: { usage: chatUsage } }))).toEqual(expected);
    expect(usage(inBody(chatUsage))).toEqual(expected);
    expect(inBody(chatUsage).faults).toBeUndefined();
  });

  test("usage next to the response is read as that of the response", () => {
    expect(usage(inEvent({ response: { id: "r" }, usage: plain }))).toEqual([{ input: 24, output: 18 }]);
    expect(usage(inEvent({ response: { usage: null }, usage: plain }))).toEqual([{ input: 24, output: 18 }]);
  });

  test("the response's own usage and the dialect's own names are preferred", () => {
    const other = { input_tokens: 1, output_tokens: 1 };
    expect(usage(inEvent({ response: { usage: plain }, usage: other }))).toEqual([{ input: 24, output: 18 }]);
    expect(usage(inBody({ ...plain, prompt_tokens: 1, completion_tokens: 1 }))).toEqual([
      { input: 24, output: 18 },
    ]);
  });

  test("usage in the wrong place is also read if its event is too long to keep in memory", () => {
    const long = { output: [{ type: "message", text: "x".repeat(100 * 1024) }] };
    expect(usage(inEvent({ response: long, usage: chatUsage }))).toEqual([
      { input: 20, cache_read: 4, output: 18 },
    ]);
  });
});

test.each(["\n", "\r\n", "\r"])("usage is read from a long event whose data lines end with %j", (end) => {
  const usage = { input_tokens: 5, output_tokens: 7 };
  const event = { type: "message_start", message: { model: "m", content: "x".repeat(70_000), usage } };
  const lines = JSON.stringify(event, null, 1).split("\n");
  const bytes = Buffer.from(lines.map((line) => `data: ${line}${end}`).join("") + end);
  for (const size of [bytes.length, 1000, 7]) {
    const meter = openMessagesMeter("text/event-stream");
    for (let at = 0; at < bytes.length; at += size) meter.see(bytes.subarray(at, at + size));
    expect(meter.read().parts[0]?.usage).toMatchObject({ input: 5 });
  }
});

describe("a meter finds the tools that an answer calls", () => {
  const block = (content_block: unknown) => ({ type: "content_block_start", index: 0, content_block });
  const item = (value: unknown) => ({ type: "response.output_item.done", item: value });
  const called = { type: "tool_use", id: "t1", name: "Read", input: {} };
  const chatCall = { index: 0, id: "c1", type: "function", function: { name: "Read", arguments: "" } };
  const names = ["Read", "mcp__git__log"];
  const parts = names.map((name) => ({ functionCall: { name, args: {} } }));
  const contentCalls = { candidates: [{ content: { parts } }] };
  // Of so many events of text, only samples are read. The call behind them must be found all the same.
  const text = Array.from({ length: 1000 }, () => ({ choices: [{ delta: { content: "x".repeat(50) } }] }));
  const plain = text.map(() => ({ candidates: [{ content: { parts: [{ text: "x".repeat(50) }] } }] }));

  test.each<[string, Open, string, readonly string[] | undefined]>([
    [
      "messages, a stream",
      openMessagesMeter,
      events(
        block(called),
        block({ type: "text", text: '"name"' }),
        block({ type: "server_tool_use", name: "web_search" }),
      ),
      ["Read", "web_search"],
    ],
    [
      "messages, a body",
      openMessagesMeter,
      JSON.stringify({ type: "message", content: [called, { ...called, name: "mcp__git__log" }, called] }),
      names,
    ],
    [
      "responses, a stream",
      openResponsesMeter,
      events(
        item({ type: "function_call", name: "Read", arguments: "{}" }),
        item({ type: "function_call", namespace: "mcp__git__", name: "log" }),
        item({ type: "web_search_call", action: { type: "search" } }),
        item({ type: "message", content: [] }),
      ),
      [...names, "web_search"],
    ],
    [
      "responses, a body",
      openResponsesMeter,
      JSON.stringify({
        object: "response",
        output: [
          { type: "custom_tool_call", namespace: "functions", name: "exec" },
          { type: "function_call", namespace: "mcp__git__", name: "log" },
        ],
      }),
      ["exec", "mcp__git__log"],
    ],
    [
      "chat, a stream",
      openChatMeter,
      events(
        ...text,
        { choices: [{ delta: { tool_calls: [chatCall] } }] },
        { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"name":"no"}' } }] } }] },
      ),
      ["Read"],
    ],
    [
      "chat, a body",
      openChatMeter,
      JSON.stringify({
        choices: [{ message: { tool_calls: [chatCall, { custom: { name: "mcp__git__log" } }] } }],
      }),
      names,
    ],
    ["content, a stream", openContentMeter, events(...plain, contentCalls), names],
    ["content, a body", openContentMeter, JSON.stringify(contentCalls), names],
    [
      "values that are not names",
      openMessagesMeter,
      events(block({ ...called, name: 7 }), block({ ...called, name: "" }), block(null)),
      undefined,
    ],
  ])("the tools that an answer calls are found: %s", (_, open, text, expected) => {
    const type = text.startsWith("{") ? "application/json" : "text/event-stream";
    expect(read(open, text, type).called).toEqual(expected);
    // Now the meter reads the same bytes one by one.
    const meter = open(type);
    for (const byte of new TextEncoder().encode(text)) meter.see(Uint8Array.of(byte));
    expect(meter.read().called).toEqual(expected);
  });

  test("the tools that an answer calls are counted up to a bound, with names of a bounded length", () => {
    const many = Array.from({ length: 1000 }, (_, index) => ({
      ...called,
      name: `${index} ${"x".repeat(1000)}`,
    }));
    const found = readBody(openMessagesMeter, { type: "message", content: many }).called ?? [];
    expect([found.length, Math.max(...found.map(({ length }) => length))]).toEqual([128, 128]);
  });
});
