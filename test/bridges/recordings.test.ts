// The answers here were recorded from real providers. Clients of other dialects get the same texts, calls
// and usage.

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

interface Expected {
  readonly text: Any;
  readonly calls: string[];
}

/** Returns the manifest's answer, or null if the answer was cut, failed, or has what no bridge asks for. */
function readExpected(fixture: Fixture): Expected | null {
  const { error } = fixture.expect;
  return error === null || error === undefined ? EXPECTED[fixture.family](fixture) : null;
}

function namesOf(calls: readonly Any[]): string[] {
  return calls.map(({ name }) => name);
}

const EXPECTED: Readonly<Record<Fixture["family"], (fixture: Fixture) => Expected | null>> = {
  anthropic({ expect: e }) {
    if (e.terminal_seen === false || !ENDS.has(e.stop)) return null;
    return { text: e.text, calls: namesOf(e.tool_calls) };
  },
  "openai-responses"({ expect: e }) {
    if (e.status !== "completed" && e.incomplete_reason !== "max_output_tokens") return null;
    const isOdd = e.refusal !== null || e.delta_text_matches === false;
    if (isOdd || e.tool_calls.some((call: Any) => call.custom_input !== undefined)) return null;
    return { text: e.text, calls: namesOf(e.tool_calls) };
  },
  "openai-chat"({ expect: e, features }) {
    const [choice] = e.choices ?? [];
    if (!choice?.finish_reason || e.choices.length > 1 || choice.refusal !== null) return null;
    const isOld =
      choice.finish_reason === "function_call" || features.some((each) => each.includes("function_call"));
    return isOld ? null : { text: choice.text, calls: namesOf(choice.tool_calls) };
  },
  gemini({ id, expect: e }) {
    const isCut = /tool-call-arguments|array-arguments/.test(id);
    if (isCut || !/^(?:STOP|MAX_TOKENS)$/.test(e.finish ?? "")) return null;
    return { text: e.text, calls: namesOf(e.function_calls) };
  },
};

const ENDS = new Set(["end_turn", "tool_use", "max_tokens", "stop_sequence"]);

/** The texts and the calls that a client has kept. A chat client has one text, with an empty line between the answer's texts. */
function readKept(kept: Any[]): { text: string; calls: string[] } {
  if (kept[0]?.role === "assistant" && !Array.isArray(kept[0].content) && kept[0].type === undefined) {
    const { content, tool_calls = [] } = kept[0];
    return { text: content ?? "", calls: tool_calls.map((call: Any) => (call.function ?? call.custom).name) };
  }
  const parts = kept.flatMap((entry) => entry.content ?? entry.parts ?? [entry]);
  const calls = parts.filter(({ type }: Any) => /^(?:tool_use|function_call)$/.test(type));
  const spoken = parts.filter((part: Any) => typeof part.text === "string");
  return { text: spoken.map(({ text }: Any) => text).join(""), calls: namesOf(calls) };
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

/** Dialects that keep the texts of an answer apart. A chat client, which does not, is tried with responses channels only. */
const CLIENTS: readonly DialectName[] = ["messages", "responses"];
const clientsOf = (upstream: DialectName): readonly DialectName[] =>
  upstream === "responses" ? ["messages", "chat"] : CLIENTS.filter((each) => each !== upstream);

describe.skipIf(!hasFixtures)("recorded answers are the same for clients of other dialects", () => {
  test.each(DIALECT_NAMES)(
    "every recorded answer of a %s upstream becomes the same answer for other clients",
    (upstream) => {
      const own = recordings.filter((each) => DIALECT_OF[each.family] === upstream);
      expect(own.length).toBeGreaterThan(50);
      const odd: string[] = [];
      for (const recording of own) {
        for (const client of clientsOf(upstream)) {
          const problem = judge(recording, client, upstream);
          if (problem !== null) odd.push(`${recording.id} for ${client}: ${problem}`);
        }
      }
      expect(odd).toEqual([]);
    },
  );
});

interface Given {
  readonly events: Any[];
  readonly usage: Usage;
  readonly text: string;
  readonly type: string;
}

/** Returns the client's answer or, as a text, the reason why it failed. */
function give(recording: Fixture, client: DialectName, upstream: DialectName): Given | string {
  const user = formUser(client, { results: [], text: "Hi", image: false }, []);
  const converted = convert(`${client}>${upstream}`, formRequest(client, user, recording.stream));
  const bytes = readFixture(recording);
  if (recording.stream && recording.file.endsWith(".sse")) {
    const { phase, refusal, events, usage, text } = stream(converted, [bytes]);
    if (phase !== "done") return `${phase} ${refusal?.body}`;
    return { events, usage, text, type: "text/event-stream" };
  }
  const { status, body, usage } = whole(converted, JSON.parse(bytes.toString()));
  if (status !== 200) return JSON.stringify(body);
  return { events: [body], usage, text: JSON.stringify(body), type: "application/json" };
}

function judge(recording: Fixture, client: DialectName, upstream: DialectName): string | null {
  const expected = readExpected(recording);
  const given = give(recording, client, upstream);
  if (expected === null) return null;
  if (typeof given === "string") return given;
  const seen = readKept(keepAnswer(client, given.events));
  const { sha256 = null, value = "" } = expected.text ?? {};
  const hashes = [seen.text, seen.text.replace("\n\n", "")].map((text) =>
    createHash("sha256").update(text).digest("hex"),
  );
  if (sha256 !== null && !hashes.slice(0, client === "chat" ? 2 : 1).some((hash) => hash.startsWith(sha256)))
    return `text: ${seen.text.slice(0, 60)} for ${value}`;
  if (!Bun.deepEquals(seen.calls, expected.calls))
    return `calls: ${seen.calls.join()} for ${expected.calls.join()}`;
  const meter = DIALECTS[client].openMeter(given.type);
  meter.see(Buffer.from(given.text));
  const read = totals(sumUsage(meter.read().parts)).join();
  return read === totals(given.usage).join() ? null : `usage: ${read} for ${totals(given.usage).join()}`;
}

test("the tests' reader of events accepts U+2028 in a text", () => {
  expect(readEvents('data: {"a":"\u2028"}\n\ndata: [DONE]\n\n')).toEqual([{ a: "\u2028" }, "[DONE]"]);
});
