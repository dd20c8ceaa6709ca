// Recorded Responses streams, as chat chunks.

import { describe, expect, test } from "bun:test";
import { OutputItem } from "../../../../src/bridges/responses-to-chat/response/events.ts";
import {
  addItemState,
  findItem,
  keepFinished,
  noteCall,
  openState,
} from "../../../../src/bridges/responses-to-chat/response/state.ts";
import type { BridgeContext } from "../../../../src/bridges/responses-to-chat/context.ts";
import { convertReply } from "../../../../src/bridges/responses-to-chat/response/completion.ts";
import { openChatStream } from "../../../../src/bridges/responses-to-chat/response/stream.ts";
import type { AnswerOutput } from "../../../../src/bridges/common/answer-stream.ts";
import { accumulate, type Json, listCalls } from "../accumulate.ts";
import {
  absent,
  contextOf,
  findRecording,
  hashText,
  listRecordings,
  PLAIN,
  readBytes,
  readEvents,
  readTerminal,
  type Recording,
} from "../recordings.ts";
import { findFaults, schemasAbsent } from "../schemas.ts";

const streams = listRecordings("openai-responses").filter((each) => each.stream && each.status === 200);

function run(pieces: Iterable<Uint8Array>, context: BridgeContext): AnswerOutput {
  const stream = openChatStream(context);
  let text = "";
  for (const piece of pieces) text += stream.push(piece).text;
  const last = stream.end();
  return { ...last, text: text + last.text };
}

function* cutEvery(bytes: Uint8Array, step: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}

/** The texts of the messages that count, from the response that ends the stream. */
function listTexts(response: Json | null): string[] {
  const messages: Json[] = (response?.["output"] ?? []).filter((item: Json) => item["type"] === "message");
  return messages.map((item) => item["content"].map((part: Json) => part["text"] ?? "").join(""));
}

function expectMatch(recording: Recording, completion: Json, response: Json | null): void {
  const { expect: expected } = recording;
  const context = contextOf(recording);
  const [{ message, finish_reason: finish }] = completion["choices"];
  const texts = listTexts(response);
  if (expected.delta_text_matches !== false) {
    expect(hashText(texts.join(""))).toBe(expected.text?.sha256 ?? "");
    const text = context.json ? (texts[0] ?? "") : texts.filter(Boolean).join("\n\n");
    expect(message.content ?? "").toBe(text);
  }
  expect(message.refusal).toBe(expected.refusal?.value ?? null);
  expect(listCalls(message)).toEqual(expected.tool_calls);
  expect(finish).toBe(context.forced ? "stop" : expected.expected_chat_finish_reason);
}

describe.skipIf(absent || schemasAbsent)("recorded streams", () => {
  const finished = streams.filter((each) => each.expect.expected_chat_finish_reason);
  const broken = streams.filter((each) => !each.expect.expected_chat_finish_reason);

  test("there are recordings of both kinds", () => {
    expect(finished.length).toBeGreaterThan(60);
    expect(broken.length).toBeGreaterThanOrEqual(5);
  });

  for (const recording of finished) {
    test(`${recording.id} has the expected text, calls and finish`, () => {
      const bytes = readBytes(recording);
      const response = readTerminal(bytes);
      const emitted = run([bytes], contextOf(recording));
      const { chunks, completion, error, done } = accumulate(emitted.text);
      expect(emitted.phase).toBe("done");
      expect(error).toBeNull();
      expect(done).toBe(true);
      for (const chunk of chunks) expect(findFaults("CreateChatCompletionStreamResponse", chunk)).toEqual([]);
      expectMatch(recording, completion, response);
      if (recording.expect.delta_text_matches !== false) expectSameAsWhole(completion, response, recording);
    });
  }

  /** A stream adds up to what the whole reply would have said. */
  function expectSameAsWhole(completion: Json, response: Json | null, recording: Recording): void {
    const whole: Json = JSON.parse(convertReply(response, contextOf(recording)).body);
    const { object, ...rest } = whole;
    expect(object).toBe("chat.completion");
    // Some upstreams name the response anew with each event: the stream keeps the first name.
    expect({ ...round(completion), id: "" }).toEqual({ ...round(rest), id: "" });
  }

  /** The upstream itself rounds the log probabilities that it repeats at the end. */
  function round(completion: Json): Json {
    const text = JSON.stringify(completion);
    return JSON.parse(
      text.replaceAll(/"logprob":([-\d.e]+)/g, (_, value) => `"logprob":${Number(value).toFixed(5)}`),
    );
  }

  for (const recording of streams) {
    test(`${recording.id} gives the same chunks however it is cut`, () => {
      const bytes = readBytes(recording);
      const context = contextOf(recording);
      const whole = run([bytes], context);
      expect(run(cutEvery(bytes, 1), context)).toEqual(whole);
      expect(run(cutEvery(bytes, 7), context)).toEqual(whole);
      expect(run(cutEvery(bytes, 1460), context)).toEqual(whole);
    });
  }

  for (const recording of broken) {
    test(`${recording.id} never looks finished`, () => {
      const { text, phase, refusal } = run([readBytes(recording)], contextOf(recording));
      expect(["broken", "refused"]).toContain(phase);
      expect(refusal?.status).toBeGreaterThanOrEqual(400);
      expect(text).not.toContain("[DONE]");
      expect(text).not.toMatch(/"finish_reason":"/);
      if (phase === "broken")
        expect(JSON.parse(refusal?.body ?? "")).toEqual({ error: accumulate(text).error });
      else expect(text).toBe("");
    });
  }

  test("a stream that ends early is an error at every byte before the end of its last event", () => {
    const bytes = readBytes(findRecording("openai-responses/vercel-ai--openai-custom-tool-1"));
    const text = new TextDecoder().decode(bytes);
    const complete = text.trimEnd().length;
    for (let length = 0; length < bytes.length; length += 1) {
      const { phase, text: reported } = run([bytes.subarray(0, length)], PLAIN);
      if (length >= complete) expect(phase).toBe("done");
      else {
        expect(["broken", "refused"]).toContain(phase);
        expect(reported).not.toContain("[DONE]");
        expect(reported).not.toMatch(/"finish_reason":"/);
      }
    }
  });

  test("CRLF line ends, comments and several data lines make no difference", () => {
    const bytes = readBytes(findRecording("openai-responses/vercel-ai--openai-custom-tool-1"));
    const text = new TextDecoder().decode(bytes);
    const whole = run([bytes], PLAIN).text;
    const encode = (changed: string) => new TextEncoder().encode(changed);
    expect(run(cutEvery(encode(text.replaceAll("\n", "\r\n")), 1), PLAIN).text).toBe(whole);
    expect(run([encode(text.replaceAll("event:", ": ping\n\nid: 1\nevent:"))], PLAIN).text).toBe(whole);
    expect(run([encode(text.replaceAll(/^event:.*\n/gm, ""))], PLAIN).text).toBe(whole);
    expect(run([encode(text.replaceAll('{"type"', '{\ndata: "type"'))], PLAIN).text).toBe(whole);
    expect(readEvents(encode(whole)).length).toBeGreaterThan(5);
  });
});

test("what an upstream invents has a bound: items, their ids and the ids of calls", () => {
  const stream = openState(PLAIN);
  const entry = addItemState(stream, { type: "message" }, "m".repeat(2000), null);
  for (let number = 0; number < 20_000; number += 1) {
    addItemState(stream, { type: "message" }, `msg_${number}`, number);
    noteCall(stream, `call_${number}`, entry);
    keepFinished(stream, OutputItem.parse({ id: `msg_${number}`, type: "message" }));
  }
  const { byId, byIndex, byCallId, finished } = stream;
  expect([byId.size, byIndex.size, byCallId.size, finished.length]).toEqual([10_000, 10_000, 10_000, 10_000]);
  expect(findItem(stream, "msg_19999", 0)).toBeDefined();
});
