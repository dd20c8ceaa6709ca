// Recorded answers of real providers, for clients of every other dialect: the texts, the calls and the usage are those of the
// recording, and what was cut stays cut.

import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { sumUsage, type Usage } from "../../src/billing/usage.ts";
import { DIALECT_NAMES, type DialectName } from "../../src/dialects/dialect.ts";
import { DIALECTS } from "../../src/dialects/endpoints.ts";
import { type Fixture, hasFixtures, listFixtures, readFixture } from "../harness/fixtures.ts";
import { type Any, convert, readEvents, stream, whole } from "./calls.ts";
import { formRequest, formUser, keepAnswer } from "./session.ts";

const DIALECT_OF: Readonly<Record<Fixture["family"], DialectName>> = {
  anthropic: "messages",
  "openai-responses": "responses",
  "openai-chat": "chat",
  gemini: "content",
};

/** What every manifest entry says of an answer, in one form. Null: it was cut, or failed. */
function readExpected(fixture: Fixture): { text: Any; calls: string[] } | null {
  const { family, expect: e } = fixture;
  if (e.error !== null && e.error !== undefined) return null;
  if (family === "anthropic") {
    if (e.terminal_seen === false || !ENDS.has(e.stop)) return null;
    return { text: e.text, calls: e.tool_calls.map((call: Any) => call.name) };
  }
  if (family === "openai-responses") {
    if (e.status !== "completed" && e.incomplete_reason !== "max_output_tokens") return null;
    // A refusal is a text for some clients. Nothing asks an upstream for custom tools.
    if (e.refusal !== null) return null;
    if (e.tool_calls.some((call: Any) => call.custom_input !== undefined)) return null;
    return { text: e.text, calls: e.tool_calls.map((call: Any) => call.name) };
  }
  if (family === "openai-chat") {
    const [choice] = e.choices ?? [];
    const isOld =
      choice?.finish_reason === "function_call" ||
      fixture.features.some((each) => each.includes("function_call"));
    if (!choice?.finish_reason || e.choices.length > 1 || isOld || choice.refusal !== null) return null;
    return { text: choice.text, calls: choice.tool_calls.map((call: Any) => call.name) };
  }
  // Calls in pieces come only where a request asks for them.
  const isCut = /tool-call-arguments|array-arguments/.test(fixture.id);
  if (isCut || !/^(?:STOP|MAX_TOKENS)$/.test(e.finish ?? "")) return null;
  return { text: e.text, calls: e.function_calls.map((call: Any) => call.name) };
}

const ENDS = new Set(["end_turn", "tool_use", "max_tokens", "stop_sequence"]);

/** The texts and the calls that a client has kept. */
function readKept(client: DialectName, kept: Any[]): { text: string; calls: string[] } {
  const parts = kept.flatMap((entry) => entry.content ?? entry.parts ?? [entry]);
  const isCall = ({ type }: Any): boolean => /^(?:tool_use|function_call|custom_tool_call)$/.test(type);
  const spoken = parts.filter((part: Any) => typeof part.text === "string" && part.type !== "thinking");
  const named = parts.filter((part: Any) => isCall(part)).map(({ name }: Any) => name);
  void client;
  return { text: spoken.map(({ text }: Any) => text).join(""), calls: named };
}

function totals(usage: Usage): number[] {
  const { reasoning = 0 } = usage;
  const prompt = Object.entries(usage).filter(([kind]) => /^(?:input|cache|tool_prompt)/.test(kind));
  const output = Object.entries(usage).filter(([kind]) => kind.startsWith("output"));
  return [prompt, output].map((list) => list.reduce((sum, [, count]) => sum + count, 0)).concat(reasoning);
}

const recordings = listFixtures(
  ({ status, file, features }) => status === 200 && /\.(sse|json)$/.test(file) && features !== undefined,
);

/** Two dialects whose answers keep each text apart. */
const CLIENTS: readonly DialectName[] = ["messages", "responses"];

describe.skipIf(!hasFixtures)("recordings", () => {
  test.each(DIALECT_NAMES)(
    "every recorded answer of a %s upstream becomes the same answer for other clients",
    (upstream) => {
      const own = recordings.filter((each) => DIALECT_OF[each.family] === upstream);
      expect(own.length).toBeGreaterThan(50);
      const odd: string[] = [];
      for (const recording of own) {
        for (const client of CLIENTS.filter((each) => each !== upstream)) {
          const problem = judge(recording, client, upstream);
          if (problem !== null) odd.push(`${recording.id} for ${client}: ${problem}`);
        }
      }
      expect(odd).toEqual([]);
    },
  );
});

function judge(recording: Fixture, client: DialectName, upstream: DialectName): string | null {
  const user = formUser(client, { results: [], text: "Hi", image: false }, []);
  const converted = convert(`${client}>${upstream}`, formRequest(client, user, recording.stream));
  const bytes = readFixture(recording);
  const expected = readExpected(recording);
  let kept: Any[];
  let usage: Usage;
  let text: string;
  let type: string;
  if (recording.stream && recording.file.endsWith(".sse")) {
    const answer = stream(converted, [bytes]);
    if (expected === null) return answer.phase === "held" ? "held" : null;
    if (answer.phase !== "done") return `${answer.phase} ${answer.refusal?.body}`;
    kept = keepAnswer(client, answer.events);
    ({ usage, text } = answer);
    type = "text/event-stream";
  } else {
    const answer = whole(converted, JSON.parse(bytes.toString()));
    if (expected === null) return null;
    if (answer.status !== 200) return JSON.stringify(answer.body);
    kept = keepAnswer(client, [answer.body]);
    ({ usage } = answer);
    text = JSON.stringify(answer.body);
    type = "application/json";
  }
  const seen = readKept(client, kept);
  if (expected.text !== null && expected.text !== undefined) {
    const hash = createHash("sha256").update(seen.text).digest("hex").slice(0, expected.text.sha256.length);
    if (hash !== expected.text.sha256)
      return `text: ${seen.text.slice(0, 60)} for ${String(expected.text.value).slice(0, 60)}`;
  }
  if (!Bun.deepEquals(seen.calls, expected.calls)) return `calls: ${seen.calls} for ${expected.calls}`;
  const meter = DIALECTS[client].openMeter(type);
  meter.see(Buffer.from(text));
  const read = totals(sumUsage(meter.read().parts));
  return Bun.deepEquals(read, totals(usage)) ? null : `usage: ${read} for ${totals(usage)}`;
}

test("the helper reads events whose texts have other line ends", () => {
  expect(readEvents('data: {"a":"\u2028"}\n\ndata: [DONE]\n\n')).toEqual([{ a: "\u2028" }, "[DONE]"]);
});
