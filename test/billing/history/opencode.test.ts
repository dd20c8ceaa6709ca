import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeHome, read, readEntries, usages } from "./made-logs.ts";

const FOLDER = ".local/share/opencode";

const message = (created: number, more: object = {}) => ({
  role: "assistant",
  sessionID: "ses_1",
  modelID: "claude-sonnet-4-5",
  providerID: "anthropic",
  path: { cwd: "/home/user/project", root: "/" },
  cost: 0.02,
  tokens: { input: 5, output: 20, reasoning: 4, cache: { read: 70, write: 30 } },
  time: { created, completed: created + 5 },
  ...more,
});
const T = Date.parse("2026-11-20T10:00:00.000Z");

function addDatabase(
  home: string,
  rows: readonly (readonly [id: string, session: string, data: string])[],
): Database {
  mkdirSync(join(home, FOLDER), { recursive: true });
  const database = new Database(join(home, FOLDER, "opencode.db"));
  database.run("PRAGMA journal_mode = WAL");
  database.run("CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT)");
  for (const row of rows) database.run("INSERT INTO message VALUES (?, ?, ?)", [...row]);
  return database;
}

test("P51, P52: opencode's messages are read from its files and from its database, and each counts once", () => {
  const home = makeHome({
    [`${FOLDER}/storage/message/ses_1/msg_1.json`]: JSON.stringify({ id: "msg_1", ...message(T) }, null, 2),
  });
  // A fork copies messages under new ids.
  const rows = [
    ["msg_1", "ses_1", JSON.stringify(message(T))],
    ["msg_9", "ses_fork", JSON.stringify(message(T))],
    ["msg_2", "ses_1", JSON.stringify(message(T + 60_000))],
  ] as const;
  addDatabase(home, rows).close();
  const entries = [...read(home).entries.values()];
  const counted = { input: 5, cache_read: 70, cache_write_5m: 30, output: 24, reasoning: 4 };
  expect(usages(entries)).toEqual([counted, counted]);
  expect(entries.map(({ session, project, provider }) => [session, project, provider])).toEqual(
    Array.from({ length: 2 }, () => ["ses_1", "/home/user/project", "anthropic"]),
  );
});

test("the history reads what a running opencode has just written, and puts no file into its folder", () => {
  const home = makeHome({});
  const open = addDatabase(home, [["msg_1", "ses_1", JSON.stringify(message(T))]]);
  expect(read(home).entries.size).toBe(1);
  open.close();
  const before = readdirSync(join(home, FOLDER));
  expect(read(home).entries.size).toBe(1);
  expect(readdirSync(join(home, FOLDER))).toEqual(before);
});

test("tokens are counted in the kinds that the model's provider reports", () => {
  const providerID = "openai";
  const files = {
    [`${FOLDER}/storage/message/s/m.json`]: JSON.stringify(message(T, { providerID, modelID: "gpt-5.5" })),
  };
  expect(usages(readEntries(files))).toEqual([
    { input: 5, cache_read: 70, cache_write: 30, output: 24, reasoning: 4 },
  ]);
});

test.each([
  ["an answer that failed", { tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } } }],
  ["a message of the user", { role: "user" }],
])("%s is not counted as an answer", (_, more) => {
  expect(readEntries({ [`${FOLDER}/storage/message/s/m.json`]: JSON.stringify(message(T, more)) })).toEqual(
    [],
  );
});

test("a file is skipped if it is no database, a row is skipped if it is not JSON, and the other rows are read", () => {
  const home = makeHome({
    [`${FOLDER}/opencode-dev.db`]: "this is not a database, though it has the name of one",
  });
  addDatabase(home, [
    ["msg_1", "ses_1", '{"tokens": damaged'],
    ["msg_2", "ses_1", JSON.stringify(message(T))],
  ]).close();
  const history = read(home);
  expect([history.entries.size, history.damaged, history.unread.length]).toEqual([1, 1, 1]);
});
