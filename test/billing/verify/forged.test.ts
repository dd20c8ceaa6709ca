// While no gateway runs, somebody adds, changes or removes lines of a ledger. `verify` finds
// the change before and after the next start, until the owner accepts the change.

import { expect, test } from "bun:test";
import { appendFileSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Ledger, openLedger } from "../../../src/billing/ledger/ledger.ts";
import { encodeLine, hashLine } from "../../../src/billing/ledger/line.ts";
import { judgeLedger } from "../../../src/billing/ledger/recovery.ts";
import {
  bill,
  draftOf,
  intentOf,
  listProblems,
  makeTable,
  newLedgerPath,
  optionsFor,
  readWholeLedger,
} from "../ledger/ledger-samples.ts";

const NOW = Date.parse("2026-11-20T12:00:00Z");
const FILES = ["", ".open"];

function open(path: string): Ledger {
  return openLedger(optionsFor(path, { now: () => NOW }));
}

function copy(path: string): string {
  const other = newLedgerPath();
  for (const file of FILES) if (existsSync(path + file)) copyFileSync(path + file, other + file);
  return other;
}

/** Makes a ledger with three requests of one dollar, after a stop or after a kill. */
async function makeSample(how: "stopped" | "killed"): Promise<string> {
  const path = newLedgerPath();
  const ledger = openLedger(optionsFor(path, { now: () => NOW }));
  for (const id of ["req_1", "req_2", "req_3"])
    await bill(ledger, id, {
      official_usd: "1",
      charge_usd: "1",
      prices: { input: "1" },
      usage: { input: 1e6 },
    });
  void ledger.open(intentOf("req_4"));
  // A sync notes the last line in the journal.
  const isNoted = (): boolean =>
    readWholeLedger(path).lines.length === 3 &&
    readFileSync(`${path}.open`, "utf8").includes(`"prev":"${prevOf(path)}"`);
  while (!isNoted()) await Bun.sleep(1);
  const killed = copy(path);
  ledger.discard("req_4");
  await ledger.close();
  return how === "killed" ? killed : path;
}

function prevOf(path: string): string {
  return hashLine(readFileSync(path, "utf8").trimEnd().split("\n").at(-1) ?? "");
}

function forgeCorrection(path: string, corrects = "req_1"): void {
  const { key, group, platform, channel, model } = draftOf(corrects);
  const draft = {
    id: `cor_${corrects}`,
    corrects,
    key,
    group,
    platform,
    channel,
    model,
    time: "2026-11-20T11:00:00.000Z",
    request_time: "2026-11-20T10:00:00.000Z",
    usage: { input: 1e6 },
    prices: { input: "0" },
    price_source: "forged",
    tier: null,
    official_usd: "0",
    multiplier: "1",
    charge_usd: "0",
    was: { official_usd: "1", charge_usd: "1" },
  };
  appendFileSync(path, `${encodeLine(draft, prevOf(path))}\n`);
}

function forgeRequest(path: string): void {
  const dear = { official_usd: "5", charge_usd: "5", prices: { input: "5" }, usage: { input: 1e6 } };
  appendFileSync(path, `${encodeLine(draftOf("req_forged", dear), prevOf(path))}\n`);
}

const TAMPERINGS: readonly [what: string, tamper: (path: string) => void, findings: number][] = [
  ["a forged correction", (path) => forgeCorrection(path), 1],
  [
    "forged corrections of every line",
    (path) => ["req_1", "req_2", "req_3"].forEach((id) => forgeCorrection(path, id)),
    3,
  ],
  ["a forged request", forgeRequest, 1],
];

for (const how of ["stopped", "killed"] as const)
  test.each(TAMPERINGS)(
    `P142: verify finds %s in a ${how} gateway's ledger, even after restarts, until accepted by the owner`,
    async (_, tamper, findings) => {
      const path = await makeSample(how);
      expect(listProblems(path)).toEqual([]);
      tamper(path);
      expect(listProblems(path)).toHaveLength(findings);
      for (const round of [1, 2, 3]) {
        // The second start finds an index, and the third start finds one that lacks the last lines.
        if (round === 2) makeTable(path);
        const ledger = open(path);
        await bill(ledger, `req_later_${round}`, { key: "other" });
        await ledger.close();
        expect([round, listProblems(path).length]).toEqual([round, findings]);
        expect(listProblems(path).join()).toContain("a start of the gateway found: ");
      }
      const ledger = open(path);
      expect(ledger.acceptMarks()).toHaveLength(findings);
      expect(ledger.acceptMarks()).toEqual([]);
      await ledger.close();
      expect(listProblems(path)).toEqual([]);
      readWholeLedger(path);
    },
  );

type Edit = (lines: string[]) => string[];

/** Makes the hashes of the lines anew, as a person who knows the chain would. */
const rehash: Edit = (lines) => {
  let prev = "0".repeat(64);
  return lines.map((line) => {
    const text = line.replace(/"prev":"[0-9a-f]+"/, `"prev":"${prev}"`);
    prev = hashLine(text);
    return text;
  });
};
const dropLast: Edit = (lines) => lines.slice(0, -1);
const replaceIn =
  (index: number, from: string, to: string): Edit =>
  (lines) =>
    lines.map((line, at) => (at === index ? line.replace(from, to) : line));
const makeFree: Edit = (lines) => rehash(replaceIn(1, '"charge_usd":"1"', '"charge_usd":"0"')(lines));
const CHANGES: readonly [what: string, edit: Edit, removed?: readonly string[]][] = [
  ["lost its last line", dropLast],
  ["lost all but its first line", (lines) => lines.slice(0, 1)],
  ["lost its first line", (lines) => lines.slice(1)],
  ["lost a line in the middle", (lines) => lines.filter((_, at) => at !== 1)],
  ["lost its first line in a new chain", (lines) => rehash(lines.slice(1))],
  ["has only half of its last line", (lines) => [...lines.slice(0, -1), lines.at(-1)?.slice(0, 90) ?? ""]],
  ["was emptied", () => []],
  ["is gone", () => [], [""]],
  ["has another amount", replaceIn(1, '"charge_usd":"1"', '"charge_usd":"0"')],
  ["has another channel", replaceIn(1, "anthropic-main", "anthropic-mine")],
  ["has another model", replaceIn(1, "sonnet", "haiku")],
  ["has another time", replaceIn(2, "2026-11-20T10", "2026-11-19T10")],
  ["has another amount in a new chain", makeFree],
  ["has another amount in a new chain, without the journal", makeFree, [".open"]],
  ["has a line twice", (lines) => [...lines, lines[1] ?? ""]],
  ["has two lines in reversed order", ([one = "", two = "", ...others]) => [two, one, ...others]],
];

// People who tested `verify` by hand tried these changes, and the forgeries above.
for (const how of ["stopped", "killed"] as const)
  test.each(CHANGES)(
    `verify finds, before and after two restarts, that the ledger of a ${how} gateway %s`,
    async (_, edit, removed = []) => {
      const path = await makeSample(how);
      const lines = readFileSync(path, "utf8").trimEnd().split("\n");
      const text = edit(lines).join("\n");
      writeFileSync(path, text === "" ? "" : `${text}\n`);
      for (const file of removed) rmSync(path + file);
      expect(listProblems(path)).not.toEqual([]);
      for (const id of ["req_5", "req_6"]) {
        const ledger = open(path);
        await bill(ledger, id);
        await ledger.close();
        expect(listProblems(path)).not.toEqual([]);
      }
    },
  );

test("`verify` finds no fault in the gateway's own corrections after a stop and after a kill", async () => {
  const path = await makeSample("stopped");
  const ledger = open(path);
  const forged = copy(path);
  forgeCorrection(forged);
  const {
    v: _v,
    prev: _prev,
    ...draft
  } = JSON.parse(readFileSync(forged, "utf8").trimEnd().split("\n").at(-1) ?? "");
  ledger.correct(draft);
  await new Promise<void>((resolve) => setImmediate(resolve));
  const killed = copy(path);
  await ledger.close();
  for (const each of [path, killed]) {
    expect(listProblems(each)).toEqual([]);
    await open(each).close();
    expect(listProblems(each)).toEqual([]);
  }
});

test("`verify` finds no fault in a correction next to a journal of version 0.1, which named no corrections", async () => {
  const path = await makeSample("stopped");
  writeFileSync(`${path}.open`, readFileSync(`${path}.open`, "utf8").replace(',"corrections":true', ""));
  forgeCorrection(path);
  expect(listProblems(path)).toEqual([]);
  await open(path).close();
  expect(listProblems(path)).toEqual([]);
});

test("a forged acceptance is found like every other forged line", async () => {
  const path = await makeSample("stopped");
  forgeCorrection(path);
  await open(path).close();
  const mark = JSON.parse(readFileSync(path, "utf8").trimEnd().split("\n").at(-1) ?? "");
  const accepts = { ...mark, id: "accept_1", accepts: mark.id, prev: prevOf(path) };
  appendFileSync(path, `${JSON.stringify(accepts)}\n`);
  expect(judgeLedger(path).doubts.unnamed).toHaveLength(1);
  await open(path).close();
  expect(listProblems(path).length).toBeGreaterThan(0);
});
