// Logs belong to other programs, and may hold anything.

import { describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readHistory } from "../../../src/billing/history/read-history.ts";
import { readLoggedUsage } from "../../../src/dialects/meters/logged.ts";
import { CLAUDE, claudeRow, CODEX, codexRows, makeHome, read, readEntries } from "./made-logs.ts";

const { meta, turn, record } = codexRows;

test("P51: logs are read in the folder that a tool's variable names, and below ~/.config", () => {
  const home = makeHome({
    "here/projects/p/a.jsonl": [claudeRow()],
    "there/archived_sessions/b.jsonl": [meta("t1"), turn("u1"), record("r1", [10, 0, 5], [10, 0, 5])],
  });
  const env = { HOME: "/nowhere", CLAUDE_CONFIG_DIR: join(home, "here"), CODEX_HOME: join(home, "there") };
  expect(readHistory({ env, usageOf: readLoggedUsage }).entries.size).toBe(2);
  expect(read(makeHome({ ".config/claude/projects/p/a.jsonl": [claudeRow()] })).entries.size).toBe(1);
});

describe("hostile logs do no harm, and the other logs are read", () => {
  test("a line that is not JSON is counted as damaged, and the next one is read", () => {
    const text = `{"type":"assistant","message":{"usage":{}\n${JSON.stringify(claudeRow())}\n`;
    const history = read(makeHome({ [`${CLAUDE}/a.jsonl`]: text }));
    expect([history.entries.size, history.damaged]).toEqual([1, 1]);
  });

  test("a line that is being written is left out, and counts when it is complete", () => {
    const line = `${JSON.stringify(claudeRow())}\n`;
    const home = makeHome({ [`${CLAUDE}/a.jsonl`]: line.slice(0, -40) });
    expect(read(home)).toMatchObject({ damaged: 0, entries: new Map() });
    appendFileSync(join(home, CLAUDE, "a.jsonl"), line.slice(-40));
    expect(read(home).entries.size).toBe(1);
  });

  test("a line of 40 MB is left out, and counted as too long", () => {
    const huge = JSON.stringify(claudeRow({ id: "msg_9", padding: "x".repeat(40 << 20) }));
    const home = makeHome({ [`${CLAUDE}/a.jsonl`]: `${huge}\n${JSON.stringify(claudeRow())}\n` });
    const history = read(home);
    expect([[...history.entries.values()].map(({ requestId }) => requestId), history.tooLong]).toEqual([
      ["req_msg_1"],
      1,
    ]);
  });

  test.each([
    ["a negative count", { input_tokens: 10, output_tokens: -5 }],
    ["a count in words", { input_tokens: "many", output_tokens: 5 }],
    ["a count beyond 2^53", { input_tokens: 1e300, output_tokens: 5 }],
    ["a fraction", { input_tokens: 1.5, output_tokens: 5 }],
  ])("%s in a log is not taken for 0: the answer's usage is unknown", (_, usage) => {
    expect(readEntries({ [`${CLAUDE}/a.jsonl`]: [claudeRow({ usage })] })).toMatchObject([
      { basis: "unknown", usage: {} },
    ]);
  });

  test("a negative count in a log of Codex is not taken for 0: the response's usage is unknown", () => {
    const rows = [meta("t1"), turn("u1"), record("r1", [10, 0, -5], [10, 0, -5])];
    expect(readEntries({ [`${CODEX}/a.jsonl`]: rows })).toMatchObject([{ basis: "unknown" }]);
  });

  test.each([
    ["no time", { timestamp: undefined }],
    ["a time that cannot be read", { timestamp: { $date: 1 } }],
    ["a time long ago", { timestamp: "0001-01-01T00:00:00Z" }],
  ])("an answer with %s is counted as damaged", (_, row) => {
    expect(read(makeHome({ [`${CLAUDE}/a.jsonl`]: [claudeRow(row)] }))).toMatchObject({
      damaged: 1,
      entries: new Map(),
    });
  });

  test("fields of a wrong type, and names of a megabyte, count as missing", () => {
    const odd = claudeRow({
      sessionId: 7,
      cwd: ["/"],
      agentId: "x".repeat(1 << 20),
      requestId: {},
      model: 5,
    });
    expect(readEntries({ [`${CLAUDE}/a.jsonl`]: [odd, [], null, 7, "text"].map(Object) })).toMatchObject([
      { session: "", project: "", model: "" },
    ]);
  });

  test("links below a folder of logs are not followed, but the folder itself may be a link", () => {
    const home = makeHome({
      "elsewhere/a.jsonl": [claudeRow()],
      "real/p/b.jsonl": [claudeRow({ id: "msg_2" })],
    });
    mkdirSync(join(home, ".claude"));
    symlinkSync(join(home, "real"), join(home, ".claude/projects"));
    symlinkSync(join(home, "elsewhere"), join(home, "real/link"));
    symlinkSync(join(home, "real"), join(home, "real/circle"));
    symlinkSync(join(home, "elsewhere/a.jsonl"), join(home, "real/p/c.jsonl"));
    expect([...read(home).entries.values()].map(({ requestId }) => requestId)).toEqual(["req_msg_2"]);
  });

  test.skipIf(process.platform === "win32")("a pipe with the name of a log does not block the reader", () => {
    const home = makeHome({ [`${CLAUDE}/a.jsonl`]: [claudeRow()] });
    expect(Bun.spawnSync(["mkfifo", join(home, CLAUDE, "b.jsonl")]).exitCode).toBe(0);
    mkdirSync(join(home, ".gemini/tmp/app/chats"), { recursive: true });
    expect(Bun.spawnSync(["mkfifo", join(home, ".gemini/tmp/app/.project_root")]).exitCode).toBe(0);
    writeFileSync(join(home, ".gemini/tmp/app/chats/session-1.jsonl"), "{}\n");
    expect(read(home).entries.size).toBe(1);
  });

  test("a folder that cannot be listed is named, and the others are read", () => {
    const home = makeHome({
      ".claude/projects": "in the way",
      [`${CODEX}/a.jsonl`]: [meta("t1"), turn("u1"), record("r1", [10, 0, 5], [10, 0, 5])],
    });
    const { unread, entries } = read(home);
    expect([entries.size, unread]).toEqual([1, [expect.stringContaining("/.claude/projects: ")]]);
  });

  test("a machine without logs has no entries", () => {
    expect(read("/nonexistent")).toMatchObject({ damaged: 0, unread: [], entries: new Map() });
  });
});
