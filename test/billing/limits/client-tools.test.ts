import { describe, expect, test } from "bun:test";

import { readTools } from "../../../src/billing/limits/client-tools.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { chat } from "../../../src/dialects/formats/chat.ts";
import { content } from "../../../src/dialects/formats/content.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { responses } from "../../../src/dialects/formats/responses.ts";

function findHosted(body: string, { clientTools }: Dialect): string | null {
  return readTools(Buffer.from(body), clientTools).hosted;
}

const list = (tools: string): string => `{"tools":[${tools}]}`;
const typed = (type: string): string => `{"type":${JSON.stringify(type)},"name":"x"}`;

describe("tools that run at the client", () => {
  test.each<[Dialect, string]>([
    [messages, '{"name":"x","input_schema":{"type":"object"}}'],
    [messages, '{"type":null,"name":"x","input_schema":{}}'],
    [messages, '{"type":"custom","name":"web_search","input_schema":{}}'],
    [messages, typed("bash_20250124")],
    [messages, typed("text_editor_20250728")],
    [messages, typed("computer_20251124")],
    [messages, typed("memory_20250818")],
    [messages, '{"name":"x","input_schema":{"properties":{"googleSearch":{},"type":"web_search"}}}'],
    [chat, '{"type":"function","function":{"name":"web_search"}}'],
    [chat, '{"type":"custom","custom":{"name":"x"}}'],
    [responses, '{"type":"function","name":"x","parameters":{}}'],
    [responses, typed("custom")],
    [responses, typed("local_shell")],
    [responses, typed("apply_patch")],
    [responses, typed("computer")],
    [responses, '{"type":"computer_use_preview","environment":"browser"}'],
    [responses, '{"type":"shell","environment":{"type":"local","skills":[]}}'],
    [responses, '{"type":"tool_search","execution":"client"}'],
    [responses, '{"type":"namespace","name":"x","tools":[{"type":"function"},{"type":"custom"}]}'],
    [content, '{"functionDeclarations":[{"name":"googleSearch"}]}'],
    [content, '{"function_declarations":[]}'],
    [content, "{}"],
  ])("are known (%#)", (dialect, tool) => {
    expect(findHosted(list(tool), dialect)).toBeNull();
    expect(findHosted(`{"tools":${tool}}`, dialect)).toBeNull();
    expect(findHosted(list(`${tool} , ${tool}`), dialect)).toBeNull();
  });

  test.each(["[]", "null", "[ ]"])("are none in %s", (tools) => {
    expect(findHosted(`{"tools":${tools}}`, responses)).toBeNull();
  });
});

describe("a tool that may run at the provider", () => {
  const strange = "a tool of an unknown form";
  test.each<[string, Dialect, string, string]>([
    ["a type that came later", messages, typed("brand_new_hosted_20270101"), "brand_new_hosted_20270101"],
    ["a later version of a search", messages, typed("web_search_20270101"), "web_search_20270101"],
    ["a name that only begins like the client's", messages, typed("bash_20250124x"), "bash_20250124x"],
    ["a type with escapes", messages, '{"ty\\u0070e":"web\\u005ffetch"}', "web_fetch"],
    ["a toolset", messages, typed("mcp_toolset"), "mcp_toolset"],
    ["a type of another dialect", messages, typed("function"), "function"],
    ["a type of relays", chat, typed("builtin_function"), "builtin_function"],
    [
      "a shell at the provider",
      responses,
      '{"type":"shell","environment":{"type":"container_auto"}}',
      "shell",
    ],
    ["a shell that does not say where", responses, '{"type":"shell"}', "shell"],
    ["a shell with no place", responses, '{"type":"shell","environment":null}', "shell"],
    [
      "a shell with two places",
      responses,
      '{"type":"shell","environment":{"type":"local","type":"x"}}',
      "shell",
    ],
    [
      "a shell whose place is in another field",
      responses,
      '{"type":"shell","execution":"local","environment":{"type":"container_auto"}}',
      "shell",
    ],
    ["a search of tools", responses, '{"type":"tool_search"}', "tool_search"],
    [
      "a search of tools at the provider",
      responses,
      '{"type":"tool_search","execution":"server"}',
      "tool_search",
    ],
    ["a group", responses, '{"type":"namespace","tools":[{"type":"web_search"}]}', "web_search"],
    ["a group in a group", responses, '{"type":"namespace","tools":[{"type":"namespace"}]}', "namespace"],
    ["a search of Gemini's", content, '{"googleSearch":{}}', "googleSearch"],
    ["one next to functions", content, '{"functionDeclarations":[],"urlContext":{}}', "urlContext"],
    ["functions in another spelling", content, '{"FunctionDeclarations":[]}', "FunctionDeclarations"],
    ["Gemini's computer, which adds functions", content, '{"computerUse":{}}', "computerUse"],
  ])("is %s", (_, dialect, tool, name) => {
    expect(findHosted(list(tool), dialect)).toBe(`the tool "${name}"`);
    expect(findHosted(list(`{"type":"custom","functionDeclarations":[]},${tool}`), dialect)).not.toBeNull();
    expect(findHosted(`{"tools":${tool}}`, dialect)).toBe(`the tool "${name}"`);
  });

  test.each<[string, Dialect, string, string]>([
    ["two types", messages, '{"type":"custom","type":"web_search"}', strange],
    ["a type in two spellings", messages, '{"type":"custom","Type":"web_search"}', strange],
    ["a type that is no text", messages, '{"type":{"a":1}}', strange],
    ["no type and no schema", messages, '{"googleSearch":{}}', "a tool without a type"],
    ["no type", responses, '{"name":"x"}', "a tool without a type"],
    ["no object", messages, '"web_search"', strange],
    ["null", messages, "null", strange],
    ["a comma at the end", messages, '{"name":"x","input_schema":{}},', strange],
    ["no object for Gemini", content, "1", strange],
  ])("is anything with %s", (_, dialect, tool, name) => {
    expect(findHosted(list(tool), dialect)).toBe(name);
  });

  test("is found in each of two lists", () => {
    expect(findHosted('{"tools":[],"tools":[{"type":"x_search"}]}', responses)).toBe('the tool "x_search"');
  });

  test("is named without control characters and in few words", () => {
    const hosted = findHosted(list(typed(`a\u001b[2J\u202e${"b".repeat(1e6)}`)), messages);
    expect(hosted).toStartWith('the tool "a\\u001b[2J\\u202ebbb');
    expect(hosted?.length).toBeLessThan(120);
  });
});

test("items of a conversation that bring in tools are known if all of those run at the client", () => {
  const read = (type: string, tool: string) => {
    const item = `{"type":"${type}","role":"developer","tools":[{"type":"function"},${tool}]}`;
    const { hosted, hasTools, parts } = readTools(Buffer.from(`{"input":[${item}]}`), responses.clientTools);
    return { hosted, hasTools, parts: parts.length };
  };
  for (const type of ["additional_tools", "tool_search_output"]) {
    expect(read(type, '{"type":"custom"}')).toEqual({ hosted: null, hasTools: true, parts: 2 });
    const hosted = 'the tool "web_search"';
    expect(read(type, '{"type":"web_search"}')).toEqual({ hosted, hasTools: true, parts: 0 });
  }
  expect(read("mcp_list_tools", "{}")).toEqual({ hosted: null, hasTools: false, parts: 0 });
});

test("reading ends at any depth and any number of tools", () => {
  const depth = 20_000;
  const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const nested = `${'{"content":['.repeat(depth)}${"]}".repeat(depth)}`;
  const groups = `${'{"type":"namespace","tools":['.repeat(depth)}${"]}".repeat(depth)}`;
  expect(findHosted(list(deep), responses)).toBe("a tool of an unknown form");
  expect(findHosted(list(groups), responses)).toBe('the tool "namespace"');
  expect(findHosted(`{"messages":[${nested},${deep}],"tools":[${typed("custom")}]}`, messages)).toBeNull();
  const many = `${typed("custom")},`.repeat(depth);
  expect(findHosted(list(`${many}${typed("x_search")}`), responses)).toBe('the tool "x_search"');
});
