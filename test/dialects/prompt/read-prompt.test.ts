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
import { PromptReader } from "../../../src/dialects/prompt/read-prompt.ts";

const reader = new PromptReader();
const read = (text: string, layout: Layout = MESSAGES_LAYOUT) => reader.read(Buffer.from(text), layout);
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
    const text = hashOf('"hello"');
    expect(hashOf('{"type":"text","text":"hello"}')).toBe(text);
    expect(hashOf(`{"type":"text","text":"hello",${MARK}}`)).toBe(text);
    expect(hashOf('{"type":"text","text":"hello","citations":[]}')).not.toBe(text);
  });
});

describe("no prompt is read", () => {
  test.each([
    ["of what is no JSON", "{"],
    ["of what is no object", "[1]"],
    ["without messages", '{"model":"m"}'],
    ["of messages that are there twice", '{"messages":["a"],"messages":["b"]}'],
    ["of a body that is cut", '{"messages":["a"'],
    ["with more parts than any model has room for", `{"messages":[${'"a",'.repeat(16_384)}"a"]}`],
  ])("%s", (_name, text) => {
    expect(read(text)).toBeNull();
  });
});
