// Tests which requests of a replay count as a recorded one.

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { makeTempFolder } from "../harness/temp.ts";
import { Replay } from "../../src/recording/replay.ts";
import { openRecording } from "../../src/recording/store.ts";
import { findDifference, readComparable } from "../../src/recording/match.ts";

function compare(recorded: unknown, sent: unknown): string | null {
  const [one, other] = [recorded, sent]
    .map((value) => (typeof value === "string" ? prompt(value) : value))
    .map((value) => readComparable(Buffer.from(JSON.stringify(value))));
  return one === undefined || other === undefined ? "" : (findDifference(one, other)?.path ?? null);
}

function prompt(text: string, more: object = {}): object {
  return { model: "m", messages: [{ role: "user", content: [{ type: "text", text }] }], ...more };
}

describe("P180: requests of two runs count as the same if only ids, times, folders and the like differ", () => {
  const pairs: ReadonlyArray<readonly [what: string, recorded: unknown, sent: unknown]> = [
    ["an id", "session 0b0c0d0e-1111-4222-8333-444455556666", "session 9b0c0d0e-1111-4222-8333-444455556660"],
    ["a day", "Today's date is 2026-11-23.", "Today's date is 2027-01-02."],
    ["a day in words", "It is Monday, November 23, 2026", "It is Tuesday, January 5, 2027"],
    ["a moment", "at 2026-11-23T21:00:00.123Z", "at 2026-11-24T07:10:09Z"],
    ["a duration", "12ms, 3.5 seconds, duration_ms: 7", "345ms, 10 seconds, duration_ms: 99"],
    ["a temporary folder", "ls /tmp/run-a1b2/src", "ls /tmp/run-zzz/src"],
    ["the agent's home", "see /srv/ann/.codex/x and /srv/ann/app", "see /ci/.codex/x and /ci/app"],
    ["the user's folder", "/home/ann/app/x.ts", "/home/runner/app/x.ts"],
    [
      "the folders of Windows",
      String.raw`Working directory: D:\app. Memory: D:\ann\.claude\projects\D--app\m, D:\ann\x in D:\app\a`,
      String.raw`Working directory: C:\w. Memory: C:\Users\me\.claude\projects\C--w\m, C:\Users\me\x in C:\w\a`,
    ],
    [
      "the working folder, wherever it is named",
      "Working directory: /srv/one/app\nread /srv/one/app/src/a.ts",
      "Working directory: /builds/7/app\nread /builds/7/app/src/a.ts",
    ],
    ["Codex's working folder", "<cwd>/srv/one</cwd> in /srv/one/a", "<cwd>/two</cwd> in /two/a"],
    [
      "Gemini CLI's working folder",
      "- **Workspace Directories:**\n  - /srv/one/app\n\n/srv/one/app/\n├───a.txt",
      "- **Workspace Directories:**\n  - /builds/7/app\n\n/builds/7/app/\n├───a.txt",
    ],
    [
      "folders with blanks in their paths",
      "Working directory: /srv/my app\nsee `/srv/ann lee/.codex/x` and <cwd>/srv/my app</cwd>, /srv/ann lee/n",
      "Working directory: /w\nsee `/srv/bob/.codex/x` and <cwd>/w</cwd>, /srv/bob/n",
    ],
    [
      "the home that `gateway run` made for the tool",
      "temporary: /scratch/gateway-run-3U3YDc/.gemini/tmp",
      "temporary: /scratch/gateway-run-zz0000/.gemini/tmp",
    ],
    [
      "Claude Code's name of a project",
      "memory: /home/ann/.claude/projects/-srv-one-app/memory/, /tmp/claude-0/-srv-one-app/tasks",
      "memory: /home/me/.claude/projects/-builds-7-app/memory/, /tmp/claude-501/-builds-7-app/tasks",
    ],
    ["a member for a clock", prompt("a", { duration_ms: 3 }), prompt("a", { duration_ms: 99 })],
    [
      "the user's id",
      prompt("a", { metadata: { user_id: "x" } }),
      prompt("a", { metadata: { user_id: "y" } }),
    ],
    ["a secret that the recording masks", "the key is ************ here", "the key is sk-very-secret here"],
  ];
  test.each(pairs)("two requests that differ only in %s count as the same", (_, recorded, sent) => {
    expect(compare(recorded, sent)).toBeNull();
  });
});

describe("a request is not the recorded one, and the first difference is named", () => {
  const pairs: ReadonlyArray<readonly [path: string, recorded: unknown, sent: unknown]> = [
    ["model", { model: "a" }, { model: "b" }],
    ["messages[0].content[0].text", "Hello", "Hello!"],
    ["messages[1]", { messages: [1] }, { messages: [1, 2] }],
    ["temperature", {}, { temperature: 1 }],
    ["messages[0].content[0].text", "read /srv/a.ts", "read /srv/b.ts"],
    [
      "messages[0].content[0].text",
      "Working directory: /srv/a and there do the first thing",
      "Working directory: /srv/b and there do the second thing",
    ],
    ["messages[0].content[0].text", "the key is ************ here", "the key is sk-very-secret there"],
    ["messages[0].content[0].text", "in 3 steps", "in 4 steps"],
  ];
  test.each(pairs)("the first difference between two requests is found at %s", (path, recorded, sent) => {
    expect(compare(recorded, sent)).toBe(path);
  });
});

test("the description of a difference shows both texts, with … in place of a clock time", () => {
  const [one, other] = ["at 10:00:00 Hello", "at 11:30:00 Goodbye"].map((text) =>
    readComparable(Buffer.from(JSON.stringify(prompt(text)))),
  );
  if (one === undefined || other === undefined) throw new Error("nothing to compare");
  expect(findDifference(one, other)).toMatchObject({ recorded: "at … Hello", sent: "at … Goodbye" });
});

test("bodies that are not JSON count as the same only if all bytes are equal", () => {
  const [one, other] = [readComparable(Buffer.from("a=1")), readComparable(Buffer.from("a=2"))];
  expect(findDifference(one, one)).toBeNull();
  expect(findDifference(one, other)?.path).toBe("the body");
});

test("a prompt that names 20,000 working folders is compared within five seconds", () => {
  const text = Array.from({ length: 20_000 }, (_, index) => `Working directory: /w${index}`).join("\n");
  const started = performance.now();
  expect(compare(prompt(text), prompt(`${text} and more`))).toBe("messages[0].content[0].text");
  expect(performance.now() - started).toBeLessThan(5000);
});

test.each<[what: string, change: Record<string, unknown>, damaged: number]>([
  ["that is complete", {}, 0],
  ["with an amount that is not a number", { line: { charge_usd: "abc" } }, 1],
  ["with a million chunks without bytes", { chunks: Array.from({ length: 1e6 }, () => [0, 0]) }, 1],
  ["with a field of two lines", { fields: [["x", "a\r\nb: c"]] }, 1],
  ["whose answer is cut", { chunks: [[0, 4]] }, 1],
  ["under the name of another exchange", { id: "b" }, 1],
])("P180: a replay serves only whole, recorded exchanges (here one %s)", (_, change, damaged) => {
  const { line = null, chunks = [[0, 3]], id = "a", fields = [] } = change;
  const request = { method: "GET", target: "/", fields: [], pieces: [] };
  const response = { status: 200, fields, chunks, end: "whole" };
  const head = { v: 2, id, time: "2026-11-28T10:00:00Z", key: "k", request, response, duration_ms: 1, line };
  using folder = makeTempFolder();
  writeFileSync(folder.join("a.exchange"), `${JSON.stringify(head)}\nabc`, { mode: 0o600 });
  const before = process.memoryUsage.rss();
  const recording = openRecording(folder.path)!;
  expect(process.memoryUsage.rss() - before).toBeLessThan(500e6);
  expect([recording.exchanges.length, recording.damaged]).toEqual([1 - damaged, damaged]);
  const bodies = recording.exchanges.map((each) => recording.readResponse(each).toString());
  expect(bodies).toEqual(damaged === 0 ? ["abc"] : []);
  const replay = new Replay(recording);
  replay.find({ method: "GET", target: "/other", body: new Uint8Array(0) });
  expect(replay.misses).toBe(1);
});
