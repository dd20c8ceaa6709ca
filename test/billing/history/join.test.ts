import { expect, test } from "bun:test";
import type { LogEntry } from "../../../src/billing/history/entry.ts";
import { joinHistory, type OurLine } from "../../../src/billing/history/join.ts";
import { entryOf, lineOf, T } from "./made-requests.ts";

/** How many requests are in the log and in the ledger, only in the log, and only in the ledger. */
function count(entries: readonly LogEntry[], lines: readonly OurLine[]): number[] {
  const { pairs, onlyEntries, onlyLines } = joinHistory(entries, lines);
  return [pairs.length, onlyEntries.length, onlyLines.length];
}

test("P52: a log entry and a ledger line with the same tool and upstream id are joined, whatever else differs", () => {
  const entry = entryOf({ requestId: "req_x", session: "other", time: T + 9e6, usage: { input: 1 } });
  expect(count([entry], [lineOf({ upstream_request_id: "req_x" })])).toEqual([1, 0, 0]);
  // Another tool's server may have given the same id.
  expect(count([entry], [lineOf({ upstream_request_id: "req_x", tool: "claude-code" })])).toEqual([0, 1, 1]);
});

test("if an upstream gives every request the same id, log entries are joined to ledger lines with equal counts", () => {
  const entries = [
    entryOf({ requestId: "req_demo" }),
    entryOf({ requestId: "req_demo", usage: { input: 7 } }),
  ];
  const lines = [
    lineOf({ upstream_request_id: "req_demo", usage: { input: 7 } }),
    lineOf({ row: 2, upstream_request_id: "req_demo" }),
  ];
  expect(count(entries, lines)).toEqual([2, 0, 0]);
});

test.each<[string, Partial<LogEntry>, Parameters<typeof lineOf>[0], number[]]>([
  ["the same counts, model and session", {}, {}, [1, 0, 0]],
  [
    "a model's name without its date",
    { model: "claude-opus-4-5[1m]" },
    { model: "x", upstream_model: "claude-opus-4-5-20251101" },
    [1, 0, 0],
  ],
  [
    "kinds that a conversion changed, with equal sums",
    { usage: { input: 100, cache_read: 50, output: 10 } },
    { usage: { input: 70, cache_write: 30, cache_read: 50, output: 10 } },
    [1, 0, 0],
  ],
  ["a session that the gateway inferred", {}, { session: "inferred-1", inferred: true }, [1, 0, 0]],
  ["other counts at the same time", { usage: { input: 100, output: 1 } }, {}, [1, 0, 0]],
  ["other counts at another time", { usage: { input: 100, output: 1 }, time: T + 20_000 }, {}, [0, 1, 1]],
  ["another session", { session: "s2" }, {}, [0, 1, 1]],
  ["another model", { model: "gpt-5" }, {}, [0, 1, 1]],
  ["another tool", { tool: "opencode" }, {}, [0, 1, 1]],
  ["a minute and a half later", { time: T + 90_000 }, {}, [1, 0, 0]],
  ["an hour later", { time: T + 3_600_000 }, {}, [0, 1, 1]],
  ["an entry at the request's beginning", { time: T }, { ended: T + 1_800_000 }, [1, 0, 0]],
])("P52: a log entry without an id joins only a similar line (case: %s)", (_, entry, line, expected) => {
  expect(count([entryOf(entry)], [lineOf(line)])).toEqual(expected);
});

test("P52: log entries with equal counts are joined to the ledger lines nearest in time, one entry to each line", () => {
  const entries = [0, 30, 60].map((seconds) => entryOf({ time: T + seconds * 1000 }));
  const lines = [31, 1].map((seconds) =>
    lineOf({ row: seconds, time: T + seconds * 1000, ended: T + seconds * 1000 }),
  );
  const { pairs, onlyEntries } = joinHistory(entries, lines);
  expect(pairs.map(([entry, line]) => [entry.time, line.row])).toEqual([
    [T, 1],
    [T + 30_000, 31],
  ]);
  expect(onlyEntries.map(({ time }) => time)).toEqual([T + 60_000]);
});
