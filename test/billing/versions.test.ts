// A newer version of a tool is named only if its sessions really have more input, beyond chance and of the same kind.

import { expect, test } from "bun:test";
import { array, assert, constantFrom, integer, property, record } from "fast-check";
import { writeFileSync } from "node:fs";
import { encodeLine, GENESIS, hashLine } from "../../src/billing/ledger/line.ts";
import { compareVersions, reportVersions, type SessionStart } from "../../src/billing/reports/versions.ts";
import { describeChange } from "../../src/billing/reports/words.ts";
import { Table } from "../../src/billing/store/open.ts";
import { UTC } from "../../src/lib/text/zone.ts";
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

/** A ledger with sessions of six turns of one version after another. */
function writeLedger(inputs: readonly (readonly [version: string, input: number])[]): string {
  const path = newLedgerPath();
  let prev = GENESIS;
  const lines = inputs.flatMap(([version, input], at) =>
    Array.from({ length: 12 * 6 }, (_, index) => {
      const time = new Date(Date.parse("2026-11-20T10:00:00Z") + (at * 100 + index) * 60_000).toISOString();
      const client = { tool: "claude-code", version, session: `${at}-${index % 12}` };
      const usage = { input: input + ((index * 7) % 11), cache_read: 1000 * Math.floor(index / 12) };
      const line = encodeLine(draftOf(`req_${at}_${index}`, { time, client, usage }), prev);
      prev = hashLine(line);
      return line;
    }),
  );
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

test.each([
  [
    "18 % more input",
    20_000,
    ["claude-code 2.1.332 sends 18 % more input a turn than 2.1.331 (60 and 60 turns)"],
  ],
  ["2 % more input", 16_990, []],
  ["less input", 9000, []],
])("of twelve sessions of each version, those with %s", (_, input, sentences) => {
  const path = writeLedger([
    ["2.1.331", 16_620],
    ["2.1.332", input],
  ]);
  using table = new Table(path, { report: () => {} });
  const found = reportVersions(table, { zone: UTC, now: new Date("2026-11-21T00:00:00Z") });
  expect(found.map(describeChange)).toEqual(sentences);
});
