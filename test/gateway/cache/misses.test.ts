// Changes prompts in each place, in each dialect. The miss must name the place and the exact count of tokens.
// If the cache was lost for another reason, the miss must name this reason.

import { describe, expect, test } from "bun:test";
import type { Miss } from "../../../src/gateway/cache/judge.ts";
import type { CachingDialect, Counted } from "../../harness/upstreams/caching-upstream.ts";
import {
  type Conversation,
  goOn,
  openConversation,
  textOf,
  writeRequest,
} from "../../harness/conversation.ts";
import { type Change as Turn, DIALECT_NAMES, SECOND, Session } from "./session.ts";

/** Returns the tokens that an unchanged prompt would have read: all that its predecessor left in the cache. */
function leftBy(dialect: CachingDialect, { total, read, written }: Counted): number {
  if (dialect === "messages") return read + written;
  return dialect === "content" ? total : total - (total % 128);
}

/** Returns a conversation of four turns, whose messages are all long enough to count. */
function growing(session: Session): Conversation {
  const talk = openConversation("a", textOf(2400, "first question"), "gemini-2.5-pro");
  expect(session.ask(talk)).toBeNull();
  for (const turn of [1, 2, 3]) {
    goOn(talk, textOf(1200, `answer ${turn}`), textOf(2400, `result ${turn}`));
    expect(session.ask(talk)).toBeNull();
  }
  goOn(talk, textOf(1200, "answer 4"), textOf(2400, "result 4"));
  return talk;
}

type Change = (talk: Conversation) => unknown;
type Cause = (dialect: CachingDialect) => Partial<Miss>;

const tool =
  (at: number, more = {}) =>
  () => ({ because: "tools_changed", at, ...more });
/** In the chat dialect, messages are counted with the two system messages before them. */
const message = (at: number) => (dialect: CachingDialect) => ({
  because: "messages_changed",
  at: dialect === "chat" ? at + 2 : at,
});
/** In the dialects responses and content, the system prompt is one text. */
const system = (at: number) => (dialect: CachingDialect) => ({
  because: "system_changed",
  at: dialect === "messages" || dialect === "chat" ? at : 1,
});

const CHANGES: [title: string, change: Change, expected: Cause][] = [
  ["a changed tool", ({ tools }) => (tools[1] = { ...tools[1], description: textOf(1600, "b") }), tool(2)],
  ["one more tool", ({ tools }) => tools.push({ name: "Grep" }), tool(4, { detail: "added" })],
  ["one tool less", ({ tools }) => tools.pop(), tool(3, { detail: "removed" })],
  ["tools in another order", (talk) => (talk.tools = talk.tools.toReversed()), tool(1, { detail: "order" })],
  ["the second part of the system prompt", (talk) => (talk.system[1] = textOf(6000, "another")), system(2)],
  ["a message in the middle", ({ turns }) => (turns[3]!.text = `${turns[3]!.text}.`), message(4)],
  ["the role of a message", ({ turns }) => (turns[3]!.role = "user"), message(4)],
  ["one more message", ({ turns }) => turns.splice(2, 0, { role: "user", text: "new" }), message(3)],
];

const CLIENTS = DIALECT_NAMES.flatMap((dialect) =>
  (["JavaScript", "Python"] as const).map((writer) => [dialect, writer] as const),
);

describe.each(CLIENTS)("P144: in the dialect %s, with JSON as %s writes it,", (dialect, writer) => {
  test.each(CHANGES)("a miss names the change (%s) and the missed tokens", (_title, change, expected) => {
    const session = new Session(dialect, writer);
    const talk = growing(session);
    const left = leftBy(dialect, session.last);
    change(talk);
    const miss = session.ask(talk);
    const missed = Math.min(left, session.last.total) - session.last.read;
    expect(missed).toBeGreaterThan(128);
    expect({ ...miss }).toEqual({ missed, ...expected(dialect) });
    goOn(talk, textOf(500, "answer 5"), textOf(500, "result 5"));
    expect(session.ask(talk)).toBeNull();
  });

  test("a changed prompt causes a miss in a conversation of one message", () => {
    const session = new Session(dialect, writer);
    const talk = openConversation("a", textOf(4000, "one"), "gemini-2.5-pro");
    session.ask(talk);
    const left = leftBy(dialect, session.last);
    talk.turns[0]!.text = textOf(4000, "two");
    goOn(talk, "answer", "next");
    const miss = session.ask(talk);
    expect(miss).toMatchObject({ missed: left - session.last.read, ...message(1)(dialect) });
  });

  test("a changed prompt causes a miss if only the time in its system prompt differs", () => {
    const session = new Session(dialect, writer);
    const talk = openConversation("a", textOf(400, "one"), "gemini-2.5-pro");
    talk.system[0] = `It is 2026-11-20T10:00:01Z. ${talk.system[0]}`;
    session.ask(talk);
    talk.system[0] = talk.system[0].replace("00:01", "02:17");
    goOn(talk, "answer", "next");
    expect(session.ask(talk)).toMatchObject({ ...system(1)(dialect), detail: "digits" });
  });

  test("a changed prompt causes a miss if the oldest messages are dropped", () => {
    const session = new Session(dialect, writer);
    const talk = growing(session);
    const left = leftBy(dialect, session.last);
    talk.turns.splice(0, 2);
    expect(session.ask(talk)).toMatchObject({ missed: left - session.last.read, ...message(1)(dialect) });
  });

  test("a changed prompt is not blamed if the cache's lifetime has passed", () => {
    const session = new Session(dialect, writer);
    const talk = growing(session);
    const left = leftBy(dialect, session.last);
    session.now += 5 * 60 * SECOND;
    expect(session.ask(talk)).toEqual({ missed: left, because: "lifetime_passed" });
  });

  test("a lost cache is the upstream's fault, unless a member of the request changed", () => {
    const session = new Session(dialect, writer);
    const talk = growing(session);
    const left = leftBy(dialect, session.last);
    session.upstream.lose();
    expect(session.ask(talk)).toEqual({ missed: left, because: "upstream_lost" });
    const changes = (part: string, detail?: string): void => {
      session.upstream.lose();
      const expected = { because: "settings_changed", part, ...(detail && { detail }) };
      expect(session.ask(talk)).toMatchObject(expected);
    };
    for (const name of dialect === "messages" ? ["mcp_servers", "container"] : []) {
      talk.extra[name] = [{ name }];
      changes(name);
    }
    for (const name of ["chat_template_kwargs", "truncation", "generationConfig"]) {
      talk.extra[name] = [{ name }];
      changes(name, "perhaps");
    }
    talk.extra["max_tokens"] = 5;
    session.upstream.lose();
    expect(session.ask(talk)).toMatchObject({ because: "upstream_lost" });
  });

  test("a change late in the prompt is blamed, unless the unchanged part before it was lost too", () => {
    const session = new Session(dialect, writer);
    const talk = growing(session);
    for (const isLost of [false, true]) {
      const left = leftBy(dialect, session.last);
      talk.turns[6]!.text = textOf(2400, `other result ${isLost}`);
      if (isLost) session.upstream.lose();
      const cause = isLost ? { because: "upstream_lost" } : message(7)(dialect);
      expect(session.ask(talk)).toEqual({ missed: left - session.last.read, ...cause });
    }
  });

  test("a lost cache is the upstream's fault, even if each turn changes the message before it", () => {
    const session = new Session(dialect, writer);
    const talk = openConversation("a", "", "gemini-2.5-pro");
    for (const turn of [1, 2, 3, 4]) {
      talk.turns.at(-1)!.text = textOf(2400, `question ${turn}, with a reminder`);
      if (turn === 4) session.upstream.lose();
      const miss = session.ask(talk);
      if (turn === 4) expect(miss).toMatchObject({ because: "upstream_lost" });
      else if (turn > 1) expect(miss).toMatchObject(message(turn * 2 - 3)(dialect));
      talk.turns.at(-1)!.text = textOf(2400, `question ${turn}`);
      goOn(talk, textOf(1200, `answer ${turn}`), "");
    }
  });

  test("a changed system prompt is blamed, even if the previous turn used an older prompt again", () => {
    const session = new Session(dialect, writer);
    const talk = openConversation("a", textOf(2400, "question"), "gemini-2.5-pro");
    const misses = ["plan", "act", "plan", "check"].map((mode) => {
      talk.system[0] = textOf(400, mode);
      goOn(talk, textOf(1200, "answer"), textOf(2400, `next ${mode}`));
      return session.ask(talk);
    });
    expect(misses.at(-1)).toMatchObject(system(1)(dialect));
  });

  test("a changed prompt is not blamed if the model, the channel or the tier changed", () => {
    const session = new Session(dialect, writer);
    const talk = growing(session);
    const ask = (change: Turn, cause: Partial<Miss>): void => {
      const missed = leftBy(dialect, session.last);
      expect({ ...session.ask(talk, change) }).toEqual({ missed, ...cause });
      goOn(talk, textOf(400, "answer"), textOf(400, "next"));
    };
    ask({ channel: "second" }, { because: "channel_changed", from: "main" });
    const other = { channel: "second", model: "other-2.5" };
    ask(other, { because: "model_changed" });
    ask({ ...other, served: "priority" }, { because: "tier_changed" });
    expect(session.ask(talk, { ...other, served: "priority" })).toBeNull();
  });
});

test("if the only message has no mark, a new time in the system prompt causes a miss", () => {
  const session = new Session("messages");
  const ask = (time: string): Miss | null => {
    const talk = openConversation("a", "");
    talk.system[0] = `It is 2026-11-20T${time}Z. ${talk.system[0]}`;
    const messages = [{ role: "user", content: `What happened at ${time}?` }];
    return session.send({ ...writeRequest("messages", talk), messages });
  };
  expect(ask("10:00:01")).toBeNull();
  expect(ask("10:02:17")).toMatchObject({ because: "system_changed", at: 1, detail: "digits" });
});

test("a mark too far from what was cached is blamed, and not the upstream", () => {
  const session = new Session("messages");
  const talk = growing(session);
  talk.turns[6]!.text = textOf(2400, "other result");
  expect(session.ask(talk)).toMatchObject({ because: "messages_changed" });
  for (let turn = 0; turn < 10; turn += 1) goOn(talk, "answer", "next");
  expect(session.ask(talk)).toMatchObject({ because: "marks_changed" });
});

test.each<[string, string, (talk: Conversation, turn: number) => void]>([
  ["thinking", "settings_changed", ({ extra }, turn) => (extra["thinking"] = { budget_tokens: turn })],
  ["tool_choice", "settings_changed", ({ extra }, turn) => (extra["tool_choice"] = { name: `${turn}` })],
  ["the system prompt", "system_changed", ({ system }, turn) => (system[0] = textOf(400, `${turn}`))],
])("a change of %s in each turn is not blamed for what the upstream lost", (_name, because, change) => {
  for (const isMarked of [true, false]) {
    const session = new Session("messages");
    const talk = openConversation("a", textOf(2400, "first question"));
    talk.tools[2] = { name: textOf(6000, "tool"), cache_control: { type: "ephemeral" } };
    for (const turn of [1, 2, 3, 4]) {
      change(talk, turn);
      if (turn === 4) session.upstream.lose();
      const body = writeRequest("messages", talk);
      const messages = talk.turns.map(({ role, text }) => ({ role, content: text }));
      const miss = session.send(isMarked ? body : { ...body, messages });
      if (turn === 4) expect(miss).toMatchObject({ because: "upstream_lost" });
      else if (turn > 1 && isMarked) expect(miss).toMatchObject({ because });
      goOn(talk, textOf(1200, `answer ${turn}`), textOf(2400, `question ${turn}`));
    }
  }
});

test("P144: a miss says marks_changed if the request marks nothing behind the cached part", () => {
  const session = new Session("messages");
  const talk = growing(session);
  const messages = talk.turns.map(({ role, text: content }) => ({ role, content }));
  const miss = session.send({ ...writeRequest("messages", talk), messages });
  expect(miss).toMatchObject({ because: "marks_changed" });
});
