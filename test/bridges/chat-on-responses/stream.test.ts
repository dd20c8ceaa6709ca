// Recorded Responses streams, as chat chunks.

import type { Wanted } from "./direction.ts";
import { PLAIN, convertReply, openChatStream } from "./direction.ts";
import { describe, expect, test } from "bun:test";
import type { AnswerOutput } from "../../../src/bridges/answer-stream.ts";
import { accumulate, type Json, listCalls } from "./accumulate.ts";
import {
  absent,
  contextOf,
  findRecording,
  hashText,
  listRecordings,
  readBytes,
  readTerminal,
  type Recording,
} from "./recordings.ts";
import { findFaults, schemasAbsent } from "./schemas.ts";

const streams = listRecordings("openai-responses").filter((each) => each.stream && each.status === 200);

function run(pieces: Iterable<Uint8Array>, context: Wanted): AnswerOutput {
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
    // It seals the same thought anew, too.
    const text = JSON.stringify(completion, (name, value) =>
      name === "reasoning_details" ? undefined : value,
    );
    return JSON.parse(
      text.replaceAll(/"logprob":([-\d.e]+)/g, (_, value) => `"logprob":${Number(value).toFixed(5)}`),
    );
  }

  for (const recording of streams) {
    test(`${recording.id} adds up to the same however it is cut`, () => {
      const bytes = readBytes(recording);
      const context = contextOf(recording);
      const play = (pieces: Iterable<Uint8Array>): unknown => {
        const { text, ...end } = run(pieces, context);
        const { completion, error } = accumulate(text);
        return { ...end, completion, error };
      };
      const whole = play([bytes]);
      for (const size of [1, 7, 1460]) expect(play(cutEvery(bytes, size))).toEqual(whole);
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
    const play = (pieces: Iterable<Uint8Array>): Json => accumulate(run(pieces, PLAIN).text).completion;
    const whole = play([bytes]);
    const encode = (changed: string) => new TextEncoder().encode(changed);
    expect(play(cutEvery(encode(text.replaceAll("\n", "\r\n")), 1))).toEqual(whole);
    expect(play([encode(text.replaceAll("event:", ": ping\n\nid: 1\nevent:"))])).toEqual(whole);
    expect(play([encode(text.replaceAll(/^event:.*\n/gm, ""))])).toEqual(whole);
    expect(play([encode(text.replaceAll('{"type"', '{\ndata: "type"'))])).toEqual(whole);
  });
});
