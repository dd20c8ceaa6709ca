// Which parts of a request a prompt has, and requests of which none is read.

import { describe, expect, test } from "bun:test";
import {
  CHAT_LAYOUT,
  CONTENT_LAYOUT,
  type Layout,
  MESSAGES_LAYOUT,
  RESPONSES_LAYOUT,
} from "../../../src/dialects/prompt/layouts.ts";
import { findLastMark } from "../../../src/dialects/prompt/prompt.ts";
import { hashId } from "../../../src/dialects/prompt/read-prompt.ts";
import { readPrompt } from "../../harness/prompt.ts";

const read = (text: string, layout: Layout = MESSAGES_LAYOUT) => readPrompt(Buffer.from(text), layout);
const sizesOf = (text: string, layout: Layout): number[] | undefined =>
  read(text, layout)?.parts.map(({ length }) => length);

const MARK = '"cache_control":{"type":"ephemeral"}';

describe("the parts of a prompt", () => {
  test.each([
    [
      "messages",
      MESSAGES_LAYOUT,
      '{"tools":[{},{}],"system":"s","messages":[{"content":"a"},{"content":["b","c"]}]}',
      [2, 1, 3],
    ],
    [
      "responses",
      RESPONSES_LAYOUT,
      '{"tools":[{}],"instructions":"i","input":[{"role":"developer"},{"role":"user"}]}',
      [1, 2, 1],
    ],
    ["a text alone", RESPONSES_LAYOUT, '{"input":"hello"}', [0, 0, 1]],
    [
      "chat",
      CHAT_LAYOUT,
      '{"messages":[{"role":"system"},{"role":"user"},{"role":"system"}],"tools":[{}]}',
      [1, 1, 2],
    ],
    [
      "content",
      CONTENT_LAYOUT,
      '{"systemInstruction":{"parts":[]},"tools":[{"functionDeclarations":[{},{}]},{"googleSearch":{}}],"contents":[{}]}',
      [3, 1, 1],
    ],
    [
      "content in the other spelling",
      CONTENT_LAYOUT,
      '{"system_instruction":{},"tools":[{"function_declarations":[{}]}],"contents":[{}]}',
      [1, 1, 1],
    ],
  ] as const)("%s", (_name, layout, text, sizes) => {
    expect(sizesOf(text, layout)).toEqual([...sizes]);
  });

  test("the last mark is the last in the order of the cache, whatever the order of the body", () => {
    const body = `{"messages":[{"role":"user","content":[{"type":"text","text":"a",${MARK}}]}],"system":[{"type":"text","text":"s",${MARK}}]}`;
    expect(findLastMark(read(body)!)).toEqual({ section: 2, parts: 1, lifetimeMs: null });
    const tools = `{"tools":[{"name":"a",${MARK}},{"name":"b"}],"messages":["a"]}`;
    expect(findLastMark(read(tools)!)).toEqual({ section: 0, parts: 1, lifetimeMs: null });
    const all = '{"messages":["a","b"],"cache_control":{"type":"ephemeral","ttl":"1h"}}';
    expect(findLastMark(read(all)!)).toEqual({ section: 2, parts: 2, lifetimeMs: 3_600_000 });
  });

  test("a mark leaves no trace in the hash, wherever it stands in the block", () => {
    const hashOf = (block: string): number => read(`{"messages":[{"content":[${block}]}]}`)!.parts[2][0]!;
    const plain = hashOf('{"type":"image","source":{"a":1}}');
    for (const marked of [
      `{"type":"image","source":{"a":1},${MARK}}`,
      `{"type":"image",${MARK},"source":{"a":1}}`,
      `{${MARK},"type":"image","source":{"a":1}}`,
      '{"type":"image","source":{"a":1},"cache_control":null}',
    ])
      expect(hashOf(marked)).toBe(plain);
    expect(hashOf('{"type":"image","source":{"a":2}}')).not.toBe(plain);
    const spaced = hashOf('{"type": "image", "source": {"a": 1}}');
    for (const marked of [
      '{"type": "image", "source": {"a": 1}, "cache_control": {"type": "ephemeral"}}',
      '{"type": "image", "cache_control": {"type": "ephemeral"}, "source": {"a": 1}}',
      '{"cache_control": {"type": "ephemeral"}, "type": "image", "source": {"a": 1}}',
    ])
      expect(hashOf(marked)).toBe(spaced);
    const text = hashOf('"hello"');
    expect(hashOf('{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}')).toBe(text);
    expect(hashOf('{ "cache_control": null, "text": "hello", "type": "text" }')).toBe(text);
    expect(hashOf('{"type":"text","text":"hello"}')).toBe(text);
    expect(hashOf(`{"type":"text","text":"hello",${MARK}}`)).toBe(text);
    expect(hashOf('{"type":"text","text":"hello","citations":[]}')).not.toBe(text);
  });
});

test("a thread that continues names the message before it, and a new one does not", () => {
  const continues = (thread: string): number | null | undefined =>
    read(`{"thread":${thread},"messages":["a"]}`)?.continues;
  expect(continues('{"type":"continue","previous_message_id":"msg_1"}')).toBe(hashId("msg_1"));
  expect([continues('{"type":"create"}'), continues("null"), continues("1")]).toEqual([null, null, null]);
});

describe("the limits of a prompt", () => {
  test("10,240 parts are read", () => {
    expect(sizesOf(`{"messages":[${'"a",'.repeat(10_239)}"a"]}`, MESSAGES_LAYOUT)).toEqual([0, 0, 10_240]);
  });

  test("of a long system prompt, or one in many parts, the shape of the beginning is read", () => {
    const shapesOf = (parts: readonly string[]): readonly number[] =>
      read(JSON.stringify({ system: parts, messages: ["a"] }))!.shapes;
    const many = (digit: number): string[] => Array.from({ length: 100 }, (_, at) => `${at} ${digit}`);
    const [one, two] = [shapesOf(many(1)), shapesOf(many(2))];
    expect(one.findIndex((shape, at) => shape !== two[at])).toBe(64);
    const long = "x".repeat(65_536);
    const [a, b] = [shapesOf([long, "at 1"]), shapesOf([long, "at 2"])];
    expect([a[0] === b[0], a[1] === b[1]]).toEqual([true, false]);
  });

  test("of many system messages, the first 64 are the system prompt", () => {
    const list = `{"role":"system","content":"a"},`.repeat(100);
    expect(sizesOf(`{"messages":[${list}{"role":"user"}]}`, CHAT_LAYOUT)).toEqual([0, 64, 37]);
  });
});

describe("no prompt is read", () => {
  test.each([
    ["of what is no JSON", "{"],
    ["of what is no object", "[1]"],
    ["without messages", '{"model":"m"}'],
    ["of a body that is cut", '{"messages":["a"'],
    ["with too many parts", `{"messages":[${'"a",'.repeat(10_240)}"a"]}`],
    ["with a part above 8 MB", `{"messages":["${"a".repeat(8 * 1024 * 1024)}"]}`],
    ["with too many marks", `{"messages":[{"content":[${`{${MARK}},`.repeat(256)}{${MARK}}]}]}`],
  ])("%s", (_name, text) => {
    expect(read(text)).toBeNull();
  });
});
