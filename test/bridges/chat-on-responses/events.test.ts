// Converts streams of hand-made events: cases that no recording has, and upstreams that misbehave.

import { PLAIN, convertReply, openChatStream } from "./direction.ts";
import { describe, expect, test } from "bun:test";
import type { AnswerOutput } from "../../../src/bridges/answer-stream.ts";
import { accumulate, type Json } from "./accumulate.ts";
import { findFaults, schemasAbsent } from "./schemas.ts";
import { textOf } from "../calls.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const frame = (event: Json): string => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`;

const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 100.9,
  model: "m-1",
  status: "in_progress",
  service_tier: "auto",
};
const USAGE = {
  input_tokens: 10,
  output_tokens: 5,
  total_tokens: 15,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens_details: { reasoning_tokens: 3 },
};
const created = { type: "response.created", response: { ...RESPONSE, output: [] } };

function end(output: Json[], more: Json = {}): Json {
  const status = more["status"] ?? "completed";
  const response = { ...RESPONSE, service_tier: "default", usage: USAGE, output, ...more, status };
  return { type: status === "incomplete" ? "response.incomplete" : "response.completed", response };
}

const words = (...deltas: string[]) => ({ deltas });
type Said = { deltas: string[] };

/** Writes the events with which an item comes: added, deltas, done. */
function stream(item: Json, index: number, { deltas }: Said, type: string, more: Json = {}): Json[] {
  const place = { output_index: index, item_id: item["id"] };
  const empty = {
    ...item,
    content: [],
    summary: [],
    ...("arguments" in item ? { arguments: "" } : {}),
    ...("input" in item ? { input: "" } : {}),
  };
  return [
    { type: "response.output_item.added", output_index: index, item: empty },
    ...deltas.map((delta) => ({ type, ...place, delta, ...more })),
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function message(id: string, text: string, more: Json = {}): Json {
  return {
    type: "message",
    id,
    role: "assistant",
    content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
    ...more,
  };
}
function call(id: string, name: string, input: string): Json {
  return { type: "function_call", id: `fc_${id}`, call_id: id, name, arguments: input };
}
const TEXT = "response.output_text.delta";
const ARGUMENTS = "response.function_call_arguments.delta";

function run(events: Json[], context = PLAIN): Pick<AnswerOutput, "phase" | "refusal"> & { text: string } {
  const chat = openChatStream(context);
  const first = chat.push(encode(events.map(frame).join("")));
  const last = chat.end();
  return { ...last, text: textOf(first) + textOf(last) };
}

/** Returns the completion that a stream adds up to, which must equal the conversion of the whole reply. */
function complete(events: Json[], context = PLAIN): Json {
  const { text, phase } = run(events, context);
  expect(phase).toBe("done");
  const { chunks, completion } = accumulate(text);
  if (!schemasAbsent) {
    for (const chunk of chunks) expect(findFaults("CreateChatCompletionStreamResponse", chunk)).toEqual([]);
  }
  const { object: _, ...whole } = JSON.parse(convertReply(events.at(-1)?.["response"], context).body);
  expect(completion).toEqual(whole);
  return completion;
}

describe("a chat client gets what Chat Completions can hold of a Responses answer", () => {
  test("a chat client gets text, full usage and the service tier", () => {
    const item = message("a", "Hello you");
    const completion = complete([created, ...stream(item, 0, words("Hello", "", " you"), TEXT), end([item])]);
    expect(completion).toMatchObject({
      id: "chatcmpl-1",
      created: 100,
      model: "m-1",
      service_tier: "default",
    });
    expect(completion["usage"]).toEqual({
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0, cache_write_tokens: 2 },
      completion_tokens_details: {
        reasoning_tokens: 3,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    });
  });

  test("a chat client gets usage only if it asked for it, but then also after an empty answer", () => {
    const { text } = run([created, end([])], { ...PLAIN, includeUsage: false });
    expect(text).not.toContain("usage");
    const { chunks, completion } = accumulate(run([created, end([])]).text);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 15 } });
    expect(completion["choices"][0]).toMatchObject({ message: { content: "" }, finish_reason: "stop" });
  });

  test("a chat client gets parallel calls of functions and custom tools with `call_id` as the id", () => {
    const first = call("call_a", "f", '{"a":1}');
    const second = {
      type: "custom_tool_call",
      id: "ct_1",
      call_id: "call_b",
      name: "sql",
      input: "SELECT 1",
    };
    const events = [
      created,
      ...stream(first, 0, words('{"a"', ":1}"), ARGUMENTS),
      ...stream(second, 1, words("SELECT ", "1"), "response.custom_tool_call_input.delta"),
      end([first, second]),
    ];
    const [choice] = complete(events)["choices"];
    expect(choice.finish_reason).toBe("tool_calls");
    expect(choice.message.content).toBeNull();
    expect(choice.message.tool_calls).toEqual([
      { id: "call_a", type: "function", function: { name: "f", arguments: '{"a":1}' } },
      { id: "call_b", type: "custom", custom: { name: "sql", input: "SELECT 1" } },
    ]);
    expect(complete(events, { ...PLAIN, forced: true })["choices"][0].finish_reason).toBe("stop");
  });

  test("a chat client with the legacy `functions` gets the first call only", () => {
    const [first, second] = [call("a", "f", "{}"), call("b", "g", "{}")];
    const events = [
      created,
      ...stream(first, 0, words("{}"), ARGUMENTS),
      ...stream(second, 1, words("{}"), ARGUMENTS),
      end([first, second]),
    ];
    const [choice] = complete(events, { ...PLAIN, legacy: true })["choices"];
    expect(choice.message).toEqual({
      role: "assistant",
      content: null,
      function_call: { name: "f", arguments: "{}" },
      refusal: null,
      annotations: [],
    });
    expect(choice.finish_reason).toBe("function_call");
    expect(complete(events, { ...PLAIN, legacy: true, forced: true })["choices"][0].finish_reason).toBe(
      "stop",
    );
  });

  const [one, two] = [message("a", "One."), message("b", "Two.")];
  const both = [
    created,
    ...stream(one, 0, words("One."), TEXT),
    ...stream(two, 1, words("Tw", "o."), TEXT),
    end([one, two]),
  ];

  test("a chat client gets several messages joined into one", () => {
    expect(complete(both)["choices"][0].message.content).toBe("One.\n\nTwo.");
    const content = [{ type: "refusal", refusal: "No." }, ...message("b", "Two.")["content"]];
    const refusing = { ...message("b", "Two."), content };
    const [added, ...shown] = stream(refusing, 1, words("Two."), TEXT);
    const refused = { type: "response.refusal.delta", output_index: 1, item_id: "b", delta: "No." };
    const events = [created, ...stream(one, 0, words("One."), TEXT), added ?? {}, refused, ...shown];
    expect(complete([...events, end([one, refusing])])["choices"][0].message).toMatchObject({
      content: "One.\n\nTwo.",
      refusal: "No.",
    });
  });

  test("a chat client gets only the first message if it asked for JSON", () => {
    expect(complete(both, { ...PLAIN, json: true })["choices"][0].message.content).toBe("One.");
  });

  test("a chat client gets no commentary if it asked for JSON", () => {
    const aside = message("a", "Let me see.", { phase: "commentary" });
    const events = [
      created,
      ...stream(aside, 0, words("Let me see."), TEXT),
      ...stream(two, 1, words("Two."), TEXT),
      end([aside, two]),
    ];
    expect(complete(events, { ...PLAIN, json: true })["choices"][0].message.content).toBe("Two.");
    expect(complete(events)["choices"][0].message.content).toBe("Let me see.\n\nTwo.");
  });

  test("a chat client gets all parts of the reasoning, with an empty line between two parts", () => {
    const thought = {
      type: "reasoning",
      id: "r",
      summary: [
        { type: "summary_text", text: "A" },
        { type: "summary_text", text: "" },
        { type: "summary_text", text: "B" },
      ],
    };
    const raw = { type: "reasoning", id: "q", summary: [], content: [{ type: "reasoning_text", text: "C" }] };
    const part = (index: number, delta: string) => ({
      type: "response.reasoning_summary_text.delta",
      item_id: "r",
      output_index: 0,
      summary_index: index,
      delta,
    });
    const events = [
      created,
      { type: "response.output_item.added", output_index: 0, item: { ...thought, summary: [] } },
      part(0, "A"),
      part(1, ""),
      part(2, "B"),
      { type: "response.output_item.done", output_index: 0, item: thought },
      ...stream(raw, 1, words("C"), "response.reasoning_text.delta", { content_index: 0 }),
      ...stream(one, 2, words("One."), TEXT),
      end([thought, raw, one]),
    ];
    const { message: shown } = complete(events)["choices"][0];
    expect(shown).toMatchObject({ reasoning_content: "A\n\nB\n\nC", content: "One." });
  });

  test("a chat client gets an empty text with the finish reason `length` if the reasoning used up the cap", () => {
    const thought = { type: "reasoning", id: "r", summary: [{ type: "summary_text", text: "A" }] };
    const events = [
      created,
      ...stream(thought, 0, words("A"), "response.reasoning_summary_text.delta", { summary_index: 0 }),
      end([thought], { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }),
    ];
    const [choice] = complete(events)["choices"];
    expect(choice).toMatchObject({
      message: { content: "", reasoning_content: "A" },
      finish_reason: "length",
    });
  });

  test("a chat client gets a refusal with null as content and the finish reason `stop`", () => {
    const item = {
      type: "message",
      id: "a",
      role: "assistant",
      content: [{ type: "refusal", refusal: "I can't." }],
    };
    const events = [
      created,
      ...stream(item, 0, words("I ", "can't."), "response.refusal.delta"),
      end([item]),
    ];
    const [choice] = complete(events)["choices"];
    expect(choice).toMatchObject({ message: { content: null, refusal: "I can't." }, finish_reason: "stop" });
  });

  test("a chat client gets the reason and the usage of an unfinished answer", () => {
    const unfinished = (reason: string) => {
      const details = { status: "incomplete", incomplete_details: { reason } };
      return complete([created, ...stream(one, 0, words("One."), TEXT), end([one], details)]);
    };
    expect(unfinished("max_output_tokens")["choices"][0].finish_reason).toBe("length");
    expect(unfinished("content_filter")["choices"][0].finish_reason).toBe("content_filter");
    expect(unfinished("max_output_tokens")["usage"].total_tokens).toBe(15);
  });

  test("a chat client gets web citations with their places in the joined text, but no file citations", () => {
    const web = {
      type: "url_citation",
      start_index: 0,
      end_index: 4,
      title: "T",
      url: "https://example.com",
    };
    const cited = (id: string, text: string) =>
      message(id, text, {
        content: [
          {
            type: "output_text",
            text,
            annotations: [web, { type: "file_citation", file_id: "f", index: 0, filename: "x" }],
          },
        ],
      });
    const [first, second] = [cited("a", "Ünd 😀."), cited("b", "Two.")];
    const events = [
      created,
      ...stream(first, 0, words("Ünd 😀."), TEXT),
      ...stream(second, 1, words("Two."), TEXT),
      end([first, second]),
    ];
    const { message: shown } = complete(events)["choices"][0];
    expect(shown.annotations).toEqual([
      {
        type: "url_citation",
        url_citation: { start_index: 0, end_index: 4, title: "T", url: "https://example.com" },
      },
      {
        type: "url_citation",
        url_citation: { start_index: 8, end_index: 12, title: "T", url: "https://example.com" },
      },
    ]);
  });

  test("a chat client gets log probabilities if it asked for them, with null for missing bytes", () => {
    const logprobs = [
      { token: "One.", logprob: -0.5, top_logprobs: [{ token: "One.", logprob: -0.5, bytes: [79] }] },
    ];
    const item = message("a", "One.", {
      content: [{ type: "output_text", text: "One.", annotations: [], logprobs }],
    });
    const events = [created, ...stream(item, 0, words("One."), TEXT, { logprobs }), end([item])];
    const [choice] = complete(events, { ...PLAIN, logprobs: true })["choices"];
    expect(choice.logprobs).toEqual({
      content: [
        {
          token: "One.",
          logprob: -0.5,
          bytes: null,
          top_logprobs: [{ token: "One.", logprob: -0.5, bytes: [79] }],
        },
      ],
      refusal: null,
    });
    expect(complete(events)["choices"][0].logprobs).toBeNull();
    const called = call("call_a", "f", "{}");
    const calling = [created, ...stream(called, 0, words("{}"), ARGUMENTS), end([called])];
    expect(complete(calling, { ...PLAIN, logprobs: true })["choices"][0].logprobs).toEqual({
      content: [],
      refusal: null,
    });
  });

  test("a chat client gets the metadata and moderation that the upstream sends", () => {
    const verdict = {
      type: "moderation_result",
      model: "omni",
      flagged: false,
      categories: {},
      category_scores: {},
      category_applied_input_types: {},
    };
    const moderation = { input: verdict, output: { type: "error", code: "x", message: "y" } };
    const completion = complete([
      created,
      ...stream(one, 0, words("One."), TEXT),
      end([one], { metadata: { a: "b" }, moderation }),
    ]);
    expect(completion["metadata"]).toEqual({ a: "b" });
    expect(completion["moderation"]).toEqual({
      input: { type: "moderation_results", model: "omni", results: [verdict] },
      output: moderation.output,
    });
  });
});

describe("upstreams that deviate from OpenAI's events are understood", () => {
  const one = message("a", "One.");
  const tool = call("call_a", "f", '{"a":1}');
  const thought = { type: "reasoning", id: "r", summary: [{ type: "summary_text", text: "Hm." }] };
  const expected = { content: "One.", reasoning_content: "Hm." };

  test("upstreams may send no deltas, or only the last event: the client gets all items", () => {
    const items = [thought, one, tool];
    const done = items.map((item, output_index) => ({
      type: "response.output_item.done",
      output_index,
      item,
    }));
    for (const events of [[created, ...done, end(items)], [end(items)]])
      expect(complete(events)["choices"][0]).toMatchObject({
        message: { ...expected, tool_calls: [{ id: "call_a" }] },
        finish_reason: "tool_calls",
      });
  });

  test("upstreams may send text in deltas and calls only in the last event: the calls are sent at the end", () => {
    const spoken = stream(one, 0, words("One."), TEXT);
    const [choice] = complete([created, ...spoken, end([one, tool])])["choices"];
    expect(choice).toMatchObject({
      message: { tool_calls: [{ id: "call_a" }] },
      finish_reason: "tool_calls",
    });
  });

  test("upstreams may send thoughts in deltas and text only in the last event: the text is sent at the end", () => {
    const thinking = stream(thought, 0, words("Hm."), "response.reasoning_summary_text.delta", {
      summary_index: 0,
    });
    const [choice] = complete([created, ...thinking, end([thought, one])])["choices"];
    expect(choice.message).toMatchObject(expected);
  });

  test("upstreams may send a call in an event, and its arguments only in the last event", () => {
    const added = { ...tool, id: "i1", arguments: "" };
    const events = [
      created,
      { type: "response.output_item.added", output_index: 0, item: added },
      end([{ ...tool, id: "i2" }]),
    ];
    expect(complete(events)["choices"][0].message.tool_calls).toHaveLength(1);
  });

  test("upstreams may send a last event without output: the client gets the items of earlier events", () => {
    const cited = message("a", "One.", {
      content: [
        {
          type: "output_text",
          text: "One.",
          annotations: [{ type: "url_citation", start_index: 0, end_index: 3, title: "", url: "https://x" }],
        },
      ],
    });
    const { text } = run([
      created,
      ...stream(cited, 0, words("One."), TEXT),
      ...stream(tool, 1, words('{"a":1}'), ARGUMENTS),
      end([]),
    ]);
    const [choice] = accumulate(text).completion["choices"];
    expect(choice.finish_reason).toBe("tool_calls");
    expect(choice.message.annotations).toHaveLength(1);
  });

  test("upstreams may send a call's arguments only in a `done` event", () => {
    const events = [
      created,
      { type: "response.output_item.added", output_index: 0, item: { ...tool, arguments: "" } },
      {
        type: "response.function_call_arguments.done",
        output_index: 0,
        item_id: "fc_call_a",
        arguments: '{"a":1}',
      },
      { type: "response.output_item.done", output_index: 0, item: tool },
      end([tool]),
    ];
    expect(complete(events)["choices"][0].message.tool_calls[0].function.arguments).toBe('{"a":1}');
  });

  test("a call without an `added` event is sent at its `done` event", () => {
    const events = [
      created,
      { type: ARGUMENTS, output_index: 0, item_id: "fc_call_a", delta: '{"a":1}' },
      { type: "response.output_item.done", output_index: 0, item: tool },
      end([tool]),
    ];
    expect(complete(events)["choices"][0].message.tool_calls).toHaveLength(1);
  });

  test("the text of a message without an `added` event is sent", () => {
    const events = [created, { type: TEXT, output_index: 0, item_id: "a", delta: "One." }, end([one])];
    expect(complete(events)["choices"][0].message.content).toBe("One.");
  });

  test("upstreams may send new ids with each event: the index tells the items apart", () => {
    let fresh = 0;
    const rotate = (event: Json): Json => {
      const item = event["item"] && { ...event["item"], id: `i${fresh++}` };
      return { ...event, item_id: `i${fresh++}`, ...(item ? { item } : {}) };
    };
    const other = call("call_b", "g", "{}");
    const events = [
      ...stream(tool, 0, words('{"a"', ":1}"), ARGUMENTS),
      ...stream(other, 1, words("{}"), ARGUMENTS),
    ];
    const [choice] = complete([created, ...events.map(rotate), end([tool, other])])["choices"];
    expect(choice.message.tool_calls).toHaveLength(2);
  });

  test("upstreams may send index 0 for every item: the ids tell the items apart", () => {
    const other = call("call_b", "g", "{}");
    const [a, a1, a2, b, ...rest] = [
      ...stream(tool, 0, words('{"a"', ":1}"), ARGUMENTS).slice(0, 3),
      ...stream(other, 0, words("{}"), ARGUMENTS),
    ];
    const [choice] = complete(
      [created, a, b, a1, a2, ...rest, end([tool, other])].filter((event) => event !== undefined),
    )["choices"];
    expect(choice.message.tool_calls.map((each: Json) => each["function"].arguments)).toEqual([
      '{"a":1}',
      "{}",
    ]);
  });

  test("unknown events, empty ones, keep-alives and [DONE] are skipped", () => {
    const strange = [
      { type: "keepalive", sequence_number: 1 },
      { type: "response.dream.delta", delta: "zzz" },
      { type: "toString" },
      { type: "response.output_item.added", output_index: 5, item: { type: "dream", id: "d" } },
      { type: TEXT, item_id: "a", output_index: 0, delta: 5 },
    ];
    const events = [created, ...strange, ...stream(one, 0, words("One."), TEXT), end([one])];
    expect(complete(events)["choices"][0].message.content).toBe("One.");
    const chat = openChatStream(PLAIN);
    expect(chat.push(encode("data: [DONE]\n\ndata: 5\n\ndata:\n\n: hi\n\n"))).toEqual({
      texts: "",
      phase: "held",
      refusal: null,
    });
  });

  test("a response with the status incomplete is incomplete even in a `response.completed` event", () => {
    const event = {
      ...end([one], { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }),
      type: "response.completed",
    };
    expect(complete([created, event])["choices"][0].finish_reason).toBe("length");
  });
});

test("an answer without an id and a date gets the id and the date of the request", () => {
  const bare = { model: "m-1", status: "completed", output: [], usage: USAGE };
  const named = { id: "chatcmpl-asked", created: 1_700_000_000 };
  const { completion } = accumulate(run([{ type: "response.completed", response: bare }]).text);
  expect(completion).toMatchObject(named);
  expect(JSON.parse(convertReply(bare, PLAIN).body)).toMatchObject(named);
});

describe("deltas of several items are kept apart", () => {
  test("each reasoning part begins a paragraph, even if another item's part had the same index", () => {
    const reasoning = { type: "reasoning", id: "r", summary: [] };
    const say = (id: string, index: number, summary_index: number, delta: string) => ({
      type: "response.reasoning_summary_text.delta",
      item_id: id,
      output_index: index,
      summary_index,
      delta,
    });
    const events = [
      created,
      { type: "response.output_item.added", output_index: 0, item: reasoning },
      say("r", 0, 0, "A"),
      say("r", 0, 0, "B"),
      say("r", 0, 1, "C"),
      say("r", 0, 1, "D"),
      say("s", 1, 1, "E"),
    ];
    const { completion } = accumulate(run([...events, end([])]).text);
    expect(completion["choices"][0].message.reasoning_content).toBe("AB\n\nCD\n\nE");
  });

  test("deltas without an item's id go to the newest item with their index", () => {
    const added = { type: "response.output_item.added", output_index: 0, item: { type: "message" } };
    const say = (delta: string) => ({ type: TEXT, output_index: 0, content_index: 0, delta });
    const { text } = run([added, say("one"), say("two"), added, say("three"), say("four"), end([])]);
    expect(accumulate(text).completion["choices"][0].message.content).toBe("onetwo\n\nthreefour");
  });
});
