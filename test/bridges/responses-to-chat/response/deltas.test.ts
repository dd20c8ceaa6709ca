// Where the upstream's bytes are cut changes nothing: whole chunks and single bytes give the same chat chunks.

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { convertRequest } from "../../../../src/bridges/responses-to-chat/request/request.ts";
import { openChatStream } from "../../../../src/bridges/responses-to-chat/response/stream.ts";
import type { Json } from "../accumulate.ts";
import { ASKED } from "../recordings.ts";

const REQUEST = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }], stream: true };

function frame(event: Json): string {
  return `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`;
}

const BEGINNING =
  frame({
    type: "response.created",
    response: { id: "resp_1", created_at: 1, model: "gpt-5-mini", status: "in_progress", output: [] },
  }) +
  frame({
    type: "response.output_item.added",
    output_index: 0,
    item: { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] },
  });

function shuffle(
  members: Readonly<Record<string, unknown>>,
  order: readonly number[],
): Record<string, unknown> {
  const entries = Object.entries(members).map((entry, index) => ({ entry, at: order[index] ?? 0 }));
  return Object.fromEntries(entries.toSorted((a, b) => a.at - b.at).map(({ entry }) => entry));
}

/** Texts that look like parts of events themselves. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    '","delta":"',
    '{"delta":"x"}',
    "\n\n",
    "\\",
    '"',
    'event: x\ndata: {"delta":"y"}\n\n',
    "é\u{1F600}",
  ),
);

const delta = fc
  .record({
    text,
    item: fc.constantFrom("msg_1", "msg_1", "msg_1", "msg_11", "msg_2"),
    index: fc.constantFrom(0, 0, 0, 1, 10),
    number: fc.nat(2000),
    padding: fc.oneof(
      fc.constant({}),
      text.map((obfuscation) => ({ obfuscation })),
    ),
    extra: fc.constantFrom({}, {}, { logprobs: [] }, { note: { delta: "no text of the answer" } }),
    order: fc.oneof(fc.constant([]), fc.array(fc.nat(100), { minLength: 7, maxLength: 7 })),
  })
  .map(({ text: said, item, index, number, padding, extra, order }) => ({
    type: "response.output_text.delta",
    ...shuffle(
      {
        item_id: item,
        output_index: index,
        content_index: 0,
        delta: said,
        sequence_number: number,
        ...padding,
        ...extra,
      },
      order,
    ),
  }));

function convert(chunks: readonly Uint8Array[]): string {
  const { context } = convertRequest(Buffer.from(JSON.stringify(REQUEST)), ASKED);
  const stream = openChatStream(context);
  return chunks.map((chunk) => stream.push(chunk).text).join("");
}

test("the order of the members of a delta makes no difference, however many come at once", () => {
  fc.assert(
    fc.property(fc.array(delta, { minLength: 2, maxLength: 12 }), fc.nat(), (deltas, cut) => {
      const bytes = Buffer.from(BEGINNING + deltas.map((event) => frame(event)).join(""));
      const place = cut % bytes.length;
      const byteByByte = convert(Array.from(bytes, (byte) => Buffer.of(byte)));
      expect(convert([bytes])).toBe(byteByByte);
      expect(convert([bytes.subarray(0, place), bytes.subarray(place)])).toBe(byteByByte);
    }),
    { numRuns: 300 },
  );
});

/** The same event as another server may write it. */
const framing = fc.constantFrom<(event: Json) => string>(
  frame,
  frame,
  (event) => frame(event).replaceAll("\n", "\r\n"),
  (event) => frame(event).replaceAll(": ", ":"),
  (event) => `data: ${JSON.stringify(event)}\n\n`,
  (event) => `: hello\n\n${frame(event)}`,
  (event) => `id: 7\n${frame(event)}`,
  (event) =>
    `data: ${JSON.stringify(event, null, 1).replaceAll("\n", "\ndata: ")}\nevent: ${event["type"]}\n\n`,
);

test("the framing of deltas makes no difference, also with calls and thoughts between them", () => {
  const other = fc.constantFrom<Json>(
    { type: "response.refusal.delta", item_id: "msg_1", output_index: 0, delta: "No." },
    {
      type: "response.reasoning_text.delta",
      item_id: "rs_1",
      output_index: 1,
      delta: "Hm.",
      content_index: 0,
    },
    { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 2, delta: "{" },
    { type: "response.output_item.added", output_index: 0, item: { type: "message", content: [] } },
    {
      type: "response.output_item.added",
      output_index: 2,
      item: { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "" },
    },
  );
  const reported = fc.array(fc.tuple(fc.oneof(delta, delta, other), framing), {
    minLength: 2,
    maxLength: 12,
  });
  fc.assert(
    fc.property(reported, fc.boolean(), fc.nat(), (events, mark, cut) => {
      const text = BEGINNING + events.map(([event, write]) => write(event)).join("");
      const bytes = Buffer.from(mark ? `\uFEFF${text}` : text);
      const place = cut % bytes.length;
      const byteByByte = convert(Array.from(bytes, (byte) => Buffer.of(byte)));
      expect(convert([bytes])).toBe(byteByByte);
      expect(convert([bytes.subarray(0, place), bytes.subarray(place)])).toBe(byteByByte);
    }),
    { numRuns: 300 },
  );
});

test("damaged bytes are converted in the same way", () => {
  const damage = fc.record({
    at: fc.nat(),
    byte: fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('"\\\n{}u8'))),
  });
  fc.assert(
    fc.property(fc.array(delta, { minLength: 2, maxLength: 6 }), damage, (deltas, { at, byte }) => {
      const bytes = Buffer.from(BEGINNING + deltas.map((event) => frame(event)).join(""));
      bytes[BEGINNING.length + (at % (bytes.length - BEGINNING.length))] = byte;
      expect(convert([bytes])).toBe(convert(Array.from(bytes, (each) => Buffer.of(each))));
    }),
    { numRuns: 300 },
  );
});

test("without ids, a new item with the index of an old one gets the deltas", () => {
  const added = frame({
    type: "response.output_item.added",
    output_index: 0,
    item: { type: "message", role: "assistant", content: [] },
  });
  const says = (said: string): string =>
    frame({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: said });
  const bytes = Buffer.from(added + says("one") + says("two") + added + says("three") + says("four"));
  const reported = convert([bytes]);
  expect(reported).toContain(String.raw`{"content":"\n\nthree"}`);
  expect(reported).toBe(convert(Array.from(bytes, (byte) => Buffer.of(byte))));
});
