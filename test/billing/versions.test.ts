// A newer version of a tool is named only if its sessions really have more input, beyond chance and of the same kind.

import { expect, test } from "bun:test";
import { array, assert, constantFrom, integer, property, record } from "fast-check";
import { writeFileSync } from "node:fs";
import { encodeLine, GENESIS, hashLine, type LineDraft } from "../../src/billing/ledger/line.ts";
import { reportEvidence } from "../../src/billing/reports/evidence.ts";
import { ALL } from "../../src/billing/reports/sums.ts";
import { compareVersions, reportVersions, type SessionStart } from "../../src/billing/reports/versions.ts";
import { describeChange } from "../../src/billing/reports/words.ts";
import { Table } from "../../src/billing/store/open.ts";
import { UTC } from "../../src/lib/text/zone.ts";
import { writeHtml, writeMarkdown } from "../../src/web/report-file.ts";
import { draftOf, newLedgerPath } from "./ledger/ledger-samples.ts";

const starts = array(
  record({
    version: constantFrom("2.1.331", "2.1.332"),
    kind: constantFrom("a", "b"),
    at: integer({ min: 0, max: 1000 }),
    input: integer({ min: 1, max: 200 }),
  }),
  { minLength: 30, maxLength: 120 },
);
const ofTool = (start: Omit<SessionStart, "tool">): SessionStart => ({ tool: "claude-code", ...start });

test("versions with input of the same distribution stay silent", () => {
  assert(
    property(starts, (found) => {
      // Kinds differ by much, and so do their shares in each version.
      const own = found.map(({ input, ...start }) =>
        ofTool({ ...start, input: input + (start.kind === "a" ? 0 : 100_000) }),
      );
      expect(compareVersions(own)).toEqual([]);
    }),
    { numRuns: 1000, seed: 1 },
  );
});

test("more sessions of a kind with much input are not a change of the version", () => {
  const make = (version: string, at: number, large: number): SessionStart[] =>
    Array.from({ length: 40 }, (_, index) =>
      ofTool({
        version,
        at,
        kind: index < large ? "large" : "small",
        input: (index < large ? 90_000 : 9000) + ((index * 37) % 1000),
      }),
    );
  expect(compareVersions([...make("1", 1, 4), ...make("2", 2, 36)])).toEqual([]);
});

type Course = (at: number, random: () => number) => number;
let run = 1;

test.each<[title: string, share: string, course: Course]>([
  ["a project that grows by 30 %", "few", (at) => 1 + (0.3 * at) / 40],
  ["a project that grew by 30 % until then", "few", (at) => 1 + (0.3 * Math.min(20, at)) / 20],
  ["tools that a user added three sessions before", "few", (at) => (at < 17 ? 1 : 1.3)],
  ["sessions in runs of similar work", "few", (at, random) => (at % 8 > 0 ? run : (run = 0.5 + random()))],
  ["18 % more since then", "most", (at) => (at < 20 ? 1 : 1.18)],
])("for %s, %s of 200 reports name the newer version", (_title, share, course) => {
  let seed = 1;
  const random = (): number => (seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
  const named = Array.from({ length: 200 }, () => {
    const sessions = Array.from({ length: 40 }, (_, at) => {
      const noise = 0.85 + 0.1 * (random() + random() + random());
      const version = at < 20 ? "2.1.331" : "2.1.332";
      return ofTool({ version, at, kind: "a", input: Math.round(30_000 * course(at, random) * noise) });
    });
    return compareVersions(sessions).length;
  }).filter((count) => count > 0).length;
  expect(share === "few" ? named < 10 : named > 120).toBe(true);
});

test("two versions that are used side by side are not compared", () => {
  const sessions = Array.from({ length: 80 }, (_, at) => {
    const version = at % 2 === 0 ? "2.1.331" : "2.1.332";
    return ofTool({ version, at, kind: "a", input: at % 2 === 0 ? 20_000 + at : 24_000 + at });
  });
  expect(compareVersions(sessions)).toEqual([]);
});

test("one session with very much input does not change the report about the others", () => {
  const make = (version: string, at: number, factor: number): SessionStart[] =>
    Array.from({ length: 40 }, (_, index) => {
      const input = Math.round((10_000 + ((index * 37) % 100)) * factor);
      return ofTool({ version, at, kind: "a", input: index === 7 && at > 1 ? 500_000 : input });
    });
  expect(compareVersions([...make("1", 1, 1), ...make("2", 2, 1.02)])).toEqual([]);
  expect(compareVersions([...make("1", 1, 1), ...make("2", 2, 1.1)])).toMatchObject([{ percent: 10 }]);
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

/** A ledger with sessions of six turns of one version after another. `failed`: after as many requests that fail. */
function writeLedger(
  inputs: readonly (readonly [version: string, input: number, failed?: number])[],
  more: { readonly label?: string },
): string {
  const drafts = inputs.flatMap(([version, input, failed = 0], at) =>
    Array.from({ length: 12 * (6 + failed) }, (_, each) => {
      const index = each - 12 * failed;
      const time = new Date(Date.parse("2026-11-20T10:00:00Z") + (at * 100 + each) * 60_000).toISOString();
      const client = { tool: "claude-code", version, session: `${at}-${each % 12}`, ...more };
      if (index < 0) return draftOf(`req_${at}_${each}`, { time, client, status: 529, usage: {} });
      const usage = { input: input + ((index * 7919) % 101), cache_read: 1000 * Math.floor(index / 12) };
      return draftOf(`req_${at}_${each}`, { time, client, usage });
    }),
  );
  return writeLines(drafts);
}

test.each([
  [
    "18 % more input",
    20_000,
    ["claude-code 2.1.332 sends 18 % more input a turn than 2.1.331 (60 and 60 turns)"],
  ],
  ["18 % more input, without a label of their project", 20_000, []],
  ["2 % more input", 16_990, []],
  ["less input", 9000, []],
  ["as much input, after fewer failed requests", 16_620, []],
])("a report judges twelve sessions of a newer version with %s", (title, input, sentences) => {
  const older = ["2.1.331", 16_620, title.includes("failed") ? 2 : 0] as const;
  const more = title.includes("without") ? {} : { label: "orchard" };
  const path = writeLedger([older, ["2.1.332", input]], more);
  using table = new Table(path, { report: () => {} });
  const found = reportVersions(table, { zone: UTC, now: new Date("2026-11-21T00:00:00Z") });
  expect(found.map(describeChange)).toEqual(sentences);
});

test("a miss raised a plan's window by its difference to the request before it, of whichever session", () => {
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

test("a chart of 161 requests says that a bar is one or two of them", () => {
  const timeOf = (index: number): string => new Date(Date.UTC(2026, 10, 20) + index).toISOString();
  const drafts = Array.from({ length: 161 }, (_, at) => draftOf(`req_${at}`, { time: timeOf(at) }));
  using table = new Table(writeLines(drafts), { report: () => {} });
  expect(writeHtml(reportEvidence(table, ALL))).toContain("Each bar is the mean of 1 to 2 requests,");
});

test("the newest versions of a tool do not hide those of another", () => {
  const versions = ["codex 1", "codex 2", "codex 3", ...[1, 2, 3, 4, 5, 6].map((at) => `opencode ${at}`)];
  const drafts = versions.map((name, index) => {
    const [tool = "", version = ""] = name.split(" ");
    return draftOf(`req_${index}`, { client: { tool, version }, time: `2026-11-20T10:0${index}:00.000Z` });
  });
  using table = new Table(writeLines(drafts), { report: () => {} });
  const changes = reportEvidence(table, ALL).events.map(({ tool, changed }) => `${tool} ${changed}`);
  expect(changes).toEqual([
    "codex version 1 → 2",
    "codex version 2 → 3",
    "opencode version 4 → 5",
    "opencode version 5 → 6",
  ]);
});
