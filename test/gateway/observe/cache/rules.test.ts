// What is a miss and what is not, rule by rule.

import { describe, expect, test } from "bun:test";
import { MESSAGES_LAYOUT, RESPONSES_LAYOUT } from "../../../../src/dialects/prompt/layouts.ts";
import { hashId } from "../../../../src/dialects/prompt/read-prompt.ts";
import { readPrompt } from "../../../harness/prompt.ts";
import { CacheMemory } from "../../../../src/gateway/observe/cache/memory.ts";
import type { Miss } from "../../../../src/gateway/observe/cache/judge.ts";
import type { Turn } from "../../../../src/gateway/observe/cache/turn.ts";
import { FACTS, type Writer, WRITERS } from "./session.ts";

type Value = Record<string, unknown>;
type Given = Partial<Omit<Turn, "prompt" | "rules" | "tokens">>;

const MARK = { cache_control: { type: "ephemeral" } };
const HOUR = { cache_control: { type: "ephemeral", ttl: "1h" } };
const MINUTE = 60_000;
const START = Date.UTC(2026, 10, 20);

/** One session. `counts`: read, written and plain tokens, in thousands. */
function openSession(layout = MESSAGES_LAYOUT, writer: Writer = "JavaScript") {
  const memory = new CacheMemory();
  let at = START;
  return {
    memory,
    wait: (ms: number) => void (at += ms),
    ask: (body: Value, [read, written, input]: readonly number[], given: Given = {}): Miss | null => {
      at += 10_000;
      const prompt = readPrompt(Buffer.from(WRITERS[writer](body)), layout);
      const [r = 0, w = 0, i = 0] = [read, written, input].map((count = 0) => count * 1000);
      return memory.learn("s", {
        prompt: prompt!,
        rules: layout.rules,
        tokens: { read: r, written: w, total: r + w + i },
        ...FACTS,
        at,
        readyAt: at + 1000,
        ...given,
      });
    },
  };
}

const text = (value: string, more: Value = {}): Value => ({ type: "text", text: value, ...more });
const user = (...content: Value[]): Value => ({ role: "user", content });
const model = (...content: Value[]): Value => ({ role: "assistant", content });
const SYSTEM = [text("system", MARK)];

describe.each(["JavaScript", "Python"] as const)("messages, as %s writes them,", (writer) => {
  const open = () => openSession(MESSAGES_LAYOUT, writer);

  test("a mark that moves, and a text that becomes a block, change nothing", () => {
    const { ask } = open();
    const first = { system: "system", messages: [user(text("one", MARK))] };
    const next = {
      system: [text("system", MARK)],
      messages: [{ role: "user", content: "one" }, model(text("answer")), user(text("two", MARK))],
    };
    expect(ask(first, [0, 20])).toBeNull();
    expect(ask(next, [20, 1])).toBeNull();
    expect(ask(next, [0, 21])).toEqual({ missed: 21_000, because: "upstream_lost" });
  });

  test("a mark inside a tool's result is left out too", () => {
    const { ask } = open();
    const result = (more: Value): Value =>
      user({ type: "tool_result", tool_use_id: "t", content: [text("out", more)] });
    expect(ask({ system: SYSTEM, messages: [result(MARK)] }, [0, 20])).toBeNull();
    const messages = [result({}), model(text("x")), user(text("two", MARK))];
    expect(ask({ system: SYSTEM, messages }, [0, 21])).toMatchObject({ because: "upstream_lost" });
  });

  test("what comes after the last mark may change", () => {
    const { ask } = open();
    const body = (last: string): Value => ({
      system: SYSTEM,
      messages: [user(text("one", MARK), text(last))],
    });
    ask(body("a"), [0, 20, 3]);
    expect(ask(body("b"), [0, 20, 3])).toEqual({ missed: 20_000, because: "upstream_lost" });
  });

  test("without a mark near enough, the upstream does not find what it has", () => {
    const { ask } = open();
    const opening = user(text("one", MARK));
    ask({ system: "s", messages: [opening] }, [0, 20]);
    const many = Array.from({ length: 30 }, (_, index) => text(`part ${index}`));
    const far = { system: "s", messages: [user(text("one")), model(...many), user(text("two", MARK))] };
    expect(ask(far, [0, 23])).toEqual({ missed: 20_000, because: "marks_changed" });
    const { ask: other } = open();
    other({ system: "s", messages: [opening] }, [0, 20]);
    const none = { system: "s", messages: [user(text("one")), model(text("x")), user(text("two"))] };
    expect(other(none, [0, 0, 21])).toEqual({ missed: 20_000, because: "marks_changed" });
  });

  test("the lifetime is that of the last mark, from the last use", () => {
    const body = (mark: Value): Value => ({ system: SYSTEM, messages: [user(text("one", mark))] });
    for (const [mark, minutes, because] of [
      [MARK, 4.5, "upstream_lost"],
      [MARK, 5, "lifetime_passed"],
      [HOUR, 59, "upstream_lost"],
      [HOUR, 60, "lifetime_passed"],
    ] as const) {
      const { ask, wait } = open();
      ask(body(mark), [0, 20]);
      wait(MINUTE);
      ask(body(mark), [20]);
      wait(minutes * MINUTE - 10_000);
      expect(ask(body(mark), [0, 20])).toEqual({ missed: 20_000, because });
    }
  });

  test("old thinking that the upstream removes, and edits that the request asks for, are no misses", () => {
    const thought = { type: "thinking", thinking: "hm", signature: "x" };
    const talk = [user(text("one")), model(thought, { type: "tool_use", id: "t", name: "R", input: {} })];
    const result = user({ type: "tool_result", tool_use_id: "t", content: "out", ...MARK });
    const unmarked = user({ type: "tool_result", tool_use_id: "t", content: "out" });
    const { ask } = open();
    ask({ system: SYSTEM, messages: [...talk, result] }, [0, 30]);
    const next = {
      system: SYSTEM,
      messages: [...talk, unmarked, model(text("done")), user(text("two", MARK))],
    };
    expect(ask(next, [20, 12])).toBeNull();
    const { ask: edited } = open();
    const context_management = { edits: [{ type: "clear_tool_uses_20250919" }] };
    const before = { system: SYSTEM, messages: [user(text("one", MARK))], context_management };
    edited(before, [0, 30]);
    expect(edited(before, [20, 10])).toBeNull();
    expect(edited(before, [0, 30])).toMatchObject({ because: "upstream_lost" });
  });

  test("a rule that keeps all thinking removes none, as in every request of Claude Code", () => {
    const { ask } = open();
    const context_management = { edits: [{ type: "clear_thinking_20251015", keep: "all" }] };
    const thought = { type: "thinking", thinking: "hm", signature: "x" };
    ask({ system: SYSTEM, messages: [user(text("one", MARK))], context_management }, [0, 30]);
    const messages = [user(text("one")), model(thought, text("a")), user(text("two", MARK))];
    expect(ask({ system: SYSTEM, messages, context_management }, [20, 12])).toEqual({
      missed: 10_000,
      because: "upstream_lost",
    });
  });

  test("a setting that is part of the prompt is named", () => {
    const body = (tool_choice: Value): Value => ({
      system: SYSTEM,
      messages: [user(text("one", MARK))],
      tool_choice,
    });
    const { ask } = open();
    ask(body({ type: "auto" }), [0, 30]);
    expect(ask(body({ type: "any" }), [20, 10])).toEqual({
      missed: 10_000,
      because: "settings_changed",
      part: "tool_choice",
    });
  });

  test("what a shorter prompt does not send any more was not missed", () => {
    const { ask } = open();
    const messages = [user(text("one", MARK))];
    ask({ tools: [{ name: "a" }, { name: "b" }], system: SYSTEM, messages }, [0, 30]);
    expect(ask({ system: SYSTEM, messages }, [0, 20])).toEqual({
      missed: 20_000,
      because: "tools_changed",
      at: 1,
    });
  });

  test("the attribution line counts only where the upstream reads it", () => {
    const line = (at: number): Value => text(`x-anthropic-billing-header: cc_version=2.1; cch=${at}f;`);
    const body = (at: number, first = "one"): Value => ({
      system: [line(at), text("system", MARK)],
      messages: [user(text(first)), model(text("a")), user(text("two", MARK))],
    });
    const changed = { because: "system_changed", at: 1, detail: "attribution" };
    const { ask } = open();
    ask(body(1), [0, 30]);
    expect(ask(body(2), [0, 30])).toEqual({ missed: 30_000, ...changed });
    const { ask: own } = open();
    own(body(1), [0, 30], { dropsAttribution: true });
    expect(own(body(2), [30], { dropsAttribution: true })).toBeNull();
    expect(own(body(3, "other"), [20, 10], { dropsAttribution: true })).toMatchObject({
      missed: 10_000,
      because: "messages_changed",
      at: 1,
    });
  });

  test("an upstream that writes nothing may still cache by its own rules", () => {
    const body = (at: number): Value => ({
      system: [text(`x-anthropic-billing-header: cch=${at}`), text("system", MARK)],
      messages: [user(text("one")), model(text("a")), user(text("two", MARK))],
    });
    const { ask } = open();
    ask(body(1), [0, 0, 30]);
    expect(ask(body(2), [0, 0, 30])).toMatchObject({ missed: 30_000, detail: "attribution", unproven: true });
    // It is not known that it caches, so nothing was lost.
    expect(ask(body(2), [0, 0, 30])).toBeNull();
  });

  test("requests of one message each share their opening", () => {
    const body = (time: string, question: string): Value => ({
      system: [text(`It is ${time}. You help.`, MARK)],
      messages: [user(text(question))],
    });
    const { ask, wait } = open();
    expect(ask(body("10:00", "a"), [0, 20, 1])).toBeNull();
    expect(ask(body("10:00", "b"), [20, 0, 1])).toBeNull();
    expect(ask(body("10:01", "c"), [0, 20, 1])).toEqual({
      missed: 20_000,
      because: "system_changed",
      at: 1,
      detail: "digits",
    });
    wait(5 * MINUTE);
    expect(ask(body("10:01", "d"), [0, 20, 1])).toEqual({ missed: 20_000, because: "lifetime_passed" });
    const other = { system: [text("Something else.", MARK)], messages: [user(text("e"))] };
    expect(ask(other, [0, 9, 1])).toBeNull();
  });

  test("agents and requests at the same time have caches of their own", () => {
    const body = (...messages: Value[]): Value => ({ system: SYSTEM, messages });
    const { ask } = open();
    ask(body(user(text("one", MARK))), [0, 30]);
    expect(ask(body(user(text("one", MARK))), [0, 30], { agent: "a" })).toBeNull();
    // It came before the first response had begun.
    expect(ask(body(user(text("one", MARK))), [0, 30], { at: START + 10_500 })).toBeNull();
  });

  test("a session that was inferred may mix users: a new question is no changed one", () => {
    const body = (...words: string[]): Value => ({
      system: SYSTEM,
      messages: words.map((word, index) => ({
        role: index % 2 === 0 ? "user" : "assistant",
        content: [text(word, index === words.length - 1 ? MARK : {})],
      })),
    });
    const inferred = { inferred: true };
    const { ask } = open();
    ask(body("hello", "hi", "A"), [0, 20], inferred);
    ask(body("other"), [0, 20], inferred);
    expect(ask(body("hello", "hi", "B", "b", "C"), [10, 12], inferred)).toBeNull();
    expect(ask(body("new", "n", "B2"), [10, 12], inferred)).toBeNull();
    expect(ask(body("hello", "changed", "A", "a", "more"), [5, 20], inferred)).toMatchObject({
      because: "messages_changed",
      at: 2,
    });
  });
});

test("a title that quotes the first message is another conversation than the one it names", () => {
  const { ask } = openSession();
  const tools = [{ name: "Bash", description: "Runs a command." }];
  const title = { system: SYSTEM, messages: [user(text("Write a title:"), text("one", MARK))] };
  const small = { system: SYSTEM, messages: [user(text("one", MARK))] };
  ask(title, [0, 6]);
  ask(small, [0, 5], { model: "small" });
  const body = { tools, system: [text("other", MARK)], messages: [user(text("one", MARK))] };
  expect(ask(body, [0, 20])).toBeNull();
});

test("a summary takes the place of a short conversation, too", () => {
  const { ask } = openSession();
  const context = text("context");
  const words = ["one", "1", "two", "2", "three"].map((word, index) =>
    (index % 2 === 0 ? user : model)(text(word, index === 4 ? MARK : {})),
  );
  ask({ system: SYSTEM, messages: [user(context), ...words] }, [0, 20]);
  const summary = [user(text("summary")), user(context, text("four", MARK))];
  expect(
    ask({ system: [text("system 2", MARK)], messages: [...summary, ...words.slice(1, 3)] }, [0, 19]),
  ).toBeNull();
});

describe("responses", () => {
  test("Codex sends its tools as the first item of the input", () => {
    const tools = (...names: string[]): Value => ({
      type: "additional_tools",
      role: "developer",
      tools: names.map((name) => ({ type: "function", name })),
    });
    const first = [{ type: "message", role: "developer", content: "system" }, item("one")];
    const { ask } = openSession(RESPONSES_LAYOUT);
    ask({ input: [tools("exec"), ...first] }, [0, 0, 20]);
    const changed = { input: [tools("exec", "wait"), ...first, item("two")] };
    expect(ask(changed, [0, 0, 20])).toMatchObject({ because: "tools_changed", at: 1 });
  });

  const item = (content: string): Value => ({ type: "message", role: "user", content });

  test("a request that continues a stored response is compared with that one", () => {
    const { ask } = openSession(RESPONSES_LAYOUT);
    const id = (name: string): number => hashId(name);
    ask({ instructions: "i", input: [item("one")] }, [0, 0, 20], { responseId: id("r1") });
    const second = { instructions: "i", previous_response_id: "r1", input: [item("two")] };
    expect(ask(second, [19.968, 0, 1], { responseId: id("r2") })).toBeNull();
    const third = { instructions: "other", previous_response_id: "r2", input: [item("three")] };
    expect(ask(third, [0, 0, 22], { responseId: id("r3") })).toEqual({
      missed: Math.floor(20_968 / 128) * 128,
      because: "system_changed",
      at: 1,
    });
    expect(ask({ ...third, previous_response_id: "unknown" }, [0, 0, 22])).toBeNull();
  });

  test("what is written for longer is kept for longer", () => {
    for (const [more, minutes, because] of [
      [{}, 5, "lifetime_passed"],
      [{ prompt_cache_retention: "24h" }, 23 * 60, "upstream_lost"],
      [{ prompt_cache_retention: "24h" }, 24 * 60, "lifetime_passed"],
    ] as const) {
      const { ask, wait } = openSession(RESPONSES_LAYOUT);
      const body = { instructions: "i", input: [item("one")], ...more };
      ask(body, [0, 0, 20]);
      ask(body, [19.968, 0, 0.032]);
      wait(minutes * MINUTE);
      expect(ask(body, [0, 0, 20])).toMatchObject({ because });
    }
    const { ask, wait } = openSession(RESPONSES_LAYOUT);
    const body = { instructions: "i", input: [item("one")] };
    ask(body, [0, 20]);
    wait(20 * MINUTE);
    expect(ask(body, [0, 20])).toEqual({ missed: 20_000, because: "upstream_lost" });
  });

  test("a shortfall of a few blocks is what upstreams vary by", () => {
    const { ask } = openSession(RESPONSES_LAYOUT);
    const body = { instructions: "i", input: [item("one")] };
    ask(body, [0, 0, 20]);
    expect(ask(body, [19, 0, 1])).toBeNull();
    expect(ask(body, [17, 0, 3])).toBeNull();
    expect(ask(body, [15, 0, 5])).toMatchObject({ because: "upstream_lost" });
  });

  test("compaction is meant, and so is what the upstream says of it", () => {
    const { ask } = openSession(RESPONSES_LAYOUT);
    const long = ["a", "b", "c", "d", "e", "f"].map(item);
    ask({ instructions: "i", input: long }, [0, 0, 50]);
    expect(ask({ instructions: "i", input: [item("summary"), item("f")] }, [2, 0, 10])).toBeNull();
    const reason = { because: "context_compacted", missed: 9000 };
    expect(ask({ instructions: "i", input: [...long, item("g")] }, [2, 0, 50], { reason })).toBeNull();
  });

  test("a conversation that the upstream holds is not analysed", () => {
    const body = { input: [item("one")], conversation: "conv_1" };
    expect(readPrompt(Buffer.from(JSON.stringify(body)), RESPONSES_LAYOUT)).toBeNull();
  });
});

test("a prompt need not be read where nothing can be missed, and nothing is left", () => {
  const short = { rules: MESSAGES_LAYOUT.rules, model: "m", reason: null };
  const { memory, ask } = openSession();
  const needs = (tokens: Turn["tokens"], given: Pick<Given, "reason"> = {}): boolean =>
    memory.needsPrompt("s", { ...short, tokens, ...given });
  expect(needs({ read: 0, written: 0, total: 0 })).toBe(false);
  const body = { system: SYSTEM, messages: [user(text("one", MARK))] };
  expect(needs({ read: 0, written: 0, total: 4095 })).toBe(false);
  expect(ask(body, [0, 0, 4.095])).toBeNull();
  expect(memory.size.sessions).toBe(0);
  expect(needs({ read: 0, written: 0, total: 4096 })).toBe(true);
  expect(needs({ read: 0, written: 1, total: 100 })).toBe(true);
  expect(needs({ read: 0, written: 0, total: 100 }, { reason: { because: "a", missed: 1 } })).toBe(true);
  expect(ask(body, [0, 20])).toBeNull();
  expect(needs({ read: 0, written: 0, total: 100 })).toBe(true);
});

test("memory is bounded, by prompts of a session, by prompts and by parts", () => {
  const memory = new CacheMemory();
  const { rules } = MESSAGES_LAYOUT;
  const learn = (session: string, count: number, first: string): void => {
    const many = Array.from({ length: count }, (_, index) => text(`${first} ${index}`));
    const body = { system: SYSTEM, messages: [user(...many, text("end", MARK))] };
    const prompt = readPrompt(Buffer.from(JSON.stringify(body)), MESSAGES_LAYOUT)!;
    memory.learn(session, {
      prompt,
      rules,
      tokens: { read: 0, written: 9000, total: 9000 },
      ...FACTS,
      at: START,
      readyAt: START,
      agent: first,
    });
  };
  for (let index = 0; index < 40; index += 1) learn("one", 1, `a${index}`);
  expect(memory.size).toMatchObject({ sessions: 1, kept: 16 });
  for (let index = 0; index < 200; index += 1) learn(`s${index}`, 10_000, `b${index}`);
  expect(memory.size.parts).toBeLessThanOrEqual(1_048_576);
  expect(memory.size.sessions).toBeGreaterThan(90);
  for (let index = 0; index < 9000; index += 1) learn(`t${index}`, 1, "c");
  expect(memory.size.kept).toBe(8192);
});
