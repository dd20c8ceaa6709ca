// The table has the sums of the ledger's lines, however the table was made. A reader
// notices a table of another ledger, and a table that somebody else has changed.

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
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
import { type Correction, encodeLine, GENESIS, hashLine, type Line } from "../../src/billing/ledger/line.ts";
import { type Dimension, isSpan, reportUsage, type UsageQuery } from "../../src/billing/reports/usage.ts";
import { Sums } from "../../src/billing/ledger/sums.ts";
import { NOTHING_READ } from "../../src/billing/store/follow.ts";
import { isIntact, Table } from "../../src/billing/store/open.ts";
import {
  addDecimals,
  type Decimal,
  formatDecimal,
  formatUsd,
  parseDecimal,
  subtractDecimals,
  ZERO_DECIMAL,
} from "../../src/lib/money.ts";
import { createZone, nameSpan, UTC } from "../../src/lib/text/zone.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";
import { damageTable, draftOf, makeTable } from "./ledger/ledger-samples.ts";

let folder: TempFolder;
let path: string;
beforeEach(() => {
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
});
afterEach(() => folder.remove());

const NOTHING = JSON.stringify(NOTHING_READ);
const NOW = new Date("2026-12-01T00:00:00Z");
const ALL: UsageQuery = { by: ["day"], since: null, until: null, zone: UTC, now: NOW };

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

type PlainLine = Line & Partial<Pick<Correction, "corrects" | "was">>;

interface PlainSum {
  requests: number;
  official: Decimal;
  charge: Decimal;
  readonly usage: Record<string, number>;
}

const isIn = (time: string, since: string, until: string): boolean =>
  Date.parse(time) >= Date.parse(since) && Date.parse(time) < Date.parse(until);

function sumPlainly({ by, since, until, zone }: UsageQuery): Record<string, unknown> {
  const nameOf = (line: PlainLine, name: Dimension): string =>
    isSpan(name)
      ? nameSpan(name, zone.toLocal(Date.parse(line.time)))
      : ({ ...line, ...line.client }[name] ?? "");
  const lines: PlainLine[] = readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text));
  const requests = new Map(
    lines.filter(({ corrects }) => corrects === undefined).map((line) => [line.id, line]),
  );
  const sums = new Map<string, PlainSum>();
  for (const line of lines) {
    const own = requests.get(line.corrects ?? line.id) ?? line;
    if (!isIn(own.time, since ?? "1970-01-01", until ?? "2999-01-01")) continue;
    const none = { requests: 0, official: ZERO_DECIMAL, charge: ZERO_DECIMAL, usage: {} };
    const sum = sums.getOrInsert(by.map((name) => nameOf(own, name)).join("|"), none);
    const amount = (text: string | null | undefined): Decimal => parseDecimal(text ?? "0");
    sum.official = addDecimals(sum.official, amount(line.official_usd));
    sum.charge = addDecimals(sum.charge, amount(line.charge_usd));
    if (own === line) {
      sum.requests += 1;
      for (const [kind, count] of Object.entries(line.usage))
        sum.usage[kind] = (sum.usage[kind] ?? 0) + count;
    } else {
      sum.official = subtractDecimals(sum.official, amount(line.was?.official_usd));
      sum.charge = subtractDecimals(sum.charge, amount(line.was?.charge_usd));
    }
  }
  const describe = ({ official, charge, ...sum }: PlainSum) => ({
    ...sum,
    official_usd: formatDecimal(official),
    charge_usd: formatDecimal(charge),
  });
  return Object.fromEntries(Array.from(sums, ([name, sum]) => [name, describe(sum)]));
}

function sumWith(table: Table, query: UsageQuery): Record<string, unknown> {
  const rows = reportUsage(table, query).rows.filter(({ requests }) => requests > 0);
  const byCharge = rows.toSorted((a, b) => Number(b.charge_usd) - Number(a.charge_usd));
  if (!query.by.some(isSpan)) expect(rows).toEqual(byCharge);
  return Object.fromEntries(
    rows.map((row) => {
      const { requests, usage, official_usd, charge_usd } = row;
      return [query.by.map((name) => row[name]).join("|"), { requests, usage, official_usd, charge_usd }];
    }),
  );
}

const START = Date.parse("2026-10-24T18:00:00Z");
const AMOUNTS = "0 0.000000000001 12.5 1000 1000.000000000001 123456789012345678901234567890".split(" ");
const samples = array(
  record({
    minutes: oneof(integer({ min: 0, max: 4000 }), integer({ min: 0, max: 50_000 })),
    model: constantFrom("a", "b"),
    key: constantFrom("k", "l"),
    client: constantFrom(
      undefined,
      { tool: "codex", session: "s1" },
      { tool: "codex", session: "s1", agent: "x", label: "größe" },
    ),
    official: constantFrom(null, ...AMOUNTS, "0.0000000000000000000000001"),
    charge: constantFrom(...AMOUNTS),
    usage: constantFrom<Record<string, number>>(
      {},
      { input: 1, output: 2 },
      { output: 7, input: 0 },
      { input: 9_007_199_254_740 },
      Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`kind_${index}`, index])),
    ),
    isCorrected: constantFrom(false, false, true),
    short: constantFrom(false, false, false, true),
  }),
  { minLength: 1, maxLength: 25 },
);

test("P49: the sums of random lines are the same in a table's file, in a table in memory and by plain arithmetic", () => {
  const queries: UsageQuery[] = [
    ALL,
    { ...ALL, by: ["session", "agent"] },
    { ...ALL, by: ["day"], zone: createZone("Asia/Kolkata") },
    { ...ALL, by: ["hour", "key"], zone: createZone("Europe/Berlin") },
    { ...ALL, by: ["session", "hour"], zone: createZone("Asia/Kathmandu") },
    { ...ALL, since: "2026-10-25T00:10:00.000Z", until: "2026-10-25T00:40:00.000Z" },
    { ...ALL, by: ["label"], since: "2026-10-25T00:59:00.000Z" },
    { ...ALL, by: ["week"], until: "2026-10-26T11:30:00.000Z", zone: createZone("Europe/Berlin") },
  ];
  assert(
    property(samples, integer({ min: 0, max: 30 }), (drafts, known) => {
      const texts = drafts.flatMap(({ minutes, official, charge, isCorrected, short, ...more }, index) => {
        const moment = new Date(START + minutes * 60_000).toISOString();
        const time = short ? moment.replace(".000Z", "Z") : moment;
        const was = { official_usd: official, charge_usd: official === null ? null : charge };
        const draft = draftOf(`req_${index}`, { ...more, time, ...was });
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
              was,
            },
            prev,
          );
        return isCorrected ? [own, correct] : [own];
      });
      const lines = chain(texts);
      rmSync(`${path}.index`, { force: true });
      // The table gets the first lines, and the next reader adds the later ones.
      write(path, lines.slice(0, known));
      if (known > 0) makeTable(path);
      write(path, lines);
      makeTable(path);
      const notes: string[] = [];
      using file = new Table(path, { report: (note) => notes.push(note), compares: true });
      expect(notes).toEqual([]);
      rmSync(`${path}.index`);
      using memory = new Table(path, { report: () => {}, isCopy: true });
      expect([file.isInMemory, memory.isInMemory]).toEqual([false, true]);
      for (const query of queries)
        for (const table of [file, memory]) expect(sumWith(table, query)).toEqual(sumPlainly(query));
    }),
    { numRuns: 30, seed: 1 },
  );
});

const count = (table: Table): number => reportUsage(table, ALL).total.requests;

/** Queries the table. Returns its answer, and the problems that were reported meanwhile. */
function look() {
  const notes: string[] = [];
  using table = new Table(path, { report: (text) => notes.push(text) });
  const { charge_usd: charge } = reportUsage(table, ALL).total;
  return { isInMemory: table.isInMemory, requests: count(table), charge, notes };
}

describe("the ledger's table is made safely, read consistently and replaced if damaged", () => {
  const lines = chain(
    Array.from({ length: 40 }, (_, id) =>
      lineOf(id, { time: `2026-11-20T10:${10 + id}:00.000Z`, charge_usd: "0.5", official_usd: "0.5" }),
    ),
  );
  const FINE = { isInMemory: false, requests: 40, charge: "20", notes: [] };

  test("the ledger's table can be read by its user only, and so can what SQLite puts next to it", () => {
    write(path, lines);
    using _ = new Table(path, { report: () => {} });
    for (const tail of ["", "-wal", "-shm"])
      expect(statSync(`${path}.index${tail}`).mode & 0o777).toBe(0o600);
  });

  test("the ledger's table answers all queries of one report from the same moment", () => {
    write(path, lines.slice(0, 10));
    using table = new Table(path, { report: () => {} });
    write(path, lines);
    expect(look()).toEqual(FINE);
    expect(count(table)).toBe(10);
  });

  test("the ledger's table has each line once if several processes read the ledger at the same time", async () => {
    write(path, lines);
    const code = `import { Table } from ${JSON.stringify(require.resolve("../../src/billing/store/open.ts"))};
      new Table(${JSON.stringify(path)}, { report: console.log })[Symbol.dispose]();`;
    const running = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", code]));
    for (const each of running) {
      expect(await new Response(each.stdout).text()).toBe("");
      expect(await each.exited).toBe(0);
    }
    expect(look()).toEqual(FINE);
  });

  test("the ledger's table goes on reading after a rotation, and counts nothing twice", () => {
    write(path, lines.slice(0, 20));
    makeTable(path);
    write(path, lines.slice(0, 25));
    renameSync(path, folder.join("ledger-2026-11.jsonl"));
    write(path, lines.slice(25));
    expect([look(), look()]).toEqual([FINE, FINE]);
  });

  test("a torn line is in the table as soon as it is complete", () => {
    write(path, lines.slice(0, 5));
    appendFileSync(path, (lines[5] ?? "").slice(0, 50));
    expect(look().requests).toBe(5);
    appendFileSync(path, `${(lines[5] ?? "").slice(50)}\n`);
    expect(look().requests).toBe(6);
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
  ])("the table of a ledger that was %s is made again", (_, change, left) => {
    write(path, lines);
    makeTable(path);
    change();
    expect(look()).toMatchObject({ isInMemory: false, requests: left, notes: [] });
  });

  const changeTable = (...statements: readonly string[]): void => {
    const database = new Database(`${path}.index`);
    for (const sql of statements) database.run(sql);
    database.close();
  };

  test.each([
    [
      "is damaged",
      () => writeFileSync(`${path}.index`, Buffer.alloc(9000, 7)),
      /cannot be used .* it is made again/,
    ],
    ["is empty", () => writeFileSync(`${path}.index`, ""), null],
    ["is gone", () => rmSync(`${path}.index`), null],
    ["is of another version", () => changeTable("PRAGMA user_version = 5"), null],
    ["has another column", () => changeTable("ALTER TABLE lines ADD COLUMN more_yet TEXT"), null],
    [
      "has a trigger",
      () => changeTable("CREATE TRIGGER t AFTER INSERT ON lines BEGIN DELETE FROM marks; END"),
      null,
    ],
    [
      "has a view in place of its rows",
      () => changeTable("DROP TABLE lines", "CREATE VIEW lines AS SELECT 1"),
      null,
    ],
    ["does not say how far it has read", () => changeTable("DELETE FROM state"), null],
    ["says it has read to another place", () => changeTable("UPDATE state SET position = '7'"), /other sums/],
    [
      "has rows of lines that it says it has not read",
      () => changeUnseen(`UPDATE state SET position = '${NOTHING}'`),
      /made again/,
    ],
  ])("a table that %s is made again", (_, change, note) => {
    write(path, lines);
    makeTable(path);
    change();
    const found = look();
    expect(found).toEqual({ ...FINE, notes: note === null ? [] : [expect.stringMatching(note)] });
    expect(look()).toEqual(FINE);
  });

  /** Changes the table's file as a damaged byte would: no trigger notices it. */
  const changeUnseen = (statement: string): void => {
    const database = new Database(`${path}.index`);
    const triggers = database.query("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").values();
    for (const [name] of triggers) database.run(`DROP TRIGGER ${String(name)}`);
    for (const sql of [statement, ...triggers.map(([, made]) => String(made))]) database.run(sql);
    database.close();
  };

  /** Statements that each change a value: a text keeps its length and first letter. */
  function listChanges(tables: readonly string[]): string[] {
    using database = new Database(`${path}.index`);
    return tables.flatMap((name) => {
      const columns = database.query(`SELECT name FROM pragma_table_info('${name}')`).values().flat();
      return columns.map(String).map(
        (column) => `UPDATE ${name} SET ${column} = CASE typeof(${column})
            WHEN 'integer' THEN ${column} + 1 WHEN 'null' THEN 7
            ELSE substr(${column}, 1, length(${column}) / 2) || '~' || substr(${column}, length(${column}) / 2 + 2) END
          WHERE rowid = (SELECT MAX(rowid) FROM ${name})`,
      );
    });
  }

  const writeRich = (): void => {
    const at = "2026-11-20T10:00:00.000Z";
    const client = { tool: "tool", version: "1.2", session: "s1", agent: "a1", parent: "p1", label: "l1" };
    const cache = { missed: 3, usd: "0.1", because: "cause" };
    const usage = { input: 9, cache_read: 8, cache_write_5m: 7, cache_write: 5, output: 4, tool_prompt: 2 };
    const mark = { id: "mark_1", time: at, mark: "found", request_time: at, key: "laptop", group: "claude" };
    const rich = (usd: string) => {
      const amounts = { charge_usd: usd, official_usd: usd, limit_usd: usd };
      return { ...amounts, client, cache, usage, paid_by: "plan" as const };
    };
    const marked = (prev: string): string => encodeLine(mark, prev);
    write(path, chain([marked, () => "no line", lineOf(1, rich("0.5")), lineOf(2, rich("2000"))]));
    makeTable(path);
  };
  const RICH = { ...FINE, requests: 2, charge: "2000.5" };
  const AGAIN = [expect.stringContaining("other sums than when they were read): it is made again")];

  test("a change of any value in the table is found by verify, and the next reader makes the table again", () => {
    writeRich();
    for (const sql of listChanges(["lines", "names", "marks", "unreadable", "state"])) {
      changeTable(sql);
      const notes = sql.startsWith("UPDATE state") ? expect.anything() : AGAIN;
      expect([sql, isIntact(path), look()]).toEqual([sql, false, { ...RICH, notes }]);
      using _ = new Table(path, { report: () => {}, compares: true });
      expect([sql, look(), isIntact(path)]).toEqual([sql, RICH, true]);
    }
    changeTable("DELETE FROM lines WHERE line = 3");
    expect([look(), look()]).toEqual([{ ...RICH, notes: AGAIN }, RICH]);
  });

  test("verify and a gateway find a changed byte in a name, and in an amount that is part of a report's sums", () => {
    writeRich();
    const others =
      /lines SET (?:line|place|id|corrections|named|status|first_byte|duration|cause|changed_at|part|detail|from_channel|windows) /;
    for (const sql of listChanges(["lines", "names"]).filter((each) => !others.test(each))) {
      changeUnseen(sql);
      expect([sql, isIntact(path)]).toEqual([sql, false]);
      const notes: string[] = [];
      new Table(path, { report: (note) => notes.push(note), compares: true })[Symbol.dispose]();
      expect([sql, notes, look()]).toEqual([sql, AGAIN, RICH]);
    }
  });

  test("when a gateway starts, it finds a changed byte in an amount that counts towards a limit", () => {
    writeRich();
    const counted = /lines SET (?:at|charge|counted|official|exact) |SET (?:key|group_name|channel|paid_by) /;
    for (const sql of listChanges(["lines", "names"]).filter((each) => counted.test(each))) {
      changeUnseen(sql);
      const notes: string[] = [];
      const sums = new Sums({ path, now: () => NOW.getTime(), report: (note) => notes.push(note) });
      const { charged, byPlan } = sums.spentOf({ kind: "key", name: "laptop" }, "total");
      expect([sql, formatUsd(charged), formatUsd(byPlan), notes]).toEqual([sql, "2000.5", "2000.5", AGAIN]);
    }
  });

  test.each(["", "-wal", "-shm"])("the ledger's table is never written through a link (%s)", (tail) => {
    write(path, lines);
    if (tail !== "") makeTable(path);
    const target = folder.join("other");
    writeFileSync(target, "mine");
    symlinkSync(target, `${path}.index${tail}`);
    expect(look()).toEqual({ ...FINE, isInMemory: true, notes: [expect.stringContaining("is a link")] });
    expect(readFileSync(target, "utf8")).toBe("mine");
  });

  test("if a page of the ledger's table is damaged, a report says so and reads the ledger, and the next report makes the table again", () => {
    write(path, lines);
    makeTable(path);
    damageTable(path);
    const notes = [expect.stringMatching(/index .* is damaged \(.*\): the ledger itself is read\.$/)];
    expect(look()).toEqual({ ...FINE, isInMemory: true, notes });
    expect(look()).toEqual(FINE);
  });

  test("an error tells the user to remove the ledger's table if the table's exact amounts are not JSON", () => {
    write(path, lines);
    makeTable(path);
    changeUnseen("UPDATE lines SET exact = 'x'");
    expect(look).toThrow(`The index ${path}.index is damaged: remove it`);
  });

  test("the ledger's table stays in use after a wrong query, but a table in memory replaces it if a cell is not JSON", () => {
    write(path, lines);
    makeTable(path);
    const notes: string[] = [];
    using table = new Table(path, { report: (note) => notes.push(note) });
    for (const sql of ["SELECT nothing FROM requests", "SELECT json_extract('{}', 'x')"])
      expect(() => table.list(sql)).toThrow();
    expect([existsSync(`${path}.index`), table.isInMemory, notes]).toEqual([true, false, []]);
    table[Symbol.dispose]();
    changeUnseen("UPDATE lines SET windows = 'x' WHERE line = 7");
    using changed = new Table(path, { report: (note) => notes.push(note) });
    changed.list("SELECT SUM(windows ->> '5h') FROM requests");
    expect([changed.isInMemory, existsSync(`${path}.index`), notes.length]).toEqual([true, false, 1]);
  });

  test("the ledger's table is kept in memory if the ledger is a copy, its folder is read-only, or a folder has the table's name", () => {
    write(path, lines);
    using copy = new Table(path, { report: () => {}, isCopy: true });
    expect([copy.isInMemory, count(copy), existsSync(`${path}.index`)]).toEqual([true, 40, false]);
    mkdirSync(`${path}.index`);
    expect(look()).toEqual({
      ...FINE,
      isInMemory: true,
      notes: [expect.stringContaining("not a regular file")],
    });
    rmSync(`${path}.index`, { recursive: true });
    if (process.geteuid?.() === 0) return;
    chmodSync(folder.join(""), 0o500);
    expect(look()).toEqual({ ...FINE, isInMemory: true });
    chmodSync(folder.join(""), 0o700);
  });

  test("the ledger's table is empty for a ledger that does not exist yet", () => {
    expect(look()).toEqual({ ...FINE, requests: 0, charge: "0" });
    write(path, lines);
    expect(look()).toEqual(FINE);
  });
});
