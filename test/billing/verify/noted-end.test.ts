// A ledger or a journal that somebody cut: what `verify` finds, and what a start does.

import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Ledger, openLedger } from "../../../src/billing/ledger/ledger.ts";
import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import { readBootId } from "../../../src/lib/files/platform.ts";
import { asOfAnotherBoot, draftOf, intentOf, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";
import { hashLine } from "../../../src/billing/ledger/line.ts";

interface Sight {
  readonly problems: string[];
  readonly notes: readonly string[];
}

function look(path: string, running = false): Sight {
  const problems: string[] = [];
  const { notes } = verifyLedger(path, { partial: false, running }, ({ problem }) => problems.push(problem));
  return { problems, notes };
}

const PARTS = ["", ".open", ".end", ".sums", ".hours"];

/** Copies the ledger's files as they are now, as `kill -9` would leave them. */
function copy(path: string): string {
  const other = newLedgerPath();
  for (const part of PARTS)
    if (existsSync(`${path}${part}`)) copyFileSync(`${path}${part}`, `${other}${part}`);
  return other;
}

function linesOf(path: string): string[] {
  return readFileSync(path, "utf8").split(/(?<=\n)/);
}

/** Keeps the first lines of a file. */
function cutTo(path: string, count: number): void {
  writeFileSync(path, linesOf(path).slice(0, count).join(""));
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}

interface Samples {
  /** The ledger of a killed gateway. It has five lines, and two requests in flight, which began after the first line. */
  readonly killed: string;
  readonly stopped: string;
}

/** Makes both ledgers. Without `isSynced`, no sync ends, and `stopped` is the same ledger as `killed`. */
async function makeLedgers(isSynced = true): Promise<Samples> {
  const path = newLedgerPath();
  const syncFile = (): Promise<void> => new Promise(() => {});
  const ledger = openLedger(optionsFor(path, isSynced ? {} : { syncFile }));
  for (const id of ["req_1", "flight_1", "flight_2", "req_2", "req_3", "req_4", "req_5"]) {
    void ledger.open(intentOf(id));
    if (id.startsWith("req")) ledger.append(draftOf(id));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (!isSynced) {
    void ledger.open(intentOf("flight_3"));
    const killed = copy(path);
    return { killed, stopped: killed };
  }
  await until(() => linesOf(`${path}.open`).some((record) => record.includes(`"synced":${lastEnd(path)}`)));
  const killed = copy(path);
  for (const id of ["flight_1", "flight_2"]) ledger.append(draftOf(id));
  await ledger.close();
  return { killed, stopped: path };
}

function lastEnd(path: string): string {
  return lastEndOf(readFileSync(path, "utf8"));
}

function lastEndOf(text: string): string {
  const hash = new Bun.CryptoHasher("sha256").update(text.trimEnd().split("\n").at(-1) ?? "").digest("hex");
  return JSON.stringify({ offset: text.length, prev: hash });
}

/** Starts the next gateway, which writes one line. */
async function goOn(path: string, id = "req_later"): Promise<string[]> {
  const reports: string[] = [];
  const ledger = openLedger(optionsFor(path, { report: (text) => reports.push(text) }));
  void ledger.open(intentOf(id));
  ledger.append(draftOf(id));
  await ledger.close();
  return reports;
}

const END = "the ledger lacks the end that the gateway noted: the last lines are missing or changed";
const GAP = /^it (?:does not follow|follows a line that is missing)/;
const WHOLE: Sight = { problems: [], notes: [] };

describe.each(["killed", "stopped"] as const)("after a gateway was %s,", (how) => {
  test("every cut of the ledger's end is found, before and after the next start", async () => {
    const path = (await makeLedgers())[how];
    expect(look(path)).toEqual(WHOLE);
    for (let count = linesOf(path).length - 1; count >= 0; count -= 1) {
      const cut = copy(path);
      cutTo(cut, count);
      expect(look(cut).problems).toContain(END);
      // The cut is found while a gateway runs, too.
      expect(look(cut, true).problems).toContain(END);
      expect((await goOn(cut)).join()).toContain("no power cut explains it");
      expect(look(cut).problems).toEqual([expect.stringMatching(GAP)]);
      const later = await goOn(cut, "req_last");
      expect(later).toEqual([expect.stringContaining("until `gateway ledger accept`")]);
      expect(look(cut).problems).toEqual([expect.stringMatching(GAP)]);
    }
    const reports = how === "killed" ? ["2 requests were cut short by the gateway's end"] : [];
    expect(await goOn(path)).toEqual(reports);
    expect(look(path)).toEqual(WHOLE);
  });

  test("a cut of the ledger's end is found after a restart of the machine", async () => {
    const cut = copy((await makeLedgers())[how]);
    writeFileSync(`${cut}.open`, asOfAnotherBoot(readFileSync(`${cut}.open`, "utf8")));
    cutTo(cut, 4);
    expect(look(cut).problems).toContain(END);
    await goOn(cut);
    expect(look(cut).problems).toEqual([expect.stringMatching(GAP)]);
  });

  test("missing lines that the owner has accepted are not reported any more", async () => {
    const path = (await makeLedgers())[how];
    cutTo(path, 3);
    await goOn(path);
    const ledger = openLedger(optionsFor(path));
    expect(ledger.acceptMarks()).toHaveLength(1);
    await ledger.close();
    expect(look(path)).toEqual(WHOLE);
    expect(await goOn(path, "req_last")).toEqual([]);
    expect(look(path)).toEqual(WHOLE);
    cutTo(path, linesOf(path).length - 1);
    expect(look(path).problems).toEqual([END]);
  });
});

test("after a backup brings missing lines back, `verify` finds no gap", async () => {
  const { stopped } = await makeLedgers();
  const lines = linesOf(stopped);
  cutTo(stopped, 3);
  await goOn(stopped);
  const later = linesOf(stopped).slice(3);
  writeFileSync(stopped, [...lines, ...later].join(""));
  expect(look(stopped)).toEqual(WHOLE);
  expect(await goOn(stopped, "req_last")).toEqual([expect.stringContaining("until `gateway ledger accept`")]);
  expect(look(stopped)).toEqual(WHOLE);
});

/** What `verify` finds, except for repeated lines. If the journal names requests without lines, a start
 *  writes new lines for them. A backup then brings back the old lines, too. */
function findOtherThanTwice(path: string): string[] {
  return look(path).problems.filter((problem) => problem !== "this request has a line already");
}

/** The ledger at each moment at which the next gateway may be killed. `steps` are what this gateway does. */
async function killAtEachStep(
  path: string,
  steps: readonly ((ledger: Ledger) => unknown)[],
): Promise<string[]> {
  const before = copy(path);
  const ledger = openLedger(optionsFor(path));
  const killed = [copy(path)];
  for (const step of steps) {
    await step(ledger);
    await new Promise<void>((resolve) => setImmediate(resolve));
    killed.push(copy(path));
  }
  await ledger.close();
  // In the first copy, the gateway was killed after its first lines, and before it replaced the journal.
  const [first = path] = killed;
  copyFileSync(`${before}.open`, `${first}.open`);
  return killed;
}

describe("missing lines are found also if the next gateway is killed after it went on without them", () => {
  const STEPS = [
    async (ledger: Ledger) => ledger.open(intentOf("on_1")),
    async (ledger: Ledger) => ledger.open(intentOf("on_2")),
    (ledger: Ledger) => ledger.append(draftOf("on_1")),
    async (ledger: Ledger) => ledger.open(intentOf("on_3")),
    (ledger: Ledger) => ledger.append(draftOf("on_2")),
  ];

  test.each(["killed", "stopped"] as const)(
    "if lines of a %s gateway are missing and the next gateway is killed, `verify` finds one gap, which a backup closes",
    async (how) => {
      const path = (await makeLedgers())[how];
      const lines = linesOf(path);
      for (const kept of [0, 3]) {
        const cut = copy(path);
        cutTo(cut, kept);
        for (const killed of await killAtEachStep(cut, STEPS)) {
          await goOn(killed);
          expect(look(killed).problems).toEqual([expect.stringMatching(GAP)]);
          writeFileSync(killed, [...lines, ...linesOf(killed).slice(kept)].join(""));
          expect(findOtherThanTwice(killed)).toEqual([]);
        }
      }
    },
  );

  test("`verify` still finds the gap after a power cut has also taken the lines of a later gateway", async () => {
    const { killed: path } = await makeLedgers();
    cutTo(path, 3);
    for (const killed of await killAtEachStep(path, STEPS)) {
      cutTo(killed, 3);
      const journal = readFileSync(`${killed}.open`, "utf8");
      writeFileSync(`${killed}.open`, asOfAnotherBoot(journal));
      await goOn(killed);
      expect(look(killed).problems).toEqual([expect.stringMatching(GAP)]);
    }
  });
});

test("if lines are missing before the end that the journal noted, `verify` finds one gap, which a backup closes", async () => {
  const { killed } = await makeLedgers(false);
  const lines = linesOf(killed);
  const ends = lines.map((_, index) => lastEndOf(lines.slice(0, index + 1).join("")));
  // The last line is not noted yet.
  const notes = `{"end":${ends.at(-2)},"synced":${ends[1]}}\n`;
  writeFileSync(`${killed}.open`, readFileSync(`${killed}.open`, "utf8") + notes);
  writeFileSync(killed, [lines[0], ...lines.slice(3)].join(""));
  await goOn(killed);
  expect(look(killed).problems).toEqual([expect.stringMatching(GAP)]);
  writeFileSync(killed, [...lines, ...linesOf(killed).slice(lines.length - 2)].join(""));
  expect(findOtherThanTwice(killed)).toEqual([]);
});

describe("P142: a power cut explains why lines that were never synced are missing, and a kill does not", () => {
  test("`verify` reports unsynced lines that a power cut took, and the next start goes on without them", async () => {
    const { killed } = await makeLedgers(false);
    writeFileSync(`${killed}.open`, asOfAnotherBoot(readFileSync(`${killed}.open`, "utf8")));
    cutTo(killed, 2);
    expect(look(killed).problems).toContain(END);
    expect((await goOn(killed)).join()).toContain("the ledger goes on from what is there");
    expect(look(killed)).toEqual(WHOLE);
  });

  // Only Linux says whether the machine has been started again.
  test.skipIf(readBootId() === null)("without a power cut, missing unsynced lines are a gap", async () => {
    const { killed } = await makeLedgers(false);
    cutTo(killed, 2);
    expect(look(killed).problems).toContain(END);
    await goOn(killed);
    expect(look(killed).problems).toEqual([expect.stringMatching(GAP)]);
  });
});

test("`verify` finds no fault in a ledger without its journal, but says that the ledger's end is not proved", async () => {
  const { stopped } = await makeLedgers();
  rmSync(`${stopped}.open`);
  expect(look(stopped)).toEqual({
    problems: [],
    notes: [expect.stringContaining("Lines that were removed at its end would not be found")],
  });
});

/** The file in which an earlier version noted the ledger's end. */
function noteOldEnd(path: string): void {
  const end = JSON.parse(lastEnd(path));
  const body = JSON.stringify({ end, synced: end, boot: "x" });
  writeFileSync(`${path}.end`, `${hashLine(body)}\n${body}\n`);
  writeFileSync(`${path}.hours`, "x");
}

test("the file in which version 0.2 noted the ledger's end is compared with the ledger, then removed at the first start", async () => {
  const { stopped } = await makeLedgers();
  noteOldEnd(stopped);
  expect(look(stopped)).toEqual(WHOLE);
  const cut = copy(stopped);
  // Without the journal, which would also show the cut, only the old file shows it.
  rmSync(`${cut}.open`);
  cutTo(cut, 3);
  expect(look(cut).problems).toContain(END);
  expect((await goOn(cut)).join()).toContain("no power cut explains it");
  const removed = `files of an earlier version next to ${stopped} were read and removed: .end, .hours`;
  expect(await goOn(stopped)).toEqual([removed]);
  expect([".end", ".hours"].filter((name) => existsSync(stopped + name))).toEqual([]);
  expect(await goOn(stopped, "req_last")).toEqual([]);
  expect(look(stopped)).toEqual(WHOLE);
});
