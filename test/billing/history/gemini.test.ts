import { expect, test } from "bun:test";
import { makeHome, read, readEntries, usages } from "./made-logs.ts";

const CHATS = ".gemini/tmp/app/chats";
const ID = "aaaaaaaa-0000-4000-8000-000000000001";

const message = (id: string, more: object = {}) => ({
  id,
  timestamp: "2026-11-20T10:00:00.000Z",
  type: "gemini",
  content: "Hello.",
  tokens: { input: 100, output: 10, cached: 40, thoughts: 5, tool: 3, total: 118 },
  model: "gemini-3-pro",
  ...more,
});
const head = { sessionId: ID, kind: "main" };

test("P51, P52: Gemini CLI's messages count once, though tools' results and a resumed session repeat them", () => {
  const again = message("m1", { timestamp: "2026-11-21T10:00:00.000Z" });
  const rows = [
    head,
    message("m1"),
    message("m1", { toolCalls: [] }),
    head,
    { $set: { messages: [again] } },
    message("m2"),
  ];
  const files = { [`${CHATS}/session-1.jsonl`]: rows, ".gemini/tmp/app/.project_root": "/home/user/app\n" };
  const entries = readEntries(files);
  const counted = { input: 60, cache_read: 40, tool_prompt: 3, output: 15, reasoning: 5 };
  expect(usages(entries)).toEqual([counted, counted]);
  expect(entries[0]).toMatchObject({
    tool: "gemini-cli",
    session: ID,
    model: "gemini-3-pro",
    project: "/home/user/app",
    time: Date.parse("2026-11-20T10:00:00.000Z"),
  });
});

test("an answer that a forked session repeats is counted once, for the original session", () => {
  const fork = "bbbbbbbb-0000-4000-8000-000000000002";
  const entries = readEntries({
    [`${CHATS}/session-1.jsonl`]: [head, message("m1")],
    [`${CHATS}/session-2.jsonl`]: [{ ...head, sessionId: fork }, message("m1"), message("m2")],
  });
  expect(entries.map(({ session }) => session)).toEqual([ID, fork]);
});

test("a subagent's chat belongs to the session that its folder names", () => {
  const sub = [{ sessionId: "sub", kind: "subagent" }, message("m3")];
  const [entry] = readEntries({ [`${CHATS}/${ID}/sub.jsonl`]: sub });
  expect(entry).toMatchObject({ session: ID, agent: "sub" });
});

test("a chat in one JSON object, as older versions wrote it, is read even if it is cut off or large", () => {
  const long = { id: "u", type: "user", content: "x".repeat(3_000_000) };
  const text = JSON.stringify({ sessionId: ID, messages: [long, message("m1"), message("m2")] }, null, 2);
  const entries = readEntries({ [`${CHATS}/session-1.json`]: text });
  expect(entries.map(({ session }) => session)).toEqual([ID, ID]);
  const cut = text.slice(0, text.indexOf('"m2"') + 4);
  expect(readEntries({ [`${CHATS}/session-1.json`]: cut }).length).toBe(1);
});

test("files next to the chats are not read", () => {
  const home = makeHome({
    ".gemini/tmp/app/logs.jsonl": [message("m1")],
    ".gemini/tmp/app/logs/x.json": "{",
  });
  expect(read(home)).toMatchObject({ damaged: 0, unread: [] });
});
