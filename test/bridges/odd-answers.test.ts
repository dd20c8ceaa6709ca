// Converts real servers' odd answers for clients of the other dialects: members that are missing, doubled, in
// another place, or in the server's own words.

import { describe, expect, test } from "bun:test";
import { type Any, BASES, convert, openStream, type Setting, sse, stream, textOf, whole } from "./calls.ts";

const ask = (direction: string, more: Any = {}, setting: Setting = {}) =>
  convert(direction, { ...BASES[direction.split(">")[0] ?? ""], stream: true, ...more }, setting);

const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const chunk = (delta: Any, finish_reason: unknown = null, more: Any = {}): Any => ({
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
const stopOf = ({ events }: { events: Any[] }): unknown =>
  events.find(({ type }) => type === "message_delta")?.delta.stop_reason;

const HUGE = "12345678901234567890";
const withHuge = (value: unknown): string => JSON.stringify(value).replaceAll('"HUGE"', HUGE);

describe("a number that a double cannot hold keeps its digits in the input of a call", () => {
  const CALLS: Any = {
    chat: {
      choices: [
        {
          index: 0,
          finish_reason: "tool_calls",
          message: {
            tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"id":HUGE}' } }],
          },
        },
      ],
      usage: USAGE,
    },
    messages: {
      type: "message",
      content: [{ type: "tool_use", id: "c", name: "f", input: { id: "HUGE" } }],
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    content: {
      candidates: [
        { content: { parts: [{ functionCall: { name: "f", args: { id: "HUGE" } } }] }, finishReason: "STOP" },
      ],
    },
  };

  test.each([
    ["messages", "chat"],
    ["messages", "content"],
    ["content", "chat"],
    ["content", "messages"],
    ["responses", "messages"],
    ["chat", "content"],
  ])("a large number reaches a %s client of a %s channel, streamed or not", (client, upstream) => {
    const text = withHuge(CALLS[upstream]).replaceAll("HUGE", HUGE);
    const { conversion } = ask(`${client}>${upstream}`);
    const body = conversion.convertReply(Buffer.from(text), () => ({}));
    expect(body.body).toContain(HUGE);
    const open = openStream(ask(`${client}>${upstream}`).conversion);
    const streamed = textOf(open.push(Buffer.from(`data: ${text}\n\n`))) + textOf(open.end());
    expect(streamed).toContain(HUGE);
  });

  test.each(["messages", "content"])("a large number in a history reaches a %s channel", (upstream) => {
    const messages = [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: `{"id":${HUGE}}` } }],
      },
      { role: "tool", tool_call_id: "c", content: "ok" },
    ];
    expect(ask(`chat>${upstream}`, { messages }).text).toContain(HUGE);
  });
});

describe("the input of a call is an object for messages and content", () => {
  const ODD: readonly (readonly [string, Any])[] = [
    [JSON.stringify('{"id":HUGE}'), { id: "HUGE" }],
    ["[1]", {}],
    ["7", {}],
    ["null", {}],
    ['"words"', {}],
    [' {"id":HUGE}', { id: "HUGE" }],
  ];
  const rows = ODD.flatMap(([written, read]) =>
    ["messages", "content"].flatMap((other) =>
      ["chat", "responses"].map((own) => [written, other, own, read]),
    ),
  );

  test.each(rows)("input %s becomes an object for a %s client (%s channel)", (written, client, own, read) => {
    const call = { name: "f", arguments: written.replace("HUGE", HUGE) };
    const output = [{ type: "function_call", id: "fc", call_id: "c", ...call }];
    const message = { role: "assistant", tool_calls: [{ id: "c", type: "function", function: call }] };
    const events =
      own === "chat"
        ? [
            chunk({ tool_calls: [{ index: 0, ...message.tool_calls[0] }] }),
            chunk({}, "tool_calls", { usage: USAGE }),
          ]
        : [
            { type: "response.output_item.done", output_index: 0, item: output[0] },
            { type: "response.completed", response: { status: "completed", output } },
          ];
    const one =
      own === "chat"
        ? { choices: [{ index: 0, message, finish_reason: "tool_calls" }] }
        : { status: "completed", output };
    const input = withHuge(read);
    const { conversion } = ask(`${client}>${own}`);
    const body = conversion.convertReply(Buffer.from(JSON.stringify(one)), () => ({})).body;
    expect(body).toContain(`"${client === "messages" ? "input" : "args"}":${input}`);
    const streamed = stream(ask(`${client}>${own}`), [
      sse([...events, ...(own === "chat" ? ["[DONE]"] : [])]),
    ]);
    const whole = client === "messages" ? `"partial_json":${JSON.stringify(input)}` : `"args":${input}`;
    expect(streamed.text.replace('"partial_json":" ', '"partial_json":"')).toContain(whole);
  });

  test.each(rows)("input %s is an object for a %s channel (%s client)", (written, channel, own, read) => {
    const call = { name: "f", arguments: written.replace("HUGE", HUGE) };
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", tool_calls: [{ id: "c", type: "function", function: call }] },
      { role: "tool", tool_call_id: "c", content: "ok" },
    ];
    const input = [
      { role: "user", content: "Hi" },
      { type: "function_call", call_id: "c", ...call },
      { type: "function_call_output", call_id: "c", output: "ok" },
    ];
    const { text } = ask(`${own}>${channel}`, own === "chat" ? { messages } : { input });
    expect(text).toContain(`"${channel === "messages" ? "input" : "args"}":${withHuge(read)}`);
  });
});

describe("a call of a responses channel is complete even if no delta came", () => {
  const place = { output_index: 0, item_id: "fc" };
  const added = (item: Any): Any => ({ type: "response.output_item.added", output_index: 0, item });
  const done = { type: "response.completed", response: { status: "completed", output: [] } };

  test("a call of a responses channel gets its arguments from `function_call_arguments.done` if no delta came", () => {
    const events = [
      added({ type: "function_call", id: "fc", call_id: "c", name: "f", arguments: "" }),
      { type: "response.function_call_arguments.done", ...place, arguments: '{"a":1}' },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { type: "function_call", id: "fc", call_id: "c", name: "f" },
      },
      done,
    ];
    expect(stream(ask("messages>responses"), [sse(events)]).text).toContain(String.raw`{\"a\":1}`);
  });
});

describe("an answer without a finish reason is complete only if all of it came", () => {
  test.each([null, "", undefined])(
    "an answer without a finish reason is complete if it was not streamed (%j)",
    (finish_reason) => {
      const message = { role: "assistant", content: "4" };
      const { status, body } = whole(ask("messages>chat"), {
        choices: [{ index: 0, message, finish_reason }],
        usage: USAGE,
      });
      expect([status, body.stop_reason, body.content[0].text]).toEqual([200, "end_turn", "4"]);
    },
  );

  test("an answer without a finish reason is complete if its stream ends with usage and [DONE]", () => {
    const events = [chunk({ content: "4" }), chunk({}, "", { usage: USAGE }), "[DONE]"];
    const answer = stream(ask("messages>chat"), [sse(events)]);
    expect([answer.phase, stopOf(answer)]).toEqual(["done", "end_turn"]);
  });

  test.each([
    ["without usage", [chunk({ content: "4" }), "[DONE]"]],
    ["without [DONE]", [chunk({ content: "4" }), chunk({}, null, { usage: USAGE })]],
  ])("a stream %s is a failure if no finish reason came", (_name, events) => {
    expect(stream(ask("messages>chat"), [sse(events)]).phase).toBe("broken");
  });
});

test("an empty call next to a text is left out", () => {
  const message = { role: "assistant", content: "4", function_call: { name: "", arguments: "" } };
  const { body } = whole(ask("messages>chat"), {
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: USAGE,
  });
  expect([body.content.length, body.stop_reason]).toEqual([1, "end_turn"]);
});

test.each([
  ["model_length", "model_context_window_exceeded"],
  ["eos_token", "end_turn"],
  ["stop_sequence", "stop_sequence"],
  ["sensitive", "refusal"],
])("a chat server's finish reason %s is %s for a messages client", (word, seen) => {
  const answer = stream(ask("messages>chat"), [
    sse([chunk({ content: "a" }), chunk({}, word, { usage: USAGE }), "[DONE]"]),
  ]);
  expect(stopOf(answer)).toBe(seen);
});

test("Mistral's thinking parts are thoughts for a messages client", () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
    { type: "text", text: "4" },
  ];
  const { body } = whole(ask("messages>chat"), {
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: USAGE,
  });
  expect(body.content).toEqual([
    { type: "thinking", thinking: "hm", signature: "" },
    { type: "text", text: "4" },
  ]);
});

describe("a chat stream without [DONE] is over after its finish reason", () => {
  const open = () => openStream(ask("messages>chat").conversion);

  test("a chat stream with a finish reason but without [DONE] is over when its usage has come", () => {
    const usage = { object: "chat.completion.chunk", choices: [], usage: USAGE };
    const { phase } = open().push(Buffer.from(sse([chunk({ content: "a" }), chunk({}, "stop"), usage])));
    expect(phase).toBe("done");
  });

  test("a chat stream with a finish reason but without [DONE] is over when nothing more comes", () => {
    const answer = open();
    expect(answer.push(Buffer.from(sse([chunk({ content: "a" }), chunk({}, "stop")]))).phase).toBe("open");
    expect(answer.idle().phase).toBe("done");
  });

  test("a chat stream without a finish reason and without [DONE] stays open when nothing more comes", () => {
    const answer = open();
    answer.push(Buffer.from(sse([chunk({ content: "a" })])));
    expect(answer.idle().phase).toBe("open");
  });
});

test("Gemini's searches reach Claude Code as web searches of Claude, with their sources and number", () => {
  const groundingMetadata = {
    webSearchQueries: ["bun", "zig"],
    groundingChunks: [{ web: { uri: "https://bun.sh", title: "Bun" } }],
  };
  const answer = {
    candidates: [{ content: { parts: [{ text: "Fast." }] }, finishReason: "STOP", groundingMetadata }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  const tools = [{ type: "web_search_20250305", name: "web_search" }];
  const { body } = whole(ask("messages>content", { tools, stream: false }), answer);
  const found = body.content.filter(({ type }: Any) => type === "web_search_tool_result");
  expect(
    body.content.filter(({ type }: Any) => type === "server_tool_use").map(({ input }: Any) => input.query),
  ).toEqual(["bun", "zig"]);
  expect(found.at(-1).content).toMatchObject([{ url: "https://bun.sh", title: "Bun" }]);
  expect(body.usage.server_tool_use.web_search_requests).toBe(2);
});

test("a signature after a text adds nothing to the thoughts that a chat client reads", () => {
  const parts = [
    { text: "hm", thought: true },
    { text: "Hi" },
    { functionCall: { name: "f", args: {} }, thoughtSignature: "s" },
  ];
  const { text } = stream(ask("chat>content"), [
    sse([{ candidates: [{ content: { parts }, finishReason: "STOP" }] }]),
  ]);
  const thoughts = [...text.matchAll(/"reasoning_content":"([^"]*)"/g)].map(([, thought]) => thought);
  expect(thoughts).toEqual(["hm"]);
});

describe("a filtered answer is incomplete for its client", () => {
  const cut = [
    { type: "message_start", message: { content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "Ha" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "refusal" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];

  test("a filtered answer is incomplete for a responses client", () => {
    const { events } = stream(ask("responses>messages"), [sse(cut)]);
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "content_filter" } },
    });
  });
});

test.each([
  ["apply_patch", "*** Begin"],
  ["note", "```\\n*** Begin\\n```"],
])("the input of the custom tool %s is %j if the model puts the input into a code fence", (name, input) => {
  const tools = [{ type: "custom", name }];
  const args = JSON.stringify({ input: "```\n*** Begin\n```" });
  const message = { tool_calls: [{ id: "c", type: "function", function: { name, arguments: args } }] };
  const { body } = whole(ask("responses>chat", { tools }), {
    choices: [{ index: 0, message, finish_reason: "tool_calls" }],
    usage: USAGE,
  });
  expect(body.output[0].input).toBe(input.replaceAll("\\n", "\n"));
});

test.each([
  [500, 500],
  [503, 503],
  [422, 422],
])("a content client gets the upstream's error status %i, and %i as the code in the body", (status, code) => {
  const { conversion } = ask("content>chat");
  const answer = conversion.convertError(status, Buffer.from('{"error":{"message":"No."}}'));
  expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code]);
});

test("an error in a stream keeps its kind for a responses client", () => {
  const events = [
    chunk({ content: "a" }),
    { error: { code: 400, message: "Wrong.", type: "invalid_request_error" } },
  ];
  const { events: seen } = stream(ask("responses>chat"), [sse(events)]);
  expect(seen.at(-1).response.error.code).toBe("invalid_prompt");
});

describe("an upstream's value that cannot become a string does not stop a conversion", () => {
  const ITEM = { type: "message", id: "m", content: [] };

  test.each(["HUGE", { toString: 1 }])("a conversion goes on even if index and status are %j", (odd) => {
    const place = { output_index: odd, content_index: odd };
    const events = [
      { type: "response.output_item.added", output_index: odd, item: ITEM },
      { type: "response.output_text.delta", ...place, item_id: "m", delta: "Hi" },
      { type: "response.reasoning_text.delta", ...place, item_id: "r", delta: "So" },
      { type: "response.completed", response: { status: odd, output: [ITEM] } },
    ];
    const chunks = events.map((event) => `data: ${withHuge(event)}\n\n`);
    const { text } = stream(ask("chat>responses"), chunks);
    expect(text).toContain('"content":"Hi"');
    expect(text).toContain("The upstream's response is ");
  });
});

test("an incomplete response without a reason has the finish reason `length` for a chat client", () => {
  const content = [{ type: "output_text", text: "Hi" }];
  const response = { status: "incomplete", incomplete_details: null, output: [{ type: "message", content }] };
  const { status, body } = whole(ask("chat>responses", { stream: false }), response);
  expect([status, body.choices[0]]).toMatchObject([
    200,
    { message: { content: "Hi" }, finish_reason: "length" },
  ]);
});
