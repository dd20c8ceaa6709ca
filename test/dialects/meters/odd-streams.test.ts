// Streams of an unusual form: their text counts, too, because limits depend on the estimate.

import { describe, expect, test } from "bun:test";
import type { Meter, Reading } from "../../../src/billing/usage.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";

type Open = (contentType: string) => Meter;
type Write = (text: string) => string;

const writeMessages: Write = (text) =>
  `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })}\n\n`;
const writeChat: Write = (text) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`;

const DIALECTS: readonly [string, Open, Write][] = [
  ["messages", openMessagesMeter, writeMessages],
  ["chat", openChatMeter, writeChat],
];

const WHOLE = Number.MAX_SAFE_INTEGER;

function read(open: Open, text: string, pieceBytes = WHOLE): Reading {
  const meter = open("text/event-stream");
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) meter.see(bytes.subarray(at, at + pieceBytes));
  return meter.read();
}

describe.each(DIALECTS)("the estimate of the output in %s", (_dialect, open, write) => {
  test.each([33_000, 40_000, 63_000, 70_000, 300_000])("%d bytes of an event's text are counted", (bytes) => {
    for (const pieceBytes of [WHOLE, 16_384, 1000]) {
      const reading = read(open, write("x".repeat(bytes)), pieceBytes);
      expect(reading.hasText).toBe(true);
      expect(reading.estimatedOutput).toBe(Math.round(bytes / 4));
    }
  });

  test("the estimate counts a short event between two long events", () => {
    const long = write("x".repeat(40_000));
    const { estimatedOutput } = read(open, long + write("y".repeat(4000)) + long);
    expect(estimatedOutput).toBeGreaterThan(20_000);
    expect(estimatedOutput).toBeLessThan(22_000);
  });

  test.each([100, 30_000, 117_000])("%d bytes of text in a cut event are counted", (bytes) => {
    const text = write("x".repeat(bytes + 50));
    const cut = text.slice(0, text.indexOf("xxx") + bytes);
    for (const pieceBytes of [WHOLE, 16_384, 1000]) {
      const meter = open("text/event-stream");
      const whole = new TextEncoder().encode(cut);
      for (let at = 0; at < whole.length; at += pieceBytes) meter.see(whole.subarray(at, at + pieceBytes));
      const reading = meter.read();
      expect(reading.hasText).toBe(true);
      expect(reading.estimatedOutput).toBe(bytes / 4);
      // Nothing counts twice if the meter is read again, or if the end of the event comes later.
      expect(meter.read()).toEqual(reading);
      meter.see(new TextEncoder().encode(text.slice(cut.length)));
      expect(meter.read().estimatedOutput).toBe(Math.round((bytes + 50) / 4));
    }
  });

  test("the estimate counts the last event even without a blank line after it", () => {
    const text = write("x".repeat(1000)).trimEnd();
    expect(read(open, text).estimatedOutput).toBe(250);
    expect(read(open, `${text}\n`).estimatedOutput).toBe(250);
  });

  test("the estimate is zero for an event that was cut before its text began", () => {
    const text = write("x");
    for (let end = 0; end <= text.lastIndexOf('"x') + 1; end += 1) {
      const reading = read(open, text.slice(0, end));
      expect([reading.hasText, reading.estimatedOutput]).toEqual([false, 0]);
    }
  });

  test.each([10_000, 33_000, 500_000])("after %d bytes of pings, text is counted", (bytes) => {
    const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
    const pings = ping.repeat(Math.ceil(bytes / ping.length));
    const text = write("Some words. ".repeat(5)).repeat(3300);
    for (const pieceBytes of [WHOLE, 16_384, 1000, 100]) {
      expect(read(open, pings, pieceBytes).hasText).toBe(false);
      const { estimatedOutput } = read(open, pings + text, pieceBytes);
      expect(estimatedOutput).toBeGreaterThan(45_000);
      expect(estimatedOutput).toBeLessThan(55_000);
    }
  });

  test("the estimate counts an event over several data lines", () => {
    const split = write("x".repeat(1000)).replaceAll(/([{,])"/g, '$1\r\nid: 1\r\ndata: "');
    expect(split.split("data:").length).toBeGreaterThan(4);
    for (const pieceBytes of [WHOLE, 100]) expect(read(open, split, pieceBytes).estimatedOutput).toBe(250);
    expect(read(open, split.repeat(20)).estimatedOutput).toBe(5000);
  });
});

test("the usage next to a picture of 40 MB is read", () => {
  const inlineData = { mimeType: "image/png", data: "aB3+/9".repeat(7_000_000) };
  const candidates = [{ content: { parts: [{ inlineData }] }, finishReason: "STOP" }];
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 1290, totalTokenCount: 1297 };
  const picture = `data: ${JSON.stringify({ candidates, usageMetadata })}\r\n\r\n`;
  const { parts } = read(openContentMeter, picture + picture, 65_536);
  expect(parts).toMatchObject([{ usage: { input: 7, output: 1290 } }]);
});

const TEXTS = ["a few words", "", 'a "quote"', "a\\tab", "a\ttab", "été 🙂", "\u0085", '"}}\n\nevent: x'];
test.each(TEXTS)("the text %j has the same estimate, however its event is written", (text) => {
  const usual = writeMessages(text);
  const count = (event: string): Reading => read(openMessagesMeter, event.repeat(40));
  const parsed = count(usual.replace('{"type"', '{ "type"'));
  expect([count(usual), count(usual.replace("}}\n", "}   }\n"))]).toEqual([parsed, parsed]);
});

describe("a JSON body that is labelled as a stream of events is metered", () => {
  const body = JSON.stringify({
    type: "message",
    model: "m",
    content: [{ type: "text", text: "x".repeat(4000) }],
    usage: { input_tokens: 10, output_tokens: 900 },
  });

  test("a JSON body labelled as a stream is read as a body, in whatever pieces it comes", () => {
    for (const pieceBytes of [WHOLE, 100, 1]) {
      const reading = read(openMessagesMeter, body, pieceBytes);
      expect(reading.parts.map(({ usage }) => usage)).toEqual([{ input: 10, output: 900 }]);
      expect([reading.end, reading.final, reading.hasText]).toEqual(["complete", true, true]);
      expect(reading.estimatedOutput).toBeGreaterThanOrEqual(1000);
    }
  });

  test("a JSON body labelled as a stream is not complete if it was cut off", () => {
    const reading = read(openMessagesMeter, body.slice(0, 3000), 100);
    expect([reading.end, reading.final]).toEqual(["open", false]);
    expect(reading.estimatedOutput).toBeGreaterThan(400);
  });

  test("a JSON error labelled as a stream is a failure, and the events after it are read", () => {
    const error = JSON.stringify({ error: { message: "overloaded" } }, null, 2);
    expect(read(openChatMeter, error).end).toBe("error");
    expect(read(openChatMeter, `${error}\n\ndata: [DONE]\n\n`).end).toBe("error");
    const usage = { prompt_tokens: 3, completion_tokens: 4 };
    const events = `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
    const { parts } = read(openChatMeter, `${error}\n\n${events}`);
    expect(parts.map((part) => part.usage)).toEqual([{ input: 3, output: 4 }]);
  });

  test("a JSON body labelled as a stream is not the end of the answer if events follow", () => {
    const start = {
      type: "message_start",
      message: { model: "m", usage: { input_tokens: 1, output_tokens: 1 } },
    };
    const events = `{}\n\ndata: ${JSON.stringify(start)}\n\n${writeMessages("Hello")}`;
    expect(read(openMessagesMeter, events)).toMatchObject({ end: "open", final: false });
    expect(read(openMessagesMeter, `${events}data: {"type":"message_stop"}\n\n`)).toMatchObject({
      end: "complete",
      final: true,
    });
  });
});
