// Whatever items an answer has, and however much of it the upstream sends as events:
// the chunks add up to the whole reply.

import { convertReply, openChatStream, PLAIN, type Wanted } from "./direction.ts";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { accumulate, type Json } from "./accumulate.ts";

const WANTED: readonly Wanted[] = [
  PLAIN,
  { ...PLAIN, json: true },
  { ...PLAIN, legacy: true },
  { ...PLAIN, forced: true },
];

const text = fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom("", "é\u{1F600}", "Hello", "\n\n"));
const citation = fc.record({
  type: fc.constantFrom("url_citation", "file_citation"),
  start_index: fc.nat(9),
  end_index: fc.nat(9),
  title: text,
  url: fc.constant("https://x"),
});
const spoken = fc.oneof(
  fc.record({ type: fc.constant("output_text"), text, annotations: fc.array(citation, { maxLength: 2 }) }),
  fc.record({ type: fc.constant("refusal"), refusal: text }),
);
const thoughts = (type: string) =>
  fc.array(
    text.map((thought) => ({ type, text: thought })),
    { maxLength: 3 },
  );
const item: fc.Arbitrary<Json> = fc.oneof(
  fc.record({
    type: fc.constant("message"),
    phase: fc.constantFrom("", "commentary", "final_answer"),
    content: fc.array(spoken, { maxLength: 3 }),
  }),
  fc.record({
    type: fc.constant("reasoning"),
    summary: thoughts("summary_text"),
    content: thoughts("reasoning_text"),
  }),
  fc.record({ type: fc.constant("function_call"), name: fc.constant("f"), arguments: text }),
  fc.record({ type: fc.constant("custom_tool_call"), name: fc.constant("c"), input: text }),
  fc.constant({ type: "web_search_call" }),
);

const frame = (event: Json): string => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`;

/** What an item says bit by bit, without its places. */
function listDeltas({ content = [], summary = [], ...said }: Json): Json[] {
  const cut = (type: string, whole: string, place: Json = {}): Json[] => {
    const points = Array.from(whole);
    const half = Math.floor(points.length / 2);
    const halves = [points.slice(0, half).join(""), points.slice(half).join("")];
    return halves.map((delta) => ({ type: `response.${type}.delta`, delta, ...place }));
  };
  return [
    ...summary.flatMap((part: Json, summary_index: number) =>
      cut("reasoning_summary_text", part["text"], { summary_index }),
    ),
    ...content.flatMap((part: Json, content_index: number) => {
      if (part["type"] === "refusal") return cut("refusal", part["refusal"], { content_index });
      return cut(said["type"] === "reasoning" ? "reasoning_text" : "output_text", part["text"], {
        content_index,
      });
    }),
    ...("arguments" in said ? cut("function_call_arguments", said["arguments"]) : []),
    ...("input" in said ? cut("custom_tool_call_input", said["input"]) : []),
  ];
}

/** How much of the answer comes before its last event. */
const MANNERS = ["deltas", "items", "finished items", "nothing"] as const;

function report(whole: Json, output_index: number, manner: (typeof MANNERS)[number]): Json[] {
  if (manner === "nothing") return [];
  const done = { type: "response.output_item.done", output_index, item: whole };
  if (manner === "finished items") return [done];
  const blank = Object.fromEntries(
    Object.entries(whole).map(([name, value]) => [name, Array.isArray(value) ? [] : value]),
  );
  const empty = {
    ...blank,
    ...("arguments" in whole && { arguments: "" }),
    ...("input" in whole && { input: "" }),
  };
  const added = { type: "response.output_item.added", output_index, item: empty };
  const place = { item_id: whole["id"], output_index };
  const deltas = manner === "deltas" ? listDeltas(whole).map((delta) => ({ ...delta, ...place })) : [];
  return [added, ...deltas, done];
}

const reply = fc.record({
  status: fc.constantFrom("completed", "incomplete"),
  incomplete_details: fc.constantFrom({ reason: "max_output_tokens" }, { reason: "content_filter" }),
  output: fc.array(item, { maxLength: 4 }).map((items) =>
    items.map((each, index) => ({
      ...each,
      id: `i${index}`,
      ...("name" in each && { call_id: `c${index}` }),
    })),
  ),
});

test("the chunks of an answer add up to the whole completion", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...WANTED),
      reply,
      fc.constantFrom("deltas", ...MANNERS),
      (wanted, said, manner) => {
        const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
        const response = {
          id: "resp_1",
          object: "response",
          created_at: 5,
          model: "m-1",
          service_tier: "default",
          usage,
          ...said,
        };
        const last = said.status === "completed" ? "response.completed" : "response.incomplete";
        const events = [
          {
            type: "response.created",
            response: { ...response, output: [], usage: null, status: "in_progress" },
          },
          ...said.output.flatMap((each, index) => report(each, index, manner)),
          { type: last, response },
        ];
        const chat = openChatStream(wanted);
        const reported = chat.push(Buffer.from(events.map(frame).join("")));
        expect(reported.phase).toBe("done");
        const { object: _, ...whole } = JSON.parse(convertReply(response, wanted).body);
        expect(accumulate(reported.text).completion).toEqual(whole);
      },
    ),
    { numRuns: 500 },
  );
});
