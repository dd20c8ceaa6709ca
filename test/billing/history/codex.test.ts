import { expect, test } from "bun:test";
import { CODEX, codexRows, PROJECT, readEntries, usages } from "./made-logs.ts";

const { meta, turn, count, record } = codexRows;

test("P51: Codex' counts are cumulative: each response used the difference", () => {
  const rows = [
    meta("t1"),
    turn("u1"),
    count([100, 0, 10], [100, 0, 10]),
    count([250, 90, 30], [150, 90, 20]),
  ];
  const entries = readEntries({ [`${CODEX}/rollout-a.jsonl`]: rows });
  expect(usages(entries)).toEqual([
    { input: 100, output: 10 },
    { input: 60, cache_read: 90, output: 20 },
  ]);
  expect(entries[0]).toMatchObject({ tool: "codex", session: "t1", model: "gpt-5.5", project: PROJECT });
});

test("P52: if a record repeats the cumulative count, it adds nothing, even if it also counts a last response", () => {
  const rows = [meta("t1"), turn("u1"), count([100, 0, 10], [100, 0, 10]), count([100, 0, 10], [100, 0, 10])];
  const again = [turn("u2"), count([100, 0, 10], [100, 0, 10]), count([100, 0, 10], [0, 0, 0])];
  expect(usages(readEntries({ [`${CODEX}/a.jsonl`]: [...rows, ...again] }))).toEqual([
    { input: 100, output: 10 },
  ]);
});

test("cumulative counts that start again from a smaller number make no negative usage", () => {
  const rows = [meta("t1"), turn("u1"), count([100, 0, 10], [100, 0, 10]), count([40, 0, 5], [40, 0, 5])];
  expect(usages(readEntries({ [`${CODEX}/a.jsonl`]: rows }))).toEqual([
    { input: 100, output: 10 },
    { input: 40, output: 5 },
  ]);
});

test("if a response has several records, only the last counts, and the cumulative counts after it add nothing", () => {
  const rows = [
    meta("t1"),
    turn("u1"),
    record("resp_1", [100, 0, 2], [100, 0, 2]),
    record("resp_1", [100, 0, 10], [100, 0, 10]),
    count([100, 0, 10], [100, 0, 10]),
    record("resp_2", [150, 90, 20], [250, 90, 30]),
    count([250, 90, 30], [150, 90, 20]),
  ];
  expect(usages(readEntries({ [`${CODEX}/a.jsonl`]: rows }))).toEqual([
    { input: 100, output: 10 },
    { input: 60, cache_read: 90, output: 20 },
  ]);
});

test("P52: if a fork repeats responses with new times, they count once, for the session that was forked", () => {
  const parent = [meta("t1"), turn("u1"), count([100, 0, 10], [100, 0, 10])];
  const later = "2026-11-21T09:00:00.000Z";
  const copy = [
    meta("t2", { forked_from_id: "t1" }),
    meta("t1"),
    turn("u1"),
    count([100, 0, 10], [100, 0, 10], later),
  ];
  const own = [turn("u2"), count([130, 0, 17], [30, 0, 7], later)];
  const entries = readEntries({ [`${CODEX}/a.jsonl`]: parent, [`${CODEX}/b.jsonl`]: [...copy, ...own] });
  expect(
    entries.map(({ session, time, usage }) => [session, new Date(time).getUTCDate(), usage.output]),
  ).toEqual([
    ["t1", 20, 10],
    ["t2", 21, 7],
  ]);
});

test("responses that a fork repeats count once, even in a Codex version without turn ids", () => {
  const context = {
    timestamp: "2026-11-20T10:00:00.000Z",
    type: "turn_context",
    payload: { model: "gpt-5.5" },
  };
  const parent = [context, count([100, 0, 10], [100, 0, 10]), count([150, 0, 15], [50, 0, 5])];
  const own = count([180, 0, 22], [30, 0, 7]);
  const entries = readEntries({
    [`${CODEX}/a.jsonl`]: [meta("t1"), ...parent],
    [`${CODEX}/b.jsonl`]: [meta("t2", { forked_from_id: "t1" }), meta("t1"), ...parent, own],
    [`${CODEX}/c.jsonl`]: [meta("t3"), ...parent],
  });
  expect(entries.map(({ session, usage }) => [session, usage.output])).toEqual([
    ["t1", 10],
    ["t1", 5],
    ["t2", 7],
    ["t3", 10],
    ["t3", 5],
  ]);
});

test("equal responses that two forks made after the split count as two", () => {
  const fork = (id: string, own: string) => [
    meta(id, { forked_from_id: "t1" }),
    turn("u1"),
    count([9, 0, 1], [9, 0, 1]),
    turn(own),
    count([19, 0, 2], [10, 0, 1]),
  ];
  const entries = readEntries({
    [`${CODEX}/a.jsonl`]: fork("t2", "u2"),
    [`${CODEX}/b.jsonl`]: fork("t3", "u3"),
  });
  expect(entries.map(({ usage }) => usage.input)).toEqual([9, 10, 10]);
});

test("a subagent's thread belongs to the session that started the subagent, and archived sessions count", () => {
  const source = { subagent: { thread_spawn: { parent_thread_id: "t1" } } };
  const entries = readEntries({
    [`${CODEX}/a.jsonl`]: [meta("t2", { source }), turn("u1"), count([1, 0, 1], [1, 0, 1])],
    ".codex/archived_sessions/b.jsonl": [
      meta("t4", { session_id: "t3" }),
      turn("u2"),
      count([2, 0, 2], [2, 0, 2]),
    ],
  });
  expect(entries.map(({ session, agent }) => `${session} ${agent}`).toSorted()).toEqual(["t1 t2", "t3 t4"]);
});

test("tokens that were read from the cache or written to it are not also counted as plain input", () => {
  const usage = {
    input_tokens: 100,
    cached_input_tokens: 60,
    cache_write_input_tokens: 30,
    output_tokens: 9,
    reasoning_output_tokens: 4,
  };
  const row = {
    timestamp: "2026-11-20T10:00:01.000Z",
    type: "token_usage_record",
    payload: { response_id: "r", usage },
  };
  expect(usages(readEntries({ [`${CODEX}/a.jsonl`]: [meta("t1"), turn("u1"), row] }))).toEqual([
    { input: 10, cache_read: 60, cache_write: 30, output: 9, reasoning: 4 },
  ]);
});

test("the service tier of Codex' settings is not taken for that of a session", () => {
  const [entry] = readEntries({
    ".codex/config.toml": 'service_tier = "priority"\n',
    [`${CODEX}/a.jsonl`]: [meta("t1"), turn("u1"), count([100, 0, 10], [100, 0, 10])],
  });
  expect(entry?.tariff).toEqual({});
});
