// The index has the sums of the ledger's lines, whichever way it was made, and notices when the ledger is another one.

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { array, assert, constantFrom, integer, oneof, property, record } from "fast-check";
import { IndexKeeper } from "../../../src/billing/index/keep.ts";
import { DamagedIndex, type LedgerIndex } from "../../../src/billing/index/ledger-index.ts";
import { openIndex } from "../../../src/billing/index/open.ts";
import { encodeLine, GENESIS, hashLine } from "../../../src/billing/ledger/line.ts";
import { readRows, type Row } from "../../../src/billing/ledger/row.ts";
import {
  describeTotals,
  type Dimension,
  isClientName,
  isSpan,
  openTotals,
  type ReportQuery,
  sumLedger,
  type Totals,
} from "../../../src/billing/report/report.ts";
import {
  addDecimals,
  addUsd,
  formatUsd,
  subtractDecimals,
  subtractUsd,
  ZERO_DECIMAL,
  ZERO_USD,
} from "../../../src/lib/money.ts";
import { createNamer, createZone, UTC } from "../../../src/lib/text/zone.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { damageIndex, draftOf, readIndex } from "../ledger/ledger-samples.ts";

let folder: TempFolder;
let path: string;
beforeEach(() => {
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
});
afterEach(() => folder.remove());

const ALL: ReportQuery = { by: ["model"], since: null, until: null };

function chain(texts: ReadonlyArray<(prev: string) => string>, start = GENESIS): string[] {
  let prev = start;
  return texts.map((encode) => {
    const text = encode(prev);
    prev = hashLine(text);
    return text;
  });
}

const lineOf = (id: number, more: Parameters<typeof draftOf>[1] = {}) => {
  const draft = draftOf(`req_${id}`, more);
  return (prev: string) => encodeLine(draft, prev);
};

function write(file: string, lines: readonly string[]): void {
  writeFileSync(file, lines.map((line) => `${line}\n`).join(""));
}

function keep(steps = 1, notes: string[] = []): void {
  const keeper = new IndexKeeper(path, (text) => notes.push(text));
  for (let step = 0; step < steps; step += 1) keeper.advance(Number.POSITIVE_INFINITY);
  keeper.close();
}

/** What a report without an index would say: the rows by their names, in plain arithmetic. */
function sumPlainly({ by, since, until, zone = UTC }: ReportQuery): Record<string, unknown> {
  const namers = new Map(by.map((name) => [name, isSpan(name) ? createNamer(name, zone) : null]));
  const nameOf = (row: Row, name: Dimension): string => {
    if (isSpan(name)) return namers.get(name)?.(row.time) ?? "";
    return isClientName(name) ? (row.client?.[name] ?? "") : row[name];
  };
  const sums = new Map<string, Totals>();
  const rows = [...readRows(path)].filter((row) => row !== null);
  for (const row of rows.filter(({ time }) => time >= (since ?? "") && time < (until ?? "9999"))) {
    const name = by.map((each) => nameOf(row, each)).join("|");
    const sum = sums.get(name) ?? openTotals();
    sums.set(name, sum);
    addPlainly(sum, row);
  }
  return describeRows([...sums]);
}

function addPlainly(sum: Totals, { official, charge, was, usage }: Row): void {
  const [wasOfficial, wasCharge] = [was?.official ?? ZERO_DECIMAL, was?.charge ?? ZERO_USD];
  sum.official = subtractDecimals(addDecimals(sum.official, official ?? ZERO_DECIMAL), wasOfficial);
  sum.charge = subtractUsd(addUsd(sum.charge, charge ?? ZERO_USD), wasCharge);
  if (was !== null) return;
  sum.requests += 1;
  for (const [kind, count] of Object.entries(usage)) sum.usage.set(kind, (sum.usage.get(kind) ?? 0) + count);
}

function describeRows(rows: ReadonlyArray<readonly [string, Totals]>): Record<string, unknown> {
  return Object.fromEntries(
    rows.map(([name, sum]) => {
      const { requests, usage, official_usd, charge_usd } = describeTotals(sum);
      return [name, { requests, usage, official_usd, charge_usd }];
    }),
  );
}

function sumWith(index: LedgerIndex, query: ReportQuery): Record<string, unknown> {
  return describeRows(sumLedger(index, query).rows.map(({ names, totals }) => [names.join("|"), totals]));
}

const START = Date.parse("2026-10-24T18:00:00Z");
const samples = array(
  record({
    minutes: oneof(integer({ min: 0, max: 4000 }), integer({ min: 0, max: 150_000 })),
    model: constantFrom("a", "b"),
    key: constantFrom("k", "l"),
    client: constantFrom(
      undefined,
      { tool: "codex", session: "s1" },
      { tool: "codex", session: "s1", agent: "x", label: "größe" },
    ),
    amount: constantFrom(
      null,
      "0",
      "0.000000000001",
      "12.5",
      "2147483.999999999999",
      "2147483648",
      "123456789012345678901234567890",
      "0.0000000000000000000000001",
    ),
    usage: constantFrom<Record<string, number>>(
      {},
      { input: 1, output: 2 },
      { output: 7, input: 0 },
      { input: 9007199254740991 },
      Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`kind_${index}`, index])),
    ),
    isCorrected: constantFrom(false, false, true),
    short: constantFrom(false, false, false, true),
  }),
  { minLength: 1, maxLength: 25 },
);

test("sums of random lines are those of plain arithmetic, by every name and time zone, from every kind of index", () => {
  const queries: ReportQuery[] = [
    ALL,
    { ...ALL, by: ["session", "agent"] },
    { ...ALL, by: ["day"], zone: createZone("Asia/Kolkata") },
    { ...ALL, by: ["hour", "key"], zone: createZone("Europe/Berlin") },
    { ...ALL, by: ["session", "hour"], zone: createZone("Asia/Kathmandu") },
    { by: ["model"], since: "2026-10-25T00:10:00.000Z", until: "2026-10-25T00:40:00.000Z" },
    { by: ["label"], since: "2026-10-25T00:59:00.000Z", until: null },
    { by: ["week"], since: null, until: "2026-10-26T11:30:00.000Z", zone: createZone("Europe/Berlin") },
  ];
  assert(
    property(samples, integer({ min: 0, max: 30 }), (drafts, known) => {
      const texts = drafts.flatMap(({ minutes, amount, isCorrected, short, ...more }, index) => {
        const moment = new Date(START + minutes * 60_000).toISOString();
        const time = short ? moment.replace(".000Z", "Z") : moment;
        const draft = draftOf(`req_${index}`, { ...more, time, official_usd: amount, charge_usd: amount });
        const { id: corrects, key, group, platform, channel, model, usage } = draft;
        const names = { corrects, key, group, platform, channel, model, usage, client: more.client };
        const own = (prev: string): string => encodeLine(draft, prev);
        const correct = (prev: string): string =>
          encodeLine(
            {
              ...names,
              id: `cor_${index}`,
              time: "2026-12-01T00:00:00.000Z",
              request_time: time,
              prices: {},
              price_source: "test",
              tier: null,
              official_usd: "0.25",
              multiplier: "1",
              charge_usd: "0.25",
              was: { official_usd: amount, charge_usd: amount },
            },
            prev,
          );
        return isCorrected ? [own, correct] : [own];
      });
      const lines = chain(texts);
      rmSync(`${path}.index`, { force: true });
      // The file has the first lines. A command reads the others itself.
      if (known > 0) {
        write(path, lines.slice(0, known));
        keep();
      }
      write(path, lines);
      using behind = readIndex(path);
      expect(behind.parts).toHaveLength(known === 0 || known >= lines.length ? 1 : 2);
      for (const query of queries) expect(sumWith(behind, query)).toEqual(sumPlainly(query));
      keep();
      using whole = readIndex(path);
      for (const query of queries) expect(sumWith(whole, query)).toEqual(sumPlainly(query));
    }),
    { numRuns: 60, seed: 1 },
  );
});

test("sums of amounts that together exceed 64 bits are exact", () => {
  const count = 40;
  write(
    path,
    chain(Array.from({ length: count }, (_, id) => lineOf(id, { charge_usd: "2147483.999999999999" }))),
  );
  keep();
  expect(formatUsd(sumLedger(readIndex(path), ALL).total.charge)).toBe("85899359.99999999996");
});

describe("the index file", () => {
  const lines = chain(
    Array.from({ length: 40 }, (_, id) => lineOf(id, { time: `2026-11-20T10:${10 + id}:00.000Z` })),
  );
  const count = () => sumLedger(readIndex(path), ALL).total.requests;
  /** How many parts an index has, and what a command would say. */
  const look = () => {
    const notes: string[] = [];
    using index = openIndex(path, (text) => notes.push(text));
    return { parts: index.parts.length, lines: index.progress.lines, notes };
  };

  test("can be read by its user only, and so can what SQLite puts beside it", () => {
    write(path, lines);
    const keeper = new IndexKeeper(path, () => {});
    keeper.advance(Number.POSITIVE_INFINITY);
    for (const tail of ["", "-wal", "-shm"])
      expect(statSync(`${path}.index${tail}`).mode & 0o777).toBe(0o600);
    keeper.close();
  });

  test("is not changed by a command that finds it behind", () => {
    write(path, lines.slice(0, 10));
    keep();
    const before = readFileSync(`${path}.index`);
    write(path, lines);
    expect(look()).toEqual({ parts: 2, lines: 40, notes: [] });
    expect(count()).toBe(40);
    expect(readFileSync(`${path}.index`).equals(before)).toBe(true);
  });

  test("is read by commands while a gateway writes it", () => {
    write(path, lines.slice(0, 10));
    const keeper = new IndexKeeper(path, () => {});
    keeper.advance(Number.POSITIVE_INFINITY);
    using index = readIndex(path);
    write(path, lines);
    keeper.advance(Number.POSITIVE_INFINITY);
    expect(sumLedger(index, ALL).total.requests).toBe(10);
    expect(look()).toEqual({ parts: 1, lines: 40, notes: [] });
    keeper.close();
  });

  test("grows in steps, and says how far it is", () => {
    write(path, lines);
    const keeper = new IndexKeeper(path, () => {});
    const shares: number[] = [];
    while (!keeper.advance(4000)) shares.push(keeper.read);
    expect(shares.length).toBeGreaterThan(5);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect([keeper.read, keeper.index.progress.lines]).toEqual([1, 40]);
    keeper.close();
    // Without it, a question for one request reads every row.
    using index = readIndex(path);
    const sql = "SELECT name FROM sqlite_master WHERE name = 'requests_by_id'";
    expect(index.parts[0]?.list(sql)).toEqual([["requests_by_id"]]);
  });

  test("goes on after a rotation, and counts nothing twice", () => {
    write(path, lines.slice(0, 20));
    const keeper = new IndexKeeper(path, () => {});
    keeper.advance(Number.POSITIVE_INFINITY);
    write(path, lines.slice(0, 25));
    renameSync(path, folder.join("ledger-2026-11.jsonl"));
    write(path, lines.slice(25));
    keeper.advance(Number.POSITIVE_INFINITY);
    keeper.advance(Number.POSITIVE_INFINITY);
    expect(keeper.index.progress.files.map(({ first }) => first)).toEqual([1, 26]);
    keeper.close();
    expect([look().parts, count()]).toEqual([1, 40]);
  });

  test("has a torn line as soon as it is whole", () => {
    write(path, lines.slice(0, 5));
    appendFileSync(path, (lines[5] ?? "").slice(0, 50));
    keep();
    expect(count()).toBe(5);
    appendFileSync(path, `${(lines[5] ?? "").slice(50)}\n`);
    keep();
    expect(count()).toBe(6);
  });

  test.each([
    ["cut", () => truncateSync(path, Buffer.byteLength(`${lines.slice(0, 7).join("\n")}\n`)), 7],
    [
      "replaced by another one",
      () => write(path, chain(Array.from({ length: 12 }, (_, id) => lineOf(id + 100)))),
      12,
    ],
    [
      "written again with another amount",
      () => write(path, chain(lines.map((_, id) => lineOf(id, { charge_usd: "1" })))),
      40,
    ],
    ["given an older file", () => write(folder.join("ledger-2026-01.jsonl"), lines.slice(0, 3)), 43],
    ["removed", () => rmSync(path), 0],
  ])("is not used for a ledger that was %s, and is made again", (_, change, left) => {
    write(path, lines);
    keep();
    change();
    expect(count()).toBe(left);
    expect(look().notes).toEqual([expect.stringContaining("the ledger has changed")]);
    keep();
    expect([look().notes, look().lines, count()]).toEqual([[], left, left]);
  });

  test.each([
    ["damaged", () => writeFileSync(`${path}.index`, Buffer.alloc(9000, 7))],
    ["empty", () => writeFileSync(`${path}.index`, "")],
    ["of another version", () => changeSchema()],
    ["gone", () => rmSync(`${path}.index`)],
    ["without the place that it has read to", () => changeIndex("DELETE FROM meta")],
  ])("is made again if it is %s", (_, change) => {
    write(path, lines);
    keep();
    change();
    expect(count()).toBe(40);
    const notes: string[] = [];
    keep(3, notes);
    expect([notes, look()]).toEqual([[], { parts: 1, lines: 40, notes: [] }]);
  });

  const changeIndex = (sql: string): void => {
    const database = new Database(`${path}.index`);
    database.run(sql);
    database.close();
  };

  const changeSchema = (): void => {
    const bytes = readFileSync(`${path}.index`);
    // The place of `user_version` in the header of SQLite's files.
    bytes.writeUInt32BE(99, 60);
    writeFileSync(`${path}.index`, bytes);
  };

  test("that was removed while a gateway runs is made again", () => {
    write(path, lines);
    const keeper = new IndexKeeper(path, () => {});
    keeper.advance(Number.POSITIVE_INFINITY);
    for (const tail of ["", "-wal", "-shm"]) rmSync(`${path}.index${tail}`);
    keeper.advance(Number.POSITIVE_INFINITY);
    keeper.close();
    expect(look()).toEqual({ parts: 1, lines: 40, notes: [] });
  });

  test.each(["", "-wal", "-shm"])("is never written through a link at its place (%s)", (tail) => {
    write(path, lines);
    if (tail !== "") keep();
    const target = folder.join("other");
    writeFileSync(target, "mine");
    symlinkSync(target, `${path}.index${tail}`);
    const notes: string[] = [];
    keep(3, notes);
    expect(readFileSync(target, "utf8")).toBe("mine");
    expect(notes.join()).toContain("is a link");
    expect(count()).toBe(40);
  });

  test("with a damaged page is replaced by the ledger's first lines, and the report says so", () => {
    write(path, lines.slice(0, 30));
    keep();
    write(path, lines);
    damageIndex(path);
    const notes: string[] = [];
    using index = openIndex(path, (text) => notes.push(text));
    expect(sumWith(index, ALL)).toEqual(sumPlainly(ALL));
    expect(sumWith(index, { ...ALL, by: ["session"] })).toEqual(sumPlainly({ ...ALL, by: ["session"] }));
    expect(notes).toEqual([expect.stringMatching(/index is damaged \(.*\): the ledger itself is read\.$/)]);
  });

  test("with damaged sums of a day is replaced by the ledger, and a running gateway makes it again", () => {
    write(path, lines);
    keep();
    changeIndex("UPDATE spans SET cells = zeroblob(60)");
    const notes: string[] = [];
    using index = openIndex(path, (text) => notes.push(text));
    expect(sumWith(index, ALL)).toEqual(sumPlainly(ALL));
    expect(notes).toEqual([expect.stringMatching(/index is damaged \(.*\): the ledger itself is read\.$/)]);
    const keeper = new IndexKeeper(path, () => {});
    keeper.advance(Number.POSITIVE_INFINITY);
    expect(() => sumWith(keeper.index, ALL)).toThrow(DamagedIndex);
    keeper.remake();
    keeper.advance(Number.POSITIVE_INFINITY);
    expect(sumWith(keeper.index, ALL)).toEqual(sumPlainly(ALL));
    keeper.close();
  });

  test("is empty for a ledger that does not exist yet", () => {
    keep();
    expect(count()).toBe(0);
    write(path, lines);
    keep();
    expect(look()).toEqual({ parts: 1, lines: 40, notes: [] });
  });

  test("that cannot be made leaves the gateway with one in memory", () => {
    mkdirSync(`${path}.index`);
    write(path, lines);
    const notes: string[] = [];
    const keeper = new IndexKeeper(path, (text) => notes.push(text));
    while (!keeper.advance(Number.POSITIVE_INFINITY));
    expect(sumLedger(keeper.index, ALL).total.requests).toBe(40);
    expect(notes).toEqual([expect.stringContaining("it is kept in memory")]);
    keeper.close();
    expect(existsSync(`${path}.index-wal`)).toBe(false);
  });
});
