// Tests a count that exceeds the total it is a part of, and a count that is too large for any answer.

import { collectCases, pay, type Term, testCases, type Wanted } from "./oracle.ts";
import { writeChat, writeContent, writeMessage, writeResponse } from "./wire.ts";

const { cases, add } = collectCases();

/** 1000 tokens of input and 50 of output, all of them ordinary. */
const ordinary = (input: string, output: string): readonly Term[] => [
  [1000, input],
  [50, output],
];
const DIALECTS = {
  chat: { model: "gpt-5.4", terms: ordinary("2.5", "15"), write: writeChat },
  responses: { model: "gpt-5.4", terms: ordinary("2.5", "15"), write: writeResponse },
  messages: { model: "claude-haiku-4-5", terms: ordinary("1", "5"), write: writeMessage },
  content: { model: "gemini-2.5-flash", terms: ordinary("0.3", "2.5"), write: writeContent },
} as const;
type Dialect = keyof typeof DIALECTS;

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** Returns a stream of the dialect that reports the usage of this body. */
function stream(dialect: Dialect, whole: string): string {
  const body = JSON.parse(whole);
  if (dialect === "content") return event(body);
  if (dialect === "responses") return event({ type: "response.completed", response: body });
  if (dialect === "chat")
    return `${event({ ...body, choices: [{ delta: { content: "hi" }, finish_reason: "stop" }] })}data: [DONE]\n\n`;
  const delta = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: body.usage };
  return [{ type: "message_start", message: body }, delta, { type: "message_stop" }].map(event).join("");
}

function test(dialect: Dialect, id: string, usage: object, wanted?: Wanted): void {
  const { model, terms, write } = DIALECTS[dialect];
  const whole = write(model, JSON.stringify(usage));
  for (const [form, body] of Object.entries({ whole, streamed: stream(dialect, whole) }))
    add(dialect)(`${dialect}, ${form}: ${id}`, model, body, { terms, suspect: true, ...wanted });
}

/** Counts that exceed the total, or cannot be read. */
for (const odd of [99_999_999, 1e300, -1, 0.5, "5"]) {
  const named = (name: string): string => `${name} of ${JSON.stringify(odd)}`;
  for (const dialect of ["chat", "responses"] as const) {
    const [input, output] = dialect === "chat" ? ["prompt", "completion"] : ["input", "output"];
    const totals = { [`${input}_tokens`]: 1000, [`${output}_tokens`]: 50, total_tokens: 1050 };
    for (const name of ["cached_tokens", "cache_write_tokens", "audio_tokens", "image_tokens"])
      test(dialect, `prompt, ${named(name)}`, { ...totals, [`${input}_tokens_details`]: { [name]: odd } });
    for (const name of ["reasoning_tokens", "audio_tokens", "image_tokens"])
      test(dialect, `output, ${named(name)}`, { ...totals, [`${output}_tokens_details`]: { [name]: odd } });
    for (const name of ["cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens"])
      test(dialect, `next to the totals, ${named(name)}`, { ...totals, [name]: odd });
    const kept = { cache_write_tokens: 9, cache_write_tokens_details: { ttl_12h_tokens: odd } };
    test(dialect, named("ttl_12h_tokens"), { ...totals, [`${input}_tokens_details`]: kept });
  }
  const claude = { input_tokens: 1000, output_tokens: 50 };
  const thoughts = { output_tokens_details: { thinking_tokens: odd } };
  test("messages", named("thinking_tokens"), { ...claude, ...thoughts });
  for (const name of ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "ephemeral_24h_input_tokens"])
    for (const cache_creation_input_tokens of [0, 10]) {
      const terms: readonly Term[] = [...DIALECTS.messages.terms, [cache_creation_input_tokens, "1.25"]];
      const usage = { ...claude, cache_creation_input_tokens, cache_creation: { [name]: odd } };
      test("messages", `${named(name)} of ${cache_creation_input_tokens}`, usage, { terms });
    }
  const gemini = { promptTokenCount: 1000, candidatesTokenCount: 50, totalTokenCount: 1050 };
  const cached = { ...gemini, cachedContentTokenCount: odd };
  test("content", named("cachedContentTokenCount"), cached);
  for (const name of ["promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails"])
    test("content", named(name), { ...gemini, [name]: [{ modality: "AUDIO", tokenCount: odd }] });
}

const sound = { prompt_tokens: 1000, prompt_tokens_details: { audio_tokens: 375 }, completion_tokens: 50 };
test(
  "chat",
  "sound that the total counts next to the prompt is read",
  { ...sound, total_tokens: 1425 },
  {
    basis: "unpriced",
    least: DIALECTS.chat.terms,
    suspect: false,
  },
);
const several = { prompt_tokens_details: { cache_write_tokens: 1000, audio_tokens: 1 } };
test("chat", "more tokens in several parts", { ...sound, ...several });

/** What is expected of an answer with a count that is too large to be real. */
const UNKNOWN: Wanted = { basis: "unknown" };
/** For Chat, whose servers may report no usage: one token of the prompt and one of output are estimated. */
const ESTIMATED: Wanted = {
  basis: "partial",
  terms: pay("1 × 2.5, 1 × 15"),
};
const claude = { input_tokens: 1000, output_tokens: 50 };
for (const count of [100_000_001, 2 ** 53 - 1]) {
  test("chat", `${count} tokens`, { prompt_tokens: count, completion_tokens: 50 }, ESTIMATED);
  test("responses", `${count} tokens`, { input_tokens: 1000, output_tokens: count }, UNKNOWN);
  test("messages", `${count} tokens`, { ...claude, cache_read_input_tokens: count }, UNKNOWN);
  test("content", `${count} tokens`, { promptTokenCount: 1000, thoughtsTokenCount: count }, UNKNOWN);
}
const searches = { server_tool_use: { web_search_requests: 10_001 } };
test("messages", "10001 searches", { ...claude, ...searches }, UNKNOWN);
const calls = { server_side_tool_usage_details: { web_search_calls: 10_001 } };
test("chat", "10001 calls", { prompt_tokens: 9, completion_tokens: 1, ...calls }, ESTIMATED);
const long: readonly Term[] = [
  [1_000_001, "1"],
  [50, "5"],
];
test("messages", "a prompt above the usual size", { ...claude, input_tokens: 1_000_001 }, { terms: long });

const FINISHED = [{ delta: { content: "hi" }, finish_reason: "stop" }];
const counted = (prompt: number | null, output: number | null): object => ({
  model: "gpt-5.4",
  choices: prompt === null ? [] : FINISHED,
  usage: { prompt_tokens: prompt, completion_tokens: output },
});
const reports = (id: string, events: readonly object[], suspect: boolean): void =>
  add("chat")(id, "gpt-5.4", `${events.map(event).join("")}data: [DONE]\n\n`, {
    terms: DIALECTS.chat.terms,
    suspect,
  });
reports("a prompt that shrinks keeps its larger count", [counted(1000, 1), counted(10, 50)], true);
reports("output that shrinks has its last count", [counted(1000, 500), counted(1000, 50)], true);
reports("a report without counts is not a report", [counted(1000, 50), counted(null, null)], false);

testCases(cases);
