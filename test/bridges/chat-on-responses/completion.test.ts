// Recorded whole Responses replies, as chat completions.

import { PLAIN, convertReply, openChatStream } from "./direction.ts";
import { describe, expect, test } from "bun:test";
import { accumulate, type Json, listCalls } from "./accumulate.ts";
import {
  absent,
  contextOf,
  findRecording,
  hashText,
  listRecordings,
  pairs,
  readBytes,
  readEvents,
  type Recording,
} from "./recordings.ts";
import { findFaults, schemasAbsent } from "./schemas.ts";

const replies = listRecordings("openai-responses").filter((each) => !each.stream && each.status === 200);

function readJson(recording: Recording): Json {
  return JSON.parse(new TextDecoder().decode(readBytes(recording)));
}

/** Compactions and token counts are no replies; a background response is not done yet. */
function isReply(recording: Recording): boolean {
  const { object, status } = readJson(recording);
  return object === "response" && status !== "queued";
}

function convert(recording: Recording): { status: number; body: Json } {
  const { status, body } = convertReply(readJson(recording), contextOf(recording));
  return { status, body: JSON.parse(body) };
}

function expectMatch(recording: Recording, { choices: [choice] }: Json): void {
  const { expect: expected } = recording;
  const { message, finish_reason: finish } = choice;
  expectText(recording, message.content ?? "");
  expect(message.refusal).toBe(expected.refusal?.value ?? null);
  expect(listCalls(message)).toEqual(expected.tool_calls);
  expect(finish).toBe(
    contextOf(recording).forced ? "stop" : (expected.expected_chat_finish_reason ?? "stop"),
  );
}

/** The manifest's text is that of all messages without a gap. */
function expectText(recording: Recording, text: string): void {
  const { items, text: expected } = recording.expect;
  const several = (items ?? []).filter((item) => item === "message").length > 1;
  if (several && contextOf(recording).json) expect(text.length * 2).toBe(expected?.len ?? 0);
  else expect(hashText(several ? text.replace("\n\n", "") : text)).toBe(expected?.sha256 ?? "");
}

describe.skipIf(absent || schemasAbsent)("recorded replies", () => {
  for (const recording of replies.filter(isReply)) {
    test(`${recording.id} has the expected text, calls, finish and usage`, () => {
      const { status, body } = convert(recording);
      expect(status).toBe(200);
      expect(findFaults("CreateChatCompletionResponse", body)).toEqual([]);
      expectMatch(recording, body);
      expectUsage(body["usage"], recording.expect.usage_final);
    });
  }

  function expectUsage(usage: Json, upstream: Json | null): void {
    expect(usage).toMatchObject({
      prompt_tokens: upstream?.["input_tokens"],
      completion_tokens: upstream?.["output_tokens"],
      total_tokens: upstream?.["total_tokens"],
      prompt_tokens_details: { cached_tokens: upstream?.["input_tokens_details"]?.cached_tokens ?? 0 },
      completion_tokens_details: {
        reasoning_tokens: upstream?.["output_tokens_details"]?.reasoning_tokens ?? 0,
      },
    });
  }

  test("a response that is not finished is an error", () => {
    const queued = replies.filter((each) => readJson(each)["status"] === "queued");
    expect(queued.length).toBeGreaterThan(0);
    for (const recording of queued) {
      const { status, body } = convert(recording);
      expect(status).toBe(502);
      expect(body["error"].type).toBe("server_error");
    }
  });
});

describe.skipIf(absent)("pairs of the same prompt at both endpoints", () => {
  /** What native completions have and have not, by model and time. */
  const OPTIONAL = new Set([
    "logprobs",
    "obfuscation",
    "service_tier",
    "annotations",
    "reasoning_content",
    "reasoning_details",
  ]);
  const AZURE = new Set(["content_filter_results", "prompt_filter_results"]);

  /** A value's keys and types. Where either side may be null or empty, that says nothing. */
  function describeShape(value: unknown): unknown {
    if (Array.isArray(value)) return value.slice(0, 1).map(describeShape);
    if (typeof value !== "object") return typeof value;
    if (value === null) return "null";
    const entries = Object.entries(value)
      .filter(([name]) => !OPTIONAL.has(name) && !AZURE.has(name))
      .toSorted(([a], [b]) => a.localeCompare(b));
    return Object.fromEntries(
      entries.map(([name, each]) => [name, NULLABLE.has(name) ? "nullable" : describeShape(each)]),
    );
  }
  const NULLABLE = new Set(["content", "refusal", "system_fingerprint", "usage", "finish_reason"]);

  function convertAny(recording: Recording): Json {
    if (!recording.stream) return convert(recording).body;
    return accumulateStream(recording).completion;
  }

  function accumulateStream(recording: Recording) {
    const stream = openChatStream(contextOf(recording));
    return accumulate(stream.push(readBytes(recording)).text + stream.end().text);
  }

  function readChat(recording: Recording): Json {
    if (!recording.stream) return readJson(recording);
    return accumulate(new TextDecoder().decode(readBytes(recording))).completion;
  }

  for (const pair of pairs) {
    const chat = findRecording(pair.chat);
    const responses = findRecording(pair.responses);

    test(`${pair.pair}: ${pair.chat} has the shape and finish of the converted one`, () => {
      const native = readChat(chat);
      if (chat.status !== 200 || responses.status !== 200) return;
      const converted = convertAny(responses);
      const [ours] = converted["choices"];
      const [theirs] = native["choices"];
      if (Boolean(ours.message.tool_calls) === Boolean(theirs.message.tool_calls)) {
        expect(describeShape(ours)).toEqual(describeShape(theirs));
        expect(ours.finish_reason).toBe(theirs.finish_reason);
      }
      expect(describeShape({ ...converted, choices: [] })).toEqual(describeShape({ ...native, choices: [] }));
    });
  }

  test("every chunk has the shape of a native chunk", () => {
    const natives = listRecordings("openai-chat").filter(
      (each) => each.native && each.stream && each.status === 200,
    );
    const known = new Set(natives.flatMap((each) => listShapes(readEvents(readBytes(each)))));
    const streamed = pairs.map((pair) => findRecording(pair.responses)).filter((each) => each.stream);
    expect(streamed.length).toBeGreaterThan(10);
    for (const recording of streamed) {
      const foreign = listShapes(accumulateStream(recording).chunks).filter((shape) => !known.has(shape));
      expect({ id: recording.id, foreign }).toEqual({ id: recording.id, foreign: [] });
    }
  });

  function listShapes(chunks: unknown[]): string[] {
    return chunks.map((chunk) => JSON.stringify(describeShape(chunk)));
  }
});

test("a zero usage passes unchanged", () => {
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  const reply = { id: "resp_1", created_at: 1.5, model: "m", status: "completed", output: [], usage };
  const { body } = convertReply(reply, PLAIN);
  expect(JSON.parse(body)).toMatchObject({
    created: 1,
    usage: { total_tokens: 0 },
    choices: [{ message: { content: "" } }],
  });
});
