// Recorded requests have no cache miss: neither in their sessions, with the usage that providers reported,
// nor when each request is continued as an ordinary conversation.

import { describe, expect, test } from "bun:test";
import { countPrompt, sumUsage } from "../../../src/billing/usage.ts";
import { chat } from "../../../src/dialects/formats/chat.ts";
import { content } from "../../../src/dialects/formats/content.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { readPrompt } from "./prompt.ts";
import { responses } from "../../../src/dialects/formats/responses.ts";
import { CacheMemory } from "../../../src/gateway/cache/memory.ts";
import { type Fixture, hasFixtures, listFixtures, readFixture, readRequest } from "../../harness/fixtures.ts";
import { textOf } from "../../harness/conversation.ts";
import { DIALECT_NAMES, Session } from "./session.ts";

const DIALECT_OF: Readonly<Record<Fixture["family"], Dialect>> = {
  anthropic: messages,
  "openai-responses": responses,
  "openai-chat": chat,
  gemini: content,
};

const recorded = listFixtures(({ request_file }) => request_file !== undefined);

/** Recordings whose names differ only in the number at the end are one session: they come from one test of a project. */
function groupSessions(): Map<string, Fixture[]> {
  const sessions = new Map<string, Fixture[]>();
  for (const fixture of recorded) {
    const name = fixture.id.replace(/-\d+$/, "");
    sessions.set(name, [...(sessions.get(name) ?? []), fixture]);
  }
  return sessions;
}

describe.skipIf(!hasFixtures)("recorded requests are read as prompts, and have no cache miss", () => {
  test("recorded requests can all be read as prompts, if they have messages", () => {
    const unread = recorded.filter(
      (fixture) => readPrompt(readRequest(fixture), DIALECT_OF[fixture.family].promptLayout) === null,
    );
    const known = /count|compact|embed|conversation|retrieve|cancel|input_items/i;
    expect(unread.map(({ id }) => id).filter((id) => !known.test(id))).toEqual([
      "openai-chat/envoy-ai-gateway--chat-no-messages",
    ]);
    expect(recorded.length - unread.length).toBeGreaterThan(400);
  });

  test("recorded requests have no miss, judged by the usage in their recorded answers", () => {
    const memory = new CacheMemory();
    const misses: unknown[] = [];
    let now = Date.UTC(2026, 10, 20);
    for (const [session, fixtures] of groupSessions()) {
      for (const fixture of fixtures) {
        const dialect = DIALECT_OF[fixture.family];
        const meter = dialect.openMeter(
          fixture.file.endsWith(".sse") ? "text/event-stream" : "application/json",
        );
        meter.see(readFixture(fixture));
        const { parts, stored, loops = false, cacheReason = null } = meter.read();
        const prompt = readPrompt(readRequest(fixture), dialect.promptLayout);
        now += 10_000;
        if (prompt === null || parts.length !== 1 || loops) continue;
        const miss = memory.learn(session, {
          prompt,
          rules: dialect.promptLayout.rules,
          agent: null,
          inferred: false,
          model: fixture.model,
          channel: "main",
          served: "",
          tokens: countPrompt(sumUsage(parts)),
          reason: cacheReason,
          isKeptLong: false,
          dropsAttribution: true,
          responseId: stored === undefined ? null : Number(Bun.hash.wyhash(JSON.stringify(stored.id))),
          at: now,
          readyAt: now + 1000,
        });
        if (miss !== null) misses.push({ id: fixture.id, miss });
      }
    }
    expect(misses).toEqual([]);
  });

  test.each(["anthropic", "openai-responses", "openai-chat", "gemini"] as const)(
    "recorded requests of %s have no miss when each is continued for six turns",
    (family) => {
      const session = new Session(DIALECT_NAMES.find((name) => name === DIALECT_OF[family].name)!);
      for (const fixture of recorded.filter((each) => each.family === family)) {
        const body: Record<string, unknown> = JSON.parse(readRequest(fixture).toString());
        const list = family === "gemini" ? "contents" : family === "openai-responses" ? "input" : "messages";
        const isHeld = body["conversation"] !== undefined || body["previous_response_id"] !== undefined;
        if (!Array.isArray(body[list]) || body[list].length === 0 || isHeld) continue;
        const turns: unknown[] = [...body[list]];
        for (let turn = 0; turn < 6; turn += 1) {
          const miss = session.send({ ...body, [list]: turns }, { model: "m-2.5" }, fixture.id);
          expect({ id: fixture.id, turn, miss }).toEqual({ id: fixture.id, turn, miss: null });
          turns.push(...nextTurn(family, `${fixture.id} ${turn}`));
        }
      }
    },
  );
});

function nextTurn(family: Fixture["family"], seed: string): unknown[] {
  return [1, 2].map((index) => {
    const text = textOf(3000, `${seed} ${index}`);
    const role = index === 1 ? (family === "gemini" ? "model" : "assistant") : "user";
    if (family === "gemini") return { role, parts: [{ text }] };
    if (family !== "anthropic") return { role, content: text };
    const mark = { cache_control: { type: "ephemeral" } };
    return { role, content: [{ type: "text", text, ...(index === 2 && mark) }] };
  });
}
