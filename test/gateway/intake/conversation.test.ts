import { describe, expect, test } from "bun:test";
import {
  CONTENT_LAYOUT,
  type Layout,
  MESSAGES_LAYOUT,
  RESPONSES_LAYOUT,
} from "../../../src/dialects/prompt/layouts.ts";
import { scanBody } from "../../harness/prompt.ts";
import { isObject } from "../../../src/lib/json/json.ts";
import { readClient } from "../../../src/gateway/intake/client.ts";
import { Conversations, nameConversation } from "../../../src/gateway/intake/conversation.ts";

/** The members of all dialects. */
const ANY: Layout = {
  ...CONTENT_LAYOUT,
  members: new Map([...MESSAGES_LAYOUT.members, ...RESPONSES_LAYOUT.members, ...CONTENT_LAYOUT.members]),
};

/** The fields that identify a session. */
function read(fields: Record<string, string>, body: unknown): string | null {
  const plain = body === null ? null : Buffer.from(JSON.stringify(body));
  const member = (name: string): string | undefined =>
    isObject(body) && name in body ? JSON.stringify(body[name]) : undefined;
  const scanned = plain && scanBody(plain, ANY);
  return nameConversation(readClient({ field: (name) => fields[name], member }), scanned);
}

describe("a conversation is identified by what its client sends", () => {
  test.each<[string, Record<string, string>, unknown, string]>([
    ["Claude Code", { "x-claude-code-session-id": "s-1" }, {}, "s-1"],
    ["Codex", { "session-id": "s-2", "thread-id": "t" }, { prompt_cache_key: "k" }, "s-2"],
    ["pi", { session_id: "s-3" }, {}, "s-3"],
    ["opencode", { "x-session-id": "s-4", "x-session-affinity": "s-4" }, {}, "s-4"],
    [
      "Claude Code without the field",
      { "user-agent": "claude-cli/2.1.330" },
      { metadata: { user_id: JSON.stringify({ device_id: "d", session_id: "s-5" }) } },
      "s-5",
    ],
    [
      "a tool with the field of another one",
      { "x-conversation-id": "s-6" },
      { prompt_cache_key: "k" },
      "s-6",
    ],
    ["a thread", { "thread-id": "s-7" }, {}, "s-7"],
    ["any metadata.user_id", {}, { metadata: { user_id: "user_1_session_2" } }, "user_1_session_2"],
    ["prompt_cache_key", {}, { prompt_cache_key: "key" }, "key"],
  ])("%s", (_, fields, body, session) => {
    expect(read(fields, body)).toBe(session);
  });

  test("long names are shortened and stay different", () => {
    const [one, two] = ["1", "2"].map((end) => read({ "session-id": "x".repeat(5000) + end }, null));
    const key = read({}, { prompt_cache_key: "x".repeat(5000) });
    expect(key?.length).toBeLessThan(20);
    expect(one?.length).toBe(64);
    expect(one).not.toBe(two!);
  });

  const user = (text: string) => ({ role: "user", content: text });
  const contents = (text: string) => [{ role: "user", parts: [{ text }] }];

  test.each<[string, unknown, unknown, unknown]>([
    [
      "messages",
      { system: "S", messages: [user("a")] },
      { system: "S", messages: [user("a"), { role: "assistant", content: "b" }, user("c")] },
      { system: "S", messages: [user("b")] },
    ],
    [
      "chat, whose first message is everyone's",
      { messages: [{ role: "system", content: "S" }, user("a")] },
      { messages: [{ role: "system", content: "S" }, user("a"), { role: "assistant", content: "b" }] },
      { messages: [{ role: "system", content: "S" }, user("b")] },
    ],
    [
      "responses",
      { instructions: "S", input: [{ type: "message", ...user("a") }] },
      {
        instructions: "S",
        input: [
          { type: "message", ...user("a") },
          { type: "reasoning", id: "r" },
        ],
      },
      { instructions: "S", input: [{ type: "message", ...user("b") }] },
    ],
    [
      "content",
      { systemInstruction: { parts: [] }, contents: contents("a") },
      { systemInstruction: { parts: [] }, contents: [...contents("a"), { role: "model", parts: [] }] },
      { systemInstruction: { parts: [] }, contents: contents("b") },
    ],
    ["an input that is a text", { input: "a" }, { input: "a" }, { input: "b" }],
  ])("else by its beginning, which later turns repeat: %s", (_, first, later, other) => {
    const session = read({}, first);
    expect(session).not.toBeNull();
    expect(read({}, later)).toBe(session);
    expect(read({}, other)).not.toBe(session);
  });

  test("a first message of megabytes counts by its beginning, in each turn", () => {
    const say = (beginning: string, more: readonly string[]) => {
      const contents = [beginning + "x".repeat(3_000_000), ...more];
      return read({}, { messages: contents.map((content) => ({ role: "user", content })) });
    };
    expect(say("a", [])).not.toBeNull();
    expect(say("a", ["b", "c"])).toBe(say("a", []));
    expect(say("d", [])).not.toBe(say("a", []));
  });

  test("requests without a prompt have no conversation", () => {
    expect(read({}, { model: "m" })).toBeNull();
    expect(read({}, null)).toBeNull();
    expect(read({}, [1])).toBeNull();
  });
});

describe("the channel of a conversation", () => {
  test("is remembered, and forgotten after an hour without a request", () => {
    const sessions = new Conversations();
    sessions.keep("s", "a", 0);
    expect(sessions.find("s", 1000)).toBe("a");
    sessions.keep("s", "b", 1000);
    expect(sessions.find("s", 3_600_000)).toBe("b");
    expect(sessions.find("s", 3_601_001)).toBeNull();
    sessions.keep("t", "a", 8_000_000);
    expect(sessions.size).toBe(1);
  });

  test("takes bounded memory: the least recently used are forgotten first", () => {
    const sessions = new Conversations();
    for (let count = 0; count < 30_000; count += 1) sessions.keep(`s${count}`, "a", count);
    expect(sessions.size).toBe(20_000);
    expect(sessions.find("s9999", 30_000)).toBeNull();
    expect(sessions.find("s10000", 30_000)).toBe("a");
  });
});
