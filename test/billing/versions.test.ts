// A report names a newer version if its sessions have more input than older sessions, and not by chance.

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { encodeLine, GENESIS, hashLine, type LineDraft } from "../../src/billing/ledger/line.ts";
import { reportEvidence } from "../../src/billing/reports/evidence.ts";
import { ALL } from "../../src/billing/reports/sums.ts";
import { SETTINGS, showName } from "../../src/billing/reports/shown-names.ts";
import { compareVersions, reportVersions, type SessionStart } from "../../src/billing/reports/versions.ts";
import { describeChange } from "../../src/billing/reports/words.ts";
import { CHAT_FIELDS } from "../../src/bridges/chat/fields.ts";
import { CONTENT_FIELDS } from "../../src/bridges/content/fields.ts";
import { MESSAGES_FIELDS } from "../../src/bridges/messages/fields.ts";
import { RESPONSES_FIELDS } from "../../src/bridges/responses/fields.ts";
import { UNCACHED } from "../../src/dialects/prompt/layouts.ts";
import { Table } from "../../src/billing/store/open.ts";
import { UTC } from "../../src/lib/text/zone.ts";
import { writeHtml, writeMarkdown } from "../../src/web/report-file.ts";
import { openDice } from "../harness/random.ts";
import { draftOf, newLedgerPath } from "./ledger/ledger-samples.ts";

const UPDATE = 120;

/** Sessions of three weeks and four projects, from a Thursday on. The first half has the older version. */
function makeSessions(inputOf: (index: number, weekday: number) => number): SessionStart[] {
  return Array.from({ length: 2 * UPDATE }, (_, index) => {
    const at = Date.UTC(2026, 10, 5, 12 + 2.1 * index);
    const version = index < UPDATE ? "2.1.331" : "2.1.332";
    const input = inputOf(index, new Date(at).getUTCDay());
    return { tool: "claude-code", version, kind: `${index % 4}`, at, input };
  });
}

type Course = (index: number, weekday: number, random: () => number) => number;
let run = 1;

test.each<[title: string, share: string, course: Course]>([
  ["input that stays the same", "few", () => 1],
  ["a project that grows by 30 %", "few", (at) => 1 + (0.3 * at) / 240],
  ["a project that grew by 30 % until the update", "few", (at) => 1 + (0.3 * Math.min(UPDATE, at)) / UPDATE],
  ["tools that a user added three sessions before the update", "few", (at) => (at < 117 ? 1 : 1.3)],
  ["tools added near the update, twice", "few", (at) => 1.2 ** (Number(at > 114) + Number(at > 124))],
  ["sessions in runs of similar work", "few", (at, _, random) => (at % 8 > 0 ? run : (run = 0.5 + random()))],
  ["more input at weekends", "few", (_, weekday) => (weekday % 6 === 0 ? 1.4 : 1)],
  ["half of the projects up 40 % since the update", "few", (at) => (at < UPDATE || at % 2 === 0 ? 1 : 1.4)],
  ["a larger project with more and more sessions", "few", (at, _, random) => (random() < at / 240 ? 1.5 : 1)],
  ["18 % more input since the update", "most", (at) => (at < UPDATE ? 1 : 1.18)],
])("of 200 reports on %s, %s name the newer version", (_title, share, course) => {
  const random = openDice(1);
  const named = Array.from({ length: 200 }, () => {
    const noise = (): number => 0.7 + 0.2 * (random() + random() + random());
    return compareVersions(makeSessions((...at) => 30_000 * course(...at, random) * noise()));
  }).filter(({ length }) => length > 0).length;
  expect(share === "few" ? named < 8 : named > 120).toBe(true);
});

test.each<[title: string, change: (session: SessionStart, index: number) => Partial<SessionStart>]>([
  [
    "a Monday after a weekend with less input",
    (session) => {
      const at = session.at - 1.5 * 86_400_000;
      return { at, ...(new Date(at).getUTCDay() % 6 === 0 && { input: 0.7 * session.input }) };
    },
  ],
  [
    "more sessions of a kind with much input",
    ({ input }, index) =>
      index % 10 === 0 || (index >= UPDATE && index % 10 !== 1) ? { kind: "large", input: input * 10 } : {},
  ],
  [
    "another project since the update, and input that falls in each project",
    ({ input }, index) => ({
      kind: `${index < UPDATE}`,
      input: input * (1 - (0.3 * (index % UPDATE)) / UPDATE),
    }),
  ],
  [
    "two versions that are used side by side",
    ({ input }, index) =>
      index % 2 === 0 ? { version: "2.1.331" } : { version: "2.1.332", input: input * 1.2 },
  ],
])("no newer version is named for %s", (_title, change) => {
  const sessions = makeSessions((index) => 9000 + ((index * 37) % 1000));
  expect(compareVersions(sessions.map((each, index) => ({ ...each, ...change(each, index) })))).toEqual([]);
});

test("one session with very much input does not change the report about the other sessions", () => {
  const make = (factor: number): SessionStart[] =>
    makeSessions((index) =>
      index === 127 ? 500_000 : (10_000 + (index % 97)) * (index < UPDATE ? 1 : factor),
    );
  expect(compareVersions(make(1.02))).toEqual([]);
  expect(compareVersions(make(1.1))).toMatchObject([{ percent: 10 }]);
});

test("a newer version with more input is not named if the other sessions span less than a week", () => {
  const sessions = makeSessions((index) => (index < UPDATE ? 20_000 : 24_000) + (index % 97));
  expect(compareVersions(sessions)).toHaveLength(1);
  expect(compareVersions(sessions.slice(20, 220))).toEqual([]);
});

function writeLines(drafts: readonly LineDraft[]): string {
  const path = newLedgerPath();
  let prev = GENESIS;
  const lines = drafts.map((draft) => {
    const line = encodeLine(draft, prev);
    prev = hashLine(line);
    return line;
  });
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

/** A ledger with 36 sessions of an older version and 12 of a newer one, of six turns each.
 *  `failed`: how many requests of an older session fail first. */
function writeLedger(newer: number, failed: number, label: string | undefined): string {
  const drafts = Array.from({ length: 48 }, (_, session) => {
    const [version, input, failures] =
      session < 36 ? (["2.1.331", 16_620, failed] as const) : (["2.1.332", newer, 0] as const);
    return Array.from({ length: failures + 6 }, (__, request) => {
      const turn = request - failures;
      const client = { tool: "claude-code", version, session: `${session}`, ...(label && { label }) };
      const time = new Date(Date.UTC(2026, 10, 1, session * 8, request)).toISOString();
      const usage = { input: input + ((session * 7919) % 101), cache_read: 1000 * turn };
      const more = turn < 0 ? { status: 529, usage: {} } : { usage };
      return draftOf(`req_${session}_${request}`, { time, client, ...more });
    });
  });
  return writeLines(drafts.flat());
}

const MORE = "claude-code 2.1.332 sends 18 % more input a turn than 2.1.331 (60 turns of each)";

test.each([
  ["18 % more input", 20_000, [MORE]],
  ["18 % more input, without a label of their project", 20_000, []],
  ["2 % more input", 16_990, []],
  ["less input", 9000, []],
  ["as much input, after fewer failed requests", 16_620, []],
])("a report on twelve sessions with %s says that input rose, or says nothing", (title, input, sentences) => {
  const label = title.includes("without") ? undefined : "orchard";
  const path = writeLedger(input, title.includes("failed") ? 2 : 0, label);
  using table = new Table(path, { report: () => {} });
  const found = reportVersions(table, { zone: UTC, now: new Date("2026-11-17T00:00:00Z") });
  expect(found.map(describeChange)).toEqual(sentences);
});

test("what a cache miss used of a plan's window is the rise since the previous request, in whatever session", () => {
  const client = { session: "a" };
  const cache = { missed: 1000, usd: "0", because: "tools_changed" } as const;
  const drafts = [
    { client, windows: { "5h": 10 } },
    { client: { session: "b" }, windows: { "5h": 60, "7d": 3 } },
    { client, windows: { "5h": 61 }, cache },
    { client, windows: { "5h": 2 }, cache: { ...cache, because: "hunter2" } },
  ].map((more, index) => draftOf(`req_${index}`, more));
  using table = new Table(writeLines(drafts), { report: () => {} });
  const report = reportEvidence(table, { ...ALL, only: { session: "a" } });
  expect(report.window_points).toEqual({ "5h": 1 });
  expect(writeMarkdown(report)).toContain("**1 point** of 100");
  expect(JSON.stringify(report)).not.toContain("hunter2");
});

test("a chart of 161 requests says that each bar is the mean of one or two requests", () => {
  const timeOf = (index: number): string => new Date(Date.UTC(2026, 10, 20) + index).toISOString();
  const drafts = Array.from({ length: 161 }, (_, at) => draftOf(`req_${at}`, { time: timeOf(at) }));
  using table = new Table(writeLines(drafts), { report: () => {} });
  expect(writeHtml(reportEvidence(table, ALL))).toContain("Each bar is the mean of 1 to 2 requests,");
});

test("the newest versions of one tool do not hide the newest versions of another tool", () => {
  const versions = ["codex 1", "codex 2", "codex x", ...[1, 2, 3, 4, 5, 6].map((at) => `opencode ${at}`)];
  const drafts = versions.map((name, index) => {
    const [tool = "", version = ""] = name.split(" ");
    return draftOf(`req_${index}`, { client: { tool, version }, time: `2026-11-20T10:0${index}:00.000Z` });
  });
  using table = new Table(writeLines(drafts), { report: () => {} });
  const changes = reportEvidence(table, ALL).events.map(({ tool, changed }) => `${tool} ${changed}`);
  expect(changes).toEqual([
    "codex version 1 → 2",
    "codex version 2 → 2d711642",
    "opencode version 4 → 5",
    "opencode version 5 → 6",
  ]);
});

test("a model or version that may be somebody's number or address is shown as a hash", () => {
  const shown = [showName("model", "command-r-4929"), showName("version", "10.0.0.7")];
  expect(shown.join(" ")).toMatch(/^model-[\da-f]{8} version-[\da-f]{8}$/);
  expect(showName("version", "2.1.332")).toBe("2.1.332");
});

test("a report for others can name each setting on which a cache depends", () => {
  const tables = [MESSAGES_FIELDS, CHAT_FIELDS, RESPONSES_FIELDS, CONTENT_FIELDS];
  const names = new Set(tables.flatMap(({ root }) => [...root.members.keys()])).difference(UNCACHED);
  const parts = "contents functions input instructions messages system systemInstruction tools";
  expect([...names.difference(SETTINGS)].toSorted().join(" ")).toBe(parts);
});
