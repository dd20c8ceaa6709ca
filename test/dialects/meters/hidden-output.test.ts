// An upstream's counts may leave out some output, wherever it is in the answer. The usage of such an answer
// must be doubted, because limits would not count the missing output.

import { describe, expect, test } from "bun:test";
import { assess } from "../../../src/billing/assess.ts";
import type { Meter } from "../../../src/billing/usage.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";
import { openResponsesMeter } from "../../../src/dialects/meters/responses.ts";

type Open = (contentType: string) => Meter;

const TEXT = "word ".repeat(2000);

type Outcome = "complete" | "upstream_cut" | "upstream_error";

function judge(open: Open, events: readonly unknown[], outcome: Outcome = "complete") {
  const meter = open("text/event-stream");
  for (const event of events) {
    const data = typeof event === "string" ? event : JSON.stringify(event);
    meter.see(Buffer.from(`data: ${data}\n\n`));
  }
  return judgeReading(meter, outcome);
}

function judgeBody(open: Open, body: unknown) {
  const meter = open("application/json");
  meter.see(Buffer.from(JSON.stringify(body)));
  return judgeReading(meter);
}

function judgeReading(meter: Meter, outcome: Outcome = "complete") {
  const reading = meter.read();
  const { basis, suspect, lacksOutput, estimated, unbilled } = assess({
    outcome: reading.end === "error" ? "upstream_error" : outcome,
    status: 200,
    reading,
    streamed: true,
    estimatedInput: 70,
  });
  return { basis, suspect, lacksOutput: lacksOutput === true, estimated, unbilled };
}

const DOUBTED = { basis: "exact", suspect: expect.any(String), lacksOutput: true };
const NO_DOUBT = { basis: "exact", suspect: null, lacksOutput: false, unbilled: undefined };

describe("the usage of a messages answer is doubted if output is missing from its counts", () => {
  const start = { type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } };
  const begin = (content_block: object) => ({ type: "content_block_start", index: 0, content_block });
  const block = begin({ type: "text", text: "" });
  const delta = (text: string) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text },
  });
  const compaction = { ...delta(""), delta: { type: "compaction_delta", content: TEXT } };
  const report = (output_tokens: number, stop_reason: string | null = "end_turn") => ({
    type: "message_delta",
    delta: { stop_reason },
    usage: { output_tokens },
  });
  const stop = { type: "message_stop" };

  test.each<[string, unknown[]]>([
    ["a report before its text", [start, report(1, null), block, delta(TEXT), stop]],
    ["a last report before its text", [start, report(1), block, delta(TEXT), stop]],
    ["a call without deltas", [start, begin({ type: "tool_use", name: "f", input: {} }), report(0), stop]],
    ["text in the start of a block", [start, begin({ type: "text", text: TEXT }), report(0), stop]],
    ["a compaction", [start, begin({ type: "compaction", content: null }), compaction, report(0), stop]],
    ["far fewer tokens than text", [start, block, delta(TEXT), report(30), stop]],
    ["text after the end", [start, block, delta("Hi"), report(1), stop, delta(TEXT)]],
  ])("a messages answer with %s has doubtful usage", (_name, events) => {
    expect(judge(openMessagesMeter, events)).toMatchObject(DOUBTED);
  });

  test("if code at the upstream calls a tool, the call costs no output tokens, and the line is exact", () => {
    const content = [
      { type: "tool_use", name: "f", input: { a: TEXT }, caller: { type: "code_execution_20250825" } },
    ];
    const usage = { input_tokens: 0, output_tokens: 0 };
    const whole = { type: "message_start", message: { content, usage, stop_reason: "tool_use" } };
    expect(judge(openMessagesMeter, [whole, stop])).toMatchObject(NO_DOUBT);
  });

  test("the output of a stream that was cut is estimated if text came after the reported usage", () => {
    const events = [start, report(1, null), block, delta(TEXT)];
    expect(judge(openMessagesMeter, events, "upstream_cut")).toMatchObject({
      basis: "partial",
      estimated: ["output"],
    });
    // This answer had ended before the cut.
    expect(judge(openMessagesMeter, [start, block, delta("Hi"), report(1)], "upstream_cut")).toMatchObject(
      NO_DOUBT,
    );
  });

  test.each([
    [
      "a tool call of the server",
      { type: "message", content: [{ type: "server_tool_use", name: "s", input: {} }] },
    ],
    ["content next to an error", { error: { message: "no" }, content: [{ type: "text", text: TEXT }] }],
  ])("0 output tokens are too few for a messages body with %s", (_name, body) => {
    const usage = { input_tokens: 10, output_tokens: 0 };
    expect(judgeBody(openMessagesMeter, { ...body, usage })).toMatchObject({ lacksOutput: true });
  });

  test("if the model refuses after some text, the tokens are charged", () => {
    const refusal = {
      type: "message_delta",
      delta: { stop_reason: "refusal", stop_details: { category: "cyber" } },
    };
    const usage = { output_tokens: 5 };
    const shown = judge(openMessagesMeter, [start, delta("Well"), { ...refusal, usage }, stop]);
    expect(shown).toMatchObject(NO_DOUBT);
  });
});

describe("the usage of a Responses answer is doubted if output is missing from its counts", () => {
  const usage = { input_tokens: 10, output_tokens: 0, total_tokens: 10 };
  const done = (response: object = {}) => ({
    type: "response.completed",
    response: { id: "r", usage, ...response },
  });
  const item = (of: object) => ({ type: "response.output_item.done", output_index: 0, item: of });
  const alone = (of: object) => [item(of), done()];
  const part = { type: "output_text", text: TEXT };
  const message = { type: "message", content: [part] };

  test.each<[string, unknown[]]>([
    ["no deltas", alone(message)],
    ["its text in the last event alone", [done({ output: [message] })]],
    ["a call without arguments", alone({ type: "function_call", call_id: "c", name: "f", arguments: "" })],
    [
      "a call of the local shell",
      alone({ type: "local_shell_call", call_id: "c", action: { type: "exec", command: ["ls"] } }),
    ],
    ["a patch", alone({ type: "apply_patch_call", operation: { type: "create_file", diff: TEXT } })],
    ["a command", alone({ type: "shell_call", action: { commands: [TEXT] } })],
    ["the computer's actions", alone({ type: "computer_call", actions: [{ type: "type", text: TEXT }] })],
    ["code", alone({ type: "code_interpreter_call", code: TEXT })],
    ["nothing but the end of its text", [{ type: "response.output_text.done", text: TEXT }, done()]],
    ["nothing but the end of a part", [{ type: "response.content_part.done", part }, done()]],
    [
      "nothing but the end of a call's arguments",
      [{ type: "response.function_call_arguments.done", arguments: TEXT }, done()],
    ],
    ["text in the start of an item", [{ type: "response.output_item.added", item: message }, done()]],
    ["a summary of its thoughts", alone({ type: "reasoning", summary: [{ text: "Hm" }] })],
  ])("a Responses answer with %s has doubtful usage", (_name, events) => {
    expect(judge(openResponsesMeter, events)).toMatchObject(DOUBTED);
  });

  test("text after the end of a Responses answer makes its usage doubtful", () => {
    const counts = { input_tokens: 10, output_tokens: 1, total_tokens: 11 };
    const late = { type: "response.output_text.delta", delta: TEXT };
    expect(judge(openResponsesMeter, [done({ usage: counts }), late])).toMatchObject(DOUBTED);
  });

  test("text that a Responses answer repeats is counted once", () => {
    const delta = { type: "response.output_text.delta", delta: TEXT };
    const ends = [
      { type: "response.output_text.done", text: TEXT },
      { type: "response.content_part.done", part },
      item(message),
      done({ output: [message] }),
    ];
    for (const events of [[delta, ...ends], ends, ends.slice(1), ends.slice(2), ends.slice(3)]) {
      const meter = openResponsesMeter("text/event-stream");
      for (const event of events) meter.see(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
      expect(meter.read().estimatedOutput).toBe(TEXT.length / 4);
    }
  });

  test("the output of a Responses answer with sound is estimated from the transcript", () => {
    const sound = { type: "response.audio.delta", delta: "A".repeat(400_000) };
    const words = { type: "response.audio.transcript.delta", delta: "Hello" };
    const counts = { input_tokens: 10, output_tokens: 500, total_tokens: 510 };
    expect(judge(openResponsesMeter, [sound, words, done({ usage: counts })])).toMatchObject(NO_DOUBT);
  });

  test("a Responses answer that failed after an item has doubtful usage", () => {
    const failed = { type: "response.failed", response: { id: "r", status: "failed" } };
    expect(judge(openResponsesMeter, [item(message), failed], "upstream_error")).toMatchObject(DOUBTED);
  });

  test("a Responses body with output next to an error has doubtful usage", () => {
    expect(judgeBody(openResponsesMeter, { error: { message: "no" }, output: [message] })).toMatchObject(
      DOUBTED,
    );
  });
});

describe("the usage of a content answer is doubted if output is missing from its counts", () => {
  const chunk = (parts: readonly object[], usageMetadata?: object, finishReason?: string) => ({
    candidates: [{ content: { parts }, ...(finishReason === undefined ? {} : { finishReason }) }],
    ...(usageMetadata === undefined ? {} : { usageMetadata }),
  });
  const prompt = { promptTokenCount: 10 };
  const thought = { ...prompt, thoughtsTokenCount: 5 };

  test.each<[string, unknown[]]>([
    ["text, but only thoughts counted", [chunk([{ text: "Hi" }]), chunk([], thought, "STOP")]],
    ["a call without arguments", [chunk([{ functionCall: { name: "f" } }], prompt, "STOP")]],
    [
      "a call whose arguments come piece by piece",
      [
        chunk(
          [{ functionCall: { name: "f", partialArgs: [{ jsonPath: "$.a", stringValue: TEXT }] } }],
          { ...prompt, candidatesTokenCount: 5 },
          "STOP",
        ),
      ],
    ],
    ["a picture", [chunk([{ inlineData: { mimeType: "image/png", data: "AAAA" } }], prompt, "STOP")]],
    [
      "text after its end",
      [chunk([], { ...prompt, candidatesTokenCount: 1 }, "STOP"), chunk([{ text: TEXT }])],
    ],
  ])("a content answer with %s has doubtful usage", (_name, events) => {
    expect(judge(openContentMeter, events)).toMatchObject(DOUBTED);
  });

  test("the usage of a content answer with thoughts alone is exact", () => {
    const events = [chunk([{ text: "Hm", thought: true }]), chunk([], thought, "STOP")];
    expect(judge(openContentMeter, events)).toMatchObject(NO_DOUBT);
  });
});

describe("the usage of a chat answer is doubted if output is missing from its counts", () => {
  const counts = { usage: { prompt_tokens: 10, completion_tokens: 0 } };
  const piece = (delta: object) => ({ choices: [{ delta }] });
  const stop = { choices: [{ delta: {}, finish_reason: "stop" }], ...counts };

  test.each<[string, object]>([
    ["a list as its content", { content: [{ type: "text", text: "Hi" }] }],
    ["a call without arguments", { tool_calls: [{ id: "c", function: { name: "f", arguments: "" } }] }],
  ])("a chat answer with %s has doubtful usage", (_name, delta) => {
    expect(judge(openChatMeter, [piece(delta), stop, "[DONE]"])).toMatchObject(DOUBTED);
  });

  test("a chat answer without usage is estimated: some servers report none", () => {
    expect(judge(openChatMeter, [piece({ content: TEXT }), "[DONE]"])).toMatchObject({
      basis: "partial",
      estimated: ["input", "output"],
      suspect: null,
    });
  });

  test("usage that a chat answer reports before its finish reason is doubtful, even in JSON with spaces", () => {
    const meter = openChatMeter("text/event-stream");
    const filler = `data: ${JSON.stringify(piece({ content: TEXT.slice(0, 1000) }))}\n\n`;
    const usage = { prompt_tokens: 10, completion_tokens: 10_000 };
    meter.see(Buffer.from(filler.repeat(40)));
    meter.see(Buffer.from(`data: {"usage": ${JSON.stringify(usage)}, "choices": []}\n\n`));
    meter.see(
      Buffer.from(`${filler}data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n`.repeat(9)),
    );
    expect(judgeReading(meter)).toMatchObject(DOUBTED);
  });
});

test.each<[string, Open, unknown]>([
  [
    "messages",
    openMessagesMeter,
    { type: "message", content: [], usage: { input_tokens: 0, output_tokens: 9 } },
  ],
  [
    "responses",
    openResponsesMeter,
    { object: "response", output: [], usage: { input_tokens: 0, output_tokens: 9, total_tokens: 9 } },
  ],
  ["chat", openChatMeter, { choices: [], usage: { prompt_tokens: 0, completion_tokens: 9 } }],
  ["content", openContentMeter, { usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 9 } }],
])("a prompt of zero tokens is doubted: %s", (_name, open, body) => {
  expect(judgeBody(open, body)).toMatchObject(DOUBTED);
});
