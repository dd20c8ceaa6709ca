// The overview's sums are saved beside the ledger. Whatever happened to the ledger or to them since, what is loaded equals
// `gateway usage`.

import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { hashLine } from "../../../src/billing/ledger/line.ts";
import { LedgerCube } from "../../../src/billing/report/cube.ts";
import { sumLedger } from "../../../src/billing/report/report.ts";
import { addUsd, formatUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { createZone } from "../../../src/lib/text/zone.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { makeLedger } from "../ledger/ledger-make.ts";

setDefaultTimeout(120_000);
const NOW = Date.parse("2026-11-22T12:00:00Z");
const DAY_MS = 86_400_000;
/** Four blocks: `advance(0)` reads one of them. */
const LINES = 12_000;
const ZONE = createZone("Asia/Kolkata");

let store: TempFolder;
let folder: TempFolder;
let path: string;
let saved: string;
beforeAll(() => {
  store = makeTempFolder();
  const step = (20 * DAY_MS) / LINES;
  makeLedger(store.join("whole.jsonl"), LINES, { start: NOW - 20 * DAY_MS, stepMs: step });
});
beforeEach(() => {
  folder?.remove();
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
  saved = `${path}.hours`;
  copyFileSync(store.join("whole.jsonl"), path);
  const cube = openCube();
  cube.advance(120_000);
  cube.save();
  cube.close();
});
afterAll(() => {
  folder.remove();
  store.remove();
});

const openCube = (now = NOW, zone = ZONE) => new LedgerCube(path, zone, () => now);

/** Charge and requests of each day. */
function listDays(cube: LedgerCube): string[] {
  const days = new Map<string, { charge: typeof ZERO_USD; requests: number }>();
  for (const { name, totals } of cube.cells("")) {
    const day = days.get(name.slice(0, 10)) ?? { charge: ZERO_USD, requests: 0 };
    day.charge = addUsd(day.charge, totals.charge);
    day.requests += totals.requests;
    days.set(name.slice(0, 10), day);
  }
  return [...days]
    .map(([name, { charge, requests }]) => `${name} ${formatUsd(charge)} ${requests}`)
    .toSorted();
}

function listUsage(zone = ZONE): string[] {
  return sumLedger(path, { by: ["day"], since: null, until: null, zone }).rows.map(
    ({ names, totals }) => `${names[0]} ${formatUsd(totals.charge)} ${totals.requests}`,
  );
}

/** Whether the saved sums were used: without them, two blocks are not everything. */
function load(now = NOW, zone = ZONE): { cube: LedgerCube; isFast: boolean } {
  const cube = openCube(now, zone);
  cube.advance(0);
  cube.advance(0);
  const isFast = cube.read === 1;
  cube.advance(120_000);
  return { cube, isFast };
}

function expectExact(wanted: { readonly isFast: boolean }): void {
  const { cube, isFast } = load();
  expect(listDays(cube)).toEqual(listUsage());
  expect(isFast).toBe(wanted.isFast);
  cube.close();
}

const readLines = () => readFileSync(path, "utf8").trimEnd().split("\n");

/** What a command that corrects prices writes, for the ledger's first request. */
function writeCorrection(request: string): string {
  const line = JSON.parse(request);
  const { id, time, official_usd: official, charge_usd: charge, ...same } = line;
  const was = { official_usd: official, charge_usd: charge };
  const now = { official_usd: "1.5", charge_usd: "1.25" };
  return `${JSON.stringify({ ...same, id: "cor_1", time: new Date(NOW).toISOString(), corrects: id, request_time: time, ...now, was })}\n`;
}

test("after a start, the sums are there without reading the ledger", () => {
  expectExact({ isFast: true });
});

test("lines written since then are read, and a torn one when it is whole", () => {
  const [line = "", next = ""] = readLines();
  appendFileSync(path, `${line}\n${next.slice(0, 40)}`);
  const { cube } = load();
  expect(listDays(cube)).toEqual(listUsage());
  appendFileSync(path, `${next.slice(40)}\n`);
  cube.advance(0);
  expect(listDays(cube)).toEqual(listUsage());
  cube.close();
});

test("a correction of an earlier request changes its day", () => {
  const before = listUsage();
  appendFileSync(path, writeCorrection(readLines()[0] ?? ""));
  expect(listUsage()[0]).not.toBe(before[0]);
  expectExact({ isFast: true });
});

test("after a rotation, the rotated file is not read again, and its last lines are not lost", () => {
  const [line = ""] = readLines();
  appendFileSync(path, `${line}\n`);
  renameSync(path, folder.join("ledger-2026-11.jsonl"));
  writeFileSync(path, `${line}\n${line}\n`);
  expectExact({ isFast: true });
});

test("a rotation while the page is open reads nothing twice", () => {
  const { cube } = load();
  const [line = ""] = readLines();
  appendFileSync(path, `${line}\n`);
  renameSync(path, folder.join("ledger-2026-11.jsonl"));
  writeFileSync(path, `${line}\n`);
  cube.advance(0);
  expect([cube.read, listDays(cube)]).toEqual([1, listUsage()]);
  cube.close();
});

test("days later, hours have become days, and what is too old is gone", () => {
  const later = NOW + 15 * DAY_MS;
  const { cube, isFast } = load(later);
  expect(isFast).toBe(true);
  const wanted = listUsage().filter((day) => day >= "2026-11-08");
  expect(listDays(cube)).toEqual(wanted);
  expect([...cube.cells("")].every(({ name }) => name.length === 10)).toBe(true);
  cube.close();
});

test.each([
  [
    "a byte was changed",
    () => writeFileSync(saved, readFileSync(saved, "utf8").replace('"requests":', '"requests":1')),
  ],
  ["it ends too early", () => truncateSync(saved, 1000)],
  ["it is empty", () => writeFileSync(saved, "")],
  ["it is something else", () => writeFileSync(saved, "\u0000\nnull\n")],
  ["an amount in it is none", () => forge((body) => body.replace(/"charge":"[^"]+"/, '"charge":"1e9"'))],
  ["a count in it is none", () => forge((body) => body.replace(/"requests":\d+/, '"requests":1.5'))],
  ["a name in it is no time", () => forge((body) => body.replace(/"name":"[^"]+"/, '"name":"__proto__"'))],
  ["it lacks the ledger's files", () => forge((body) => body.replace('"files"', '"file"'))],
  [
    "it has a file too many",
    () => forge((body) => body.replace('"files":[', '"files":[{"offset":0,"prev":""},')),
  ],
  [
    "it is a link",
    () => {
      renameSync(saved, folder.join("elsewhere"));
      symlinkSync(folder.join("elsewhere"), saved);
    },
  ],
])("saved sums are not used if %s", (_, damage) => {
  damage();
  expectExact({ isFast: false });
});

/** A file whose hash is right. */
function forge(change: (body: string) => string): void {
  const [, body = ""] = readFileSync(saved, "utf8").split("\n");
  const forged = change(body);
  expect(forged).not.toBe(body);
  writeFileSync(saved, `${hashLine(forged)}\n${forged}\n`);
}

test.each([
  ["its end was cut off", () => writeFileSync(path, `${readLines().slice(0, -1).join("\n")}\n`)],
  [
    "its last line was changed",
    () => {
      const text = readFileSync(path, "utf8");
      const at = text.lastIndexOf('"key":"key-') + '"key":"key-'.length;
      writeFileSync(path, text.slice(0, at) + (text[at] === "1" ? "2" : "1") + text.slice(at + 1));
    },
  ],
  [
    "it was replaced by a shorter one",
    () => writeFileSync(path, `${readLines().slice(0, 9000).join("\n")}\n`),
  ],
  [
    "lines were put in front of it",
    () => {
      copyFileSync(path, folder.join("ledger-2026-10.jsonl"));
    },
  ],
])("saved sums are not used if they do not fit the ledger: %s", (_, change) => {
  change();
  expectExact({ isFast: false });
});

test("saved sums are not used if a rotated file was moved away", () => {
  const lines = readLines();
  writeFileSync(folder.join("ledger-2026-10.jsonl"), `${lines.slice(0, 1000).join("\n")}\n`);
  writeFileSync(path, `${lines.slice(1000).join("\n")}\n`);
  const { cube } = load();
  cube.save();
  cube.close();
  expectExact({ isFast: true });
  rmSync(folder.join("ledger-2026-10.jsonl"));
  expectExact({ isFast: false });
});

test("saved sums are not used for the days of another time zone", () => {
  const zone = createZone("America/New_York");
  const { cube, isFast } = load(NOW, zone);
  expect(isFast).toBe(false);
  expect(listDays(cube)).toEqual(listUsage(zone));
  cube.close();
});

test("saved sums are not used if the clock was ahead when they were made", () => {
  const { cube } = load(NOW + 15 * DAY_MS);
  appendFileSync(path, readFileSync(path));
  cube.advance(120_000);
  cube.save();
  cube.close();
  expectExact({ isFast: false });
});

test("sums that are not complete are not saved, nor those of a short ledger", () => {
  rmSync(saved);
  const cube = openCube();
  cube.advance(0);
  cube.save();
  expect([cube.read < 1, existsSync(saved)]).toEqual([true, false]);
  cube.close();
  writeFileSync(path, `${readLines().slice(0, 1000).join("\n")}\n`);
  const short = openCube();
  short.advance(120_000);
  short.save();
  expect([short.read, existsSync(saved)]).toEqual([1, false]);
  short.close();
});

test("a correction of an old request behind the last rotation hides no newer request", () => {
  rmSync(saved);
  const old = JSON.stringify({ ...JSON.parse(readLines()[0] ?? ""), time: "2026-01-05T10:00:00.000Z" });
  renameSync(path, folder.join("ledger-2026-11.jsonl"));
  writeFileSync(path, writeCorrection(old));
  const { cube } = load();
  const recent = listUsage().filter((day) => day >= "2026-02-01");
  expect(listDays(cube).filter((day) => day >= "2026-02-01")).toEqual(recent);
  cube.close();
});

test("names that clients invent take bounded memory, and every request is counted", () => {
  const [line = ""] = readLines();
  const draft = JSON.parse(line);
  const texts = Array.from({ length: 1000 }, (__, index) =>
    JSON.stringify({ ...draft, client: { tool: "curl", label: `run-${index}` } }),
  );
  writeFileSync(path, `${texts.join("\n")}\n`);
  const { cube } = load();
  const [cell] = [...cube.cells("")];
  const labels = cell?.by.label ?? new Map();
  expect([labels.size, labels.get("others")?.requests]).toEqual([301, 700]);
  expect(cell?.totals.requests).toBe(1000);
  cube.close();
});
