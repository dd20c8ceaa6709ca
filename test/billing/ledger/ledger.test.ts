import { describe, expect, spyOn, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sample, string } from "fast-check";
import type { Ledger } from "../../../src/billing/ledger/ledger.ts";
import { createZone, UTC, type Zone } from "../../../src/lib/text/zone.ts";
import { Sums } from "../../../src/billing/ledger/sums.ts";
import { nextTurn } from "../../../src/lib/time/next-turn.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { listLedgerFiles, locate } from "../../../src/billing/ledger/rotation.ts";
import { encodeLine, GENESIS, hashLine, lineSchema } from "../../../src/billing/ledger/line.ts";
import { formatUsd } from "../../../src/lib/money.ts";
import {
  damageTable,
  asOfAnotherBoot,
  bill,
  chargedOf,
  costing,
  draftOf,
  intentOf,
  newLedgerPath,
  optionsFor,
  readWholeLedger,
  makeTable,
} from "./ledger-samples.ts";

/** Leaves a ledger as a killed gateway leaves it: nothing is closed, only the lock is free. */
async function abandon(path: string, opened: readonly string[], settled: readonly string[]): Promise<void> {
  const ledger = openLedger(optionsFor(path));
  for (const id of opened) void ledger.open(intentOf(id));
  for (const id of settled) ledger.append(draftOf(id));
  await new Promise<void>((resolve) => setImmediate(resolve));
  const journal = readFileSync(`${path}.open`);
  await ledger.close();
  writeFileSync(`${path}.open`, journal);
}

function countsOf(path: string): Array<[string, number]> {
  return [...readWholeLedger(path).count].sort(([a], [b]) => a.localeCompare(b));
}

describe("a line of the ledger may have any text", () => {
  test("a line may contain any text in names and usage without breaking the file", async () => {
    const path = newLedgerPath();
    const names = sample(string({ unit: "binary" }), { numRuns: 20, seed: 7 });
    const ledger = openLedger(optionsFor(path));
    for (const [index, name] of names.entries())
      await bill(ledger, `req_${index}`, { key: name, raw_usage: { [name]: name } });
    await ledger.close();
    const reopened = openLedger(optionsFor(path));
    await reopened.close();
    expect(readWholeLedger(path).lines.map((line) => line["key"])).toEqual(
      names.map((name) => name.toWellFormed()),
    );
  });
});

const WINDOWS = process.platform === "win32";
/** Windows opens and closes files slowly: fewer cuts are tried there. */
const STEPS = WINDOWS ? 12 : 1;

describe("P122, P124: each request has exactly one line, also after a kill", () => {
  test("appending a line throws if its request already has a line or was never opened", async () => {
    const ledger = openLedger(optionsFor(newLedgerPath()));
    await bill(ledger, "req_1");
    expect(() => ledger.append(draftOf("req_1"))).toThrow("req_1 is not open");
    expect(() => ledger.append(draftOf("req_2"))).toThrow("req_2 is not open");
    await ledger.close();
  });

  test("a discarded request gets no line, neither now nor after a crash", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    void ledger.open(intentOf("req_1"));
    ledger.discard("req_1");
    await new Promise<void>((resolve) => setImmediate(resolve));
    const journal = readFileSync(`${path}.open`);
    await ledger.close();
    writeFileSync(`${path}.open`, journal);
    await openLedger(optionsFor(path)).close();
    expect(readWholeLedger(path).lines).toEqual([]);
  });

  test("a request that was in flight when the gateway died gets a line that names its channels and the outcome `interrupted`", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    void ledger.open(intentOf("req_1"));
    ledger.attempt("req_1", "second");
    await bill(ledger, "req_2");
    await new Promise<void>((resolve) => setImmediate(resolve));
    const journal = readFileSync(`${path}.open`);
    await ledger.close();
    writeFileSync(`${path}.open`, journal);

    const messages: string[] = [];
    await openLedger(optionsFor(path, { report: (message) => messages.push(message) })).close();
    const { lines } = readWholeLedger(path);
    expect(lines.map(({ id, outcome }) => [id, outcome])).toEqual([
      ["req_2", "complete"],
      ["req_1", "interrupted"],
    ]);
    expect(lines[1]).toMatchObject({
      basis: "unknown",
      channel: "second",
      official_usd: null,
      charge_usd: null,
      attempts: [{ channel: "anthropic-main" }, { channel: "second" }],
      suspect: 'the request may have been paid twice: by "anthropic-main", "second"',
    });
    expect(() => lineSchema.parse(lines[1])).not.toThrow();
    expect(messages).toEqual(["1 request was cut short by the gateway's end"]);
  });

  test("an interrupted request's line names only channels that the request was sent to", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    void ledger.open(intentOf("req_1"));
    ledger.attempt("req_1", "second", true);
    void ledger.open(intentOf("req_2"));
    ledger.attempt("req_2", "second", true);
    ledger.attempt("req_2", "third");
    await nextTurn();
    await nextTurn();
    const journal = readFileSync(`${path}.open`);
    await ledger.close();
    writeFileSync(`${path}.open`, journal);
    await openLedger(optionsFor(path)).close();
    const { lines } = readWholeLedger(path);
    expect(lines.map(({ channel, attempts, suspect }) => [channel, attempts, suspect !== undefined])).toEqual(
      [
        ["second", [{ channel: "second" }], false],
        ["third", [{ channel: "second" }, { channel: "third" }], true],
      ],
    );
  });

  test("a recovery that was itself interrupted can run again", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2", "req_3"], ["req_2"]);
    const before = readFileSync(path);
    const journal = readFileSync(`${path}.open`);
    await openLedger(optionsFor(path)).close();
    const after = readFileSync(path);
    for (let end = before.length; end <= after.length; end += 23 * STEPS) {
      writeFileSync(path, after.subarray(0, end));
      writeFileSync(`${path}.open`, journal);
      await openLedger(optionsFor(path)).close();
      expect(readFileSync(path, "utf8")).toBe(after.toString());
    }
  });

  test("a cut journal makes no line for a request that was not sent", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2"], ["req_1"]);
    const journal = readFileSync(`${path}.open`);
    // The record of req_2 may not be the journal's last one: behind it, the journal may note the ledger's end.
    const sent = journal.indexOf("\n", journal.lastIndexOf('"req_2"'));
    const bytes = readFileSync(path);
    for (let end = 0; end <= journal.length; end += 13 * STEPS) {
      writeFileSync(path, bytes);
      writeFileSync(`${path}.open`, journal.subarray(0, end));
      await openLedger(optionsFor(path)).close();
      const { count } = readWholeLedger(path);
      expect(count.get("req_1")).toBe(1);
      expect(count.get("req_2") ?? 0).toBe(end >= sent ? 1 : 0);
    }
  });

  test("pages that a power cut left empty are moved to another file", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2"], ["req_1"]);
    appendFileSync(path, Buffer.concat([Buffer.alloc(100), Buffer.from('"}\n'), Buffer.alloc(50)]));
    const messages: string[] = [];
    await openLedger(optionsFor(path, { report: (message) => messages.push(message) })).close();
    expect([...readWholeLedger(path).count]).toEqual([
      ["req_1", 1],
      ["req_2", 1],
    ]);
    expect(messages[0]).toContain("153 bytes cut off");
    expect(statSync(`${path}.torn`).size).toBeGreaterThan(0);
  });

  test("lines behind a page that a power cut left empty are moved to another file, and each request has a line", async () => {
    const path = newLedgerPath();
    const ids = Array.from({ length: 60 }, (_, number) => `req_${number}`);
    await abandon(path, ids, ids);
    const bytes = readFileSync(path);
    const journal = asOfAnotherBoot(readFileSync(`${path}.open`, "utf8"));
    const page = 8192;
    const whole = bytes.lastIndexOf("\n", page) + 1;
    const torn = Buffer.from(bytes).fill(0, page, page + 4096);
    for (const end of [torn.length, torn.length - 1, torn.length - 30, page + 4096, page + 1]) {
      writeFileSync(path, torn.subarray(0, end));
      writeFileSync(`${path}.open`, journal);
      rmSync(`${path}.torn`, { force: true });
      await openLedger(optionsFor(path)).close();
      expect(readFileSync(path, "utf8")).toStartWith(bytes.toString("utf8", 0, whole));
      expect(readFileSync(`${path}.torn`)).toEqual(torn.subarray(whole, end));
      expect(readWholeLedger(path).count).toEqual(new Map(ids.map((id) => [id, 1])));
    }
  });

  test("a ledger is opened although a power cut zeroed its beginning, but another file that begins with zeros is refused", async () => {
    const path = newLedgerPath();
    const ids = Array.from({ length: 20 }, (_, number) => `req_${number}`);
    await abandon(path, ids, ids);
    const torn = readFileSync(path).fill(0, 0, 4096);
    writeFileSync(path, torn);
    writeFileSync(`${path}.open`, asOfAnotherBoot(readFileSync(`${path}.open`, "utf8")));
    await openLedger(optionsFor(path)).close();
    expect(readFileSync(`${path}.torn`)).toEqual(torn);
    expect(readWholeLedger(path).count).toEqual(new Map(ids.map((id) => [id, 1])));
    const other = newLedgerPath();
    writeFileSync(other, "\0\0\0 the beginning of a picture");
    expect(() => openLedger(optionsFor(other))).toThrow("it is not a ledger");
  });

  test.each([["listen: { port: 4141 }\nkeys: []\n"], ['{\n  "name": "package"\n}\n'], ["\uFEFFx"]])(
    "a file that is not a ledger, such as %j, is refused and stays as it is",
    (text) => {
      const path = newLedgerPath();
      writeFileSync(path, text);
      expect(() => openLedger(optionsFor(path))).toThrow(
        `the ledger ${path} cannot be opened: it is not a ledger`,
      );
      expect(readFileSync(path, "utf8")).toBe(text);
    },
  );

  test.each([["{"], ['{"v":1,"id":"req_1"'], ["\0\0\0"]])(
    "a ledger whose first line is torn can be opened",
    async (text) => {
      const path = newLedgerPath();
      writeFileSync(path, text);
      await openLedger(optionsFor(path)).close();
      expect(readFileSync(path, "utf8")).toBe("");
    },
  );

  test("a last line without its newline stays in the ledger", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1"], ["req_1"]);
    truncateSync(path, statSync(path).size - 1);
    await openLedger(optionsFor(path)).close();
    expect(readWholeLedger(path).lines.map(({ outcome }) => outcome)).toEqual(["complete"]);
  });

  test("a long journal is cut down to the open requests, which are still found after a crash", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("long"));
    for (let number = 0; number < 6000; number += 1) await bill(ledger, `req_${number}`);
    const journal = readFileSync(`${path}.open`);
    expect(journal.length).toBeLessThan(2 << 20);
    await ledger.close();
    writeFileSync(`${path}.open`, journal);
    await openLedger(optionsFor(path)).close();
    const { count, lines } = readWholeLedger(path);
    expect(count.size).toBe(6001);
    expect(lines.length).toBe(6001);
  });
});

test("a request that ends after the ledger was closed gets its line at the next start", async () => {
  const path = newLedgerPath();
  const messages: string[] = [];
  const ledger = openLedger(optionsFor(path, { report: (message) => messages.push(message) }));
  void ledger.open(intentOf("req_1"));
  await Promise.all([ledger.close(), ledger.close()]);
  ledger.append(draftOf("req_1"));
  expect(messages).toEqual([
    "request req_1 ended after the ledger was closed: it gets its line at the next start",
  ]);
  expect(ledger.open(intentOf("req_2"))).rejects.toThrow("it is closed");
  await openLedger(optionsFor(path)).close();
  expect(readWholeLedger(path).lines.map(({ id, outcome }) => [id, outcome])).toEqual([
    ["req_1", "interrupted"],
  ]);
});

describe("P127: a ledger has one writer at a time", () => {
  test("the lock of a killed process does not lock out the next process", async () => {
    const path = newLedgerPath();
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "ledger-load.ts"), path], {
      stdout: "pipe",
    });
    const reader = child.stdout.getReader();
    await reader.read();
    expect(() => openLedger(optionsFor(path))).toThrow(`is being written by process ${child.pid} since`);
    child.kill("SIGKILL");
    await child.exited;
    await openLedger(optionsFor(path)).close();
    readWholeLedger(path);
  });
});

describe("P126: if the disk cannot be written, requests are refused and no line is lost", () => {
  test.skipIf(!existsSync("/dev/null"))(
    "a ledger that is a link to /dev/null is refused, and no lock file is made",
    () => {
      const path = newLedgerPath();
      symlinkSync("/dev/null", path);
      expect(() => openLedger(optionsFor(path))).toThrow("cannot be locked: it is not a regular file");
      expect(existsSync(`${path}.lock`)).toBe(false);
    },
  );

  test("if a ledger cannot be opened, the error names its path", () => {
    const path = join(newLedgerPath(), "nowhere");
    writeFileSync(join(path, ".."), "a file, not a folder");
    expect(() => openLedger(optionsFor(path))).toThrow(`the ledger ${path} cannot be`);
  });
});

describe("P126: if another program changes the ledger, requests are refused and no line is lost", () => {
  const displaced: readonly (readonly [string, (path: string) => void])[] = [
    ["moves", (path) => renameSync(path, `${path}.moved`)],
    ["empties", (path) => truncateSync(path)],
    ["writes to", (path) => appendFileSync(path, "x\n")],
  ];

  // On Windows, nobody can remove or replace an open file.
  const possible: typeof displaced = [
    ["removes", (path) => rmSync(path)],
    [
      "puts a copy in place of",
      (path) => {
        copyFileSync(path, `${path}.copy`);
        renameSync(`${path}.copy`, path);
      },
    ],
  ];

  test.each(WINDOWS ? displaced : [...displaced, ...possible])(
    "if another program %s the ledger, requests are refused within a second, and no line is lost",
    async (_, displace) => {
      const path = newLedgerPath();
      const messages: string[] = [];
      const ledger = openLedger(optionsFor(path, { report: (message) => messages.push(message) }));
      await bill(ledger, "req_1");
      await ledger.open(intentOf("req_2"));
      const before = readFileSync(path);
      displace(path);
      await until(() => ledger.problem !== null);
      expect(ledger.open(intentOf("req_3"))).rejects.toThrow(
        "was moved, removed or changed by another program. Put it back",
      );
      expect(messages).toHaveLength(1);
      expect(ledger.problem).toContain(path);
      ledger.append(draftOf("req_2"));
      await ledger.close();
      expect(messages.at(-1)).toContain("1 line could not be written");
      // The journal still names the request whose line could not be written.
      writeFileSync(path, before);
      await openLedger(optionsFor(path)).close();
      const { lines } = readWholeLedger(path);
      expect(lines.map(({ id, outcome }) => [id, outcome])).toEqual([
        ["req_1", "complete"],
        ["req_2", "interrupted"],
      ]);
    },
  );

  test("lines that could not be written while the ledger was moved away are written when it is back", async () => {
    const path = newLedgerPath();
    const messages: string[] = [];
    const ledger = openLedger(optionsFor(path, { report: (message) => messages.push(message) }));
    await bill(ledger, "req_1");
    await ledger.open(intentOf("req_2"));
    renameSync(path, `${path}.moved`);
    await until(() => ledger.problem !== null);
    ledger.append(draftOf("req_2"));
    // The ledger's first try to write again fails, too.
    await Bun.sleep(1500);
    renameSync(`${path}.moved`, path);
    await until(() => ledger.problem === null);
    await bill(ledger, "req_3");
    await ledger.close();
    expect(messages.at(-1)).toBe("the ledger can be written again");
    expect(readWholeLedger(path).lines.map(({ id }) => id)).toEqual(["req_1", "req_2", "req_3"]);
  });

  test("a ledger that was moved away and put back gets the charge of a response that ended in between", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await bill(ledger, "req_1");
    renameSync(path, `${path}.moved`);
    await until(() => ledger.problem !== null);
    ledger.appendUnopened(draftOf("req_2"));
    renameSync(`${path}.moved`, path);
    await until(() => ledger.problem === null);
    await ledger.close();
    expect(readWholeLedger(path).lines.map(({ id }) => id)).toEqual(["req_1", "req_2"]);
  });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5);
}

describe("the ledger is rotated without losing a line", () => {
  test("rotation by month gives each file the lines that were written in its month", async () => {
    const path = newLedgerPath();
    let now = Date.parse("2026-10-31T23:59:59Z");
    const ledger = openLedger(optionsFor(path, { rotate: { monthly: true }, now: () => now }));
    await bill(ledger, "october");
    ledger.flush();
    now += 1000;
    await bill(ledger, "november");
    await ledger.close();
    expect(readFileSync(path.replace(".jsonl", "-2026-10.jsonl"), "utf8")).toContain('"october"');
    expect(readFileSync(path, "utf8")).not.toContain('"october"');
    readWholeLedger(path);
  });

  test("after a kill in the middle of a rotation, each request has one line", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2", "req_3"], ["req_1", "req_2"]);
    renameSync(path, path.replace(".jsonl", "-2026-11.jsonl"));
    const journal = readFileSync(`${path}.open`);
    for (const crashed of ["before the new file", "after it"]) {
      if (crashed === "after it") writeFileSync(path, "");
      else rmSync(path, { force: true });
      writeFileSync(`${path}.open`, journal);
      await openLedger(optionsFor(path)).close();
      expect(countsOf(path)).toEqual([
        ["req_1", 1],
        ["req_2", 1],
        ["req_3", 1],
      ]);
    }
  });
});

test("a ledger can be opened although a rotated file has a torn end", async () => {
  const path = newLedgerPath();
  const line = encodeLine(draftOf("req_1", { time: new Date().toISOString() }), GENESIS);
  writeFileSync(path.replace(".jsonl", "-2026-11.jsonl"), `${line}\n${line.slice(0, 99)}`);
  const ledger = openLedger(optionsFor(path));
  expect(ledger.sums.lastUsed("laptop")).not.toBe(null);
  await ledger.close();
});

test("P143: a place in the chain is found in any of the ledger's files if its offset and its hash are both right", () => {
  const path = newLedgerPath();
  let prev = GENESIS;
  const places: Array<{ file: number; offset: number; prev: string }> = [];
  for (const [file, suffix] of ["-2026-09", "-2026-09.2", "-2026-09.10", ""].entries()) {
    let text = "";
    for (let number = 0; number < 4; number += 1) {
      places.push({ file, offset: text.length, prev });
      const line = encodeLine(draftOf(`req_${file}_${number}`), prev);
      prev = hashLine(line);
      text += `${line}\n`;
    }
    writeFileSync(path.replace(".jsonl", `${suffix}.jsonl`), text);
  }
  const files = listLedgerFiles(path);
  expect(files.map((file) => file.slice(path.length - ".jsonl".length))).toEqual([
    "-2026-09.jsonl",
    "-2026-09.2.jsonl",
    "-2026-09.10.jsonl",
    ".jsonl",
  ]);
  for (const { file, offset, prev: before } of places) {
    expect(locate(files, { offset, prev: before })).toEqual({ file, offset });
    expect(locate(files, { offset: offset + 1, prev: before })).toBe(null);
    expect(locate(files, { offset, prev: GENESIS.replace("0", "1") })).toBe(null);
  }
});

describe("the ledger's sums are right after a restart, with an index or without", () => {
  const at = (time: string) => ({ now: () => Date.parse(time) });

  test("the sums of keys and groups, by UTC day, by UTC month and in total, survive a restart", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, at("2026-11-20T12:00:00Z"));
    const sumsOf = (ledger: Ledger) =>
      (["key", "group"] as const).map((kind) =>
        (["day", "month", "total"] as const).map((window) =>
          formatUsd(
            ledger.sums.spentOf({ kind, name: kind === "key" ? "laptop" : "claude" }, window).charged,
          ),
        ),
      );
    const ledger = openLedger(options);
    const client = { session: "first" };
    await bill(ledger, "req_1", { charge_usd: "0.1", time: "2026-10-31T23:59:59.999Z", client });
    await bill(ledger, "req_2", { charge_usd: "0.2", time: "2026-11-01T00:00:00.000Z" });
    await bill(ledger, "req_3", { charge_usd: "0.000000000001", time: "2026-11-20T00:00:00.000Z" });
    await bill(ledger, "req_4", { charge_usd: null, time: "2026-11-20T01:00:00.000Z" });
    await bill(ledger, "req_5", { charge_usd: "7", key: "other", time: "2026-11-20T01:00:00.000Z" });
    const expected = [
      ["0.000000000001", "0.200000000001", "0.300000000001"],
      ["7.000000000001", "7.200000000001", "7.300000000001"],
    ];
    expect(sumsOf(ledger)).toEqual(expected);
    expect(ledger.sums.lastUsed("laptop")).toBe("2026-11-20T01:00:00.000Z");
    expect(ledger.sums.lastUsed("never")).toBe(null);
    await ledger.close();

    for (const damage of ["no table", "none", "behind", "damaged", "damaged page"] as const) {
      const text = readFileSync(path, "utf8");
      if (damage === "no table") rmSync(`${path}.index`);
      if (damage === "behind") {
        rmSync(`${path}.index`);
        writeFileSync(path, text.slice(0, text.indexOf("\n") + 1));
        makeTable(path);
        writeFileSync(path, text);
      }
      if (damage === "damaged") writeFileSync(`${path}.index`, "damaged");
      if (damage === "damaged page") {
        rmSync(`${path}.index`);
        makeTable(path);
        damageTable(path);
      }
      const levels: unknown[] = [];
      const again = openLedger({ ...options, report: (_, level) => levels.push(level) });
      const { charged } = again.sums.spentOf({ kind: "session", name: "first" }, "total");
      expect([damage, formatUsd(charged), sumsOf(again)]).toEqual([damage, "0.1", expected]);
      // An unusable index is not an error: the ledger has all that the index had.
      expect(levels).toEqual(damage.startsWith("damaged") ? ["note"] : []);
      expect(again.sums.lastUsed("laptop")).toBe("2026-11-20T01:00:00.000Z");
      await again.close();
    }
  });

  test("an index is used only for the ledger that it was made from", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, at("2026-11-20T12:00:00Z"));
    const first = openLedger(options);
    await bill(first, "req_1", { charge_usd: "1" });
    await first.close();
    makeTable(path);
    const old = readFileSync(`${path}.index`);
    const second = openLedger(options);
    await bill(second, "req_2", { charge_usd: "2" });
    await second.close();
    const third = openLedger(options);
    // The start has read the index, and no later query reads it.
    rmSync(`${path}.index`);
    expect(formatUsd(third.sums.spentOf({ kind: "key", name: "laptop" }, "total").charged)).toBe("3");
    expect([third.sums.lastUsed("laptop") !== null, existsSync(`${path}.index`)]).toEqual([true, false]);
    await third.close();

    renameSync(path, path.replace(".jsonl", "-2026-11.jsonl"));
    const fourth = openLedger(options);
    expect(formatUsd(fourth.sums.spentOf({ kind: "key", name: "laptop" }, "total").charged)).toBe("3");
    await fourth.close();

    const strange = newLedgerPath();
    writeFileSync(`${strange}.index`, old);
    const fifth = openLedger({ ...options, path: strange });
    expect(formatUsd(fifth.sums.spentOf({ kind: "key", name: "laptop" }, "total").charged)).toBe("0");
    await fifth.close();
  });

  test("a start reports lines that are gone, and reports none if all are there", async () => {
    const path = newLedgerPath();
    const reported: string[] = [];
    const options = optionsFor(path, { report: (message) => reported.push(message) });
    for (const id of ["req_1", "req_2"]) {
      const ledger = openLedger(options);
      await bill(ledger, id);
      await ledger.close();
    }
    expect(reported).toEqual([]);
    truncateSync(path, readFileSync(path).indexOf("\n") + 1);
    const count = async (): Promise<[gone: number, marks: number]> => {
      reported.length = 0;
      await openLedger(options).close();
      const gone = reported.filter((message) => message.includes("are gone or changed"));
      return [gone.length, reported.length - gone.length];
    };
    // The first start puts a mark into the chain, and so shows the gap. Later ones report the mark until it is accepted.
    expect([await count(), await count()]).toEqual([
      [1, 1],
      [0, 1],
    ]);
    const ledger = openLedger(options);
    expect(ledger.acceptMarks()).toHaveLength(1);
    await ledger.close();
    expect(await count()).toEqual([0, 0]);
  });

  test("a correction changes the sum of the day on which the request was made", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, at("2026-11-20T12:00:00Z"));
    const ledger = openLedger(options);
    await bill(ledger, "req_1", { charge_usd: "5", time: "2026-11-02T00:00:00.000Z" });
    const { key, group, platform, channel, model } = draftOf("x");
    ledger.correct({
      id: "cor_1",
      time: "2026-11-20T12:00:00.000Z",
      corrects: "req_1",
      request_time: "2026-11-02T00:00:00.000Z",
      key,
      group,
      platform,
      channel,
      model,
      ...costing("3"),
      price_source: "test",
      tier: "standard",
      was: { official_usd: "5", charge_usd: "5" },
    });
    const read = (of: Ledger) =>
      (["day", "month", "total"] as const).map((window) =>
        formatUsd(of.sums.spentOf({ kind: "key", name: "laptop" }, window).charged),
      );
    expect(read(ledger)).toEqual(["0", "3", "3"]);
    await ledger.close();
    const again = openLedger(options);
    expect(read(again)).toEqual(["0", "3", "3"]);
    await again.close();
    readWholeLedger(path);
  });
});

test("a gateway stops although its last sync fails, and the next gateway starts", async () => {
  const path = newLedgerPath();
  const messages: string[] = [];
  const options = optionsFor(path, {
    report: (message) => messages.push(message),
    syncFile: () => Promise.reject(new Error("EIO: i/o error, fdatasync")),
  });
  const ledger = openLedger(options);
  await bill(ledger, "req_1");
  await ledger.close();
  expect(messages.at(-1)).toBe(
    "the ledger's last lines may not be on the disk: Error: EIO: i/o error, fdatasync",
  );
  await openLedger(optionsFor(path)).close();
  expect(countsOf(path)).toEqual([["req_1", 1]]);
});

/** Makes the first sync of a gateway fail, while the gateway runs on or while it stops. */
async function failFirstSync(path: string, isStopping: boolean): Promise<void> {
  const first = Promise.withResolvers<void>();
  const results = [first.promise];
  const syncFile = (): Promise<void> => results.shift() ?? Promise.resolve();
  const ledger = openLedger(optionsFor(path, { syncFile }));
  await bill(ledger, "req_1");
  await until(() => results.length === 0);
  const stopped = isStopping ? ledger.close() : null;
  first.reject(new Error("EIO"));
  if (stopped === null) {
    await until(() => ledger.problem !== null);
    await until(() => ledger.problem === null);
  }
  await (stopped ?? ledger.close());
}

describe("the next gateway knows of a sync that failed before", () => {
  const goOnInDecember = async (path: string): Promise<string[]> => {
    const messages: string[] = [];
    const december = { rotate: { monthly: true }, now: () => Date.parse("2026-12-01T00:00:00Z") };
    const report = (message: string): unknown => messages.push(message);
    const next = openLedger(optionsFor(path, { ...december, report }));
    await bill(next, "req_2");
    await next.close();
    return messages;
  };

  test.each([false, true])(
    "the next gateway does not rotate a ledger after a failed sync, because lines may be missing on the disk; the sync failed while the gateway stopped: %p",
    async (isStopping) => {
      const path = newLedgerPath();
      await failFirstSync(path, isStopping);
      const said = expect.stringContaining("could not be rotated and continues in the same file");
      expect(await goOnInDecember(path)).toEqual([said]);
      expect(listLedgerFiles(path)).toEqual([path]);
    },
  );

  test("after the machine restarted, an earlier failed sync does not prevent a rotation, because all lines that can be read are on the disk", async () => {
    const path = newLedgerPath();
    await failFirstSync(path, true);
    writeFileSync(`${path}.open`, asOfAnotherBoot(readFileSync(`${path}.open`, "utf8")));
    expect(await goOnInDecember(path)).toEqual([]);
    expect(listLedgerFiles(path)).toHaveLength(2);
  });

  test("a sync that failed while the gateway stopped is not tried again", async () => {
    using timers = spyOn(globalThis, "setTimeout");
    await failFirstSync(newLedgerPath(), true);
    expect(timers.mock.calls.filter(([, ms]) => ms === 1000)).toEqual([]);
  });
});

test("the last lines of a killed gateway are brought to the disk as soon as the next gateway starts", async () => {
  const path = newLedgerPath();
  await abandon(path, ["req_1"], ["req_1"]);
  let syncs = 0;
  const syncFile = async (): Promise<void> => void (syncs += 1);
  const ledger = openLedger(optionsFor(path, { syncFile }));
  expect(syncs).toBe(1);
  await ledger.close();
});

test("P122: a request gets a line without amounts if `verify` would reject its amounts, and other requests still get their lines", async () => {
  const path = newLedgerPath();
  const ledger = openLedger(optionsFor(path));
  for (const id of ["req_1", "req_2", "req_3"]) void ledger.open(intentOf(id));
  ledger.append(draftOf("req_1"));
  expect(ledger.append(chargedOf("req_2", { charge_usd: "no amount" })).basis).toBe("unknown");
  expect(() => ledger.append({ ...draftOf("req_3"), status: 429.5 })).toThrow("status");
  ledger.append(draftOf("req_3"));
  const { key, group, platform, channel, model } = draftOf("x");
  const correction = {
    corrects: "req_1",
    request_time: "2026-11-20T10:00:00.000Z",
    key,
    group,
    platform,
    channel,
    model,
  };
  const said = { time: "2026-11-20T11:00:00.000Z", price_source: "test", tier: null, was: draftOf("x") };
  expect(() =>
    ledger.correct({ id: "cor_1", ...correction, ...said, ...costing("3"), charge_usd: "4" }),
  ).toThrow();
  await ledger.close();
  const { lines } = readWholeLedger(path);
  expect(lines.map(({ id, basis }) => [id, basis])).toEqual([
    ["req_1", "exact"],
    ["req_2", "unknown"],
    ["req_3", "exact"],
  ]);
});

test("a start that reads much of a ledger says so, and one that reads little does not", () => {
  const path = newLedgerPath();
  const lines = `${"x".repeat(1e6)}\n`;
  const said: string[] = [];
  writeFileSync(path, lines.repeat(60));
  expect(new Sums({ path, now: () => 0, report: (text) => said.push(text) }).marks.size).toBe(0);
  expect(said).toEqual([]);
  appendFileSync(path, lines.repeat(70));
  expect(new Sums({ path, now: () => 0, report: (text) => said.push(text) }).marks.size).toBe(0);
  expect(said).toEqual(["Reading 70 MB of the ledger."]);
});

function addUp(path: string, zone: Zone): Sums {
  const now = Date.parse("2026-11-20T23:30:00Z");
  return new Sums({ path, zone, now: () => now, report: () => {} });
}

describe("the ledger's sums by day follow the time zone", () => {
  const KEY = { kind: "key", name: "laptop" } as const;
  const BERLIN = createZone("Europe/Berlin");
  // 00:30 on the 21st in Berlin.
  const now = Date.parse("2026-11-20T23:30:00Z");

  async function spendOnBothSides(path: string): Promise<Ledger> {
    const ledger = openLedger(optionsFor(path, { now: () => now }));
    await bill(ledger, "req_1", { charge_usd: "1", time: "2026-11-20T22:59:59.999Z" });
    await bill(ledger, "req_2", { charge_usd: "20", time: "2026-11-20T23:00:00.000Z" });
    return ledger;
  }

  test("sums by day follow a changed time zone after a restart, with an index or without", async () => {
    const path = newLedgerPath();
    await (await spendOnBothSides(path)).close();
    const spent = (sums: Sums) => formatUsd(sums.spentOf(KEY, "day").charged);
    expect(spent(addUp(path, UTC))).toBe("21");
    expect(spent(addUp(path, BERLIN))).toBe("20");
    makeTable(path);
    const again = openLedger(optionsFor(path, { now: () => now, zone: BERLIN }));
    expect(formatUsd(again.sums.spentOf(KEY, "day").charged)).toBe("20");
    await again.close();
    expect(spent(addUp(path, BERLIN))).toBe("20");
    expect(formatUsd(addUp(path, BERLIN).spentOf(KEY, "total").charged)).toBe("21");
  });

  test("sums by day follow a time zone that changes while the ledger is open, also for unwritten lines", async () => {
    const ledger = await spendOnBothSides(newLedgerPath());
    expect(formatUsd(ledger.sums.spentOf(KEY, "day").charged)).toBe("21");
    await bill(ledger, "req_3", { charge_usd: "300", time: "2026-11-20T23:10:00.000Z" });
    ledger.sums.follow(BERLIN, new Map());
    expect(formatUsd(ledger.sums.spentOf(KEY, "day").charged)).toBe("320");
    expect(formatUsd(ledger.sums.spentOf(KEY, "total").charged)).toBe("321");
    await bill(ledger, "req_4", { charge_usd: "4000", time: "2026-11-20T23:20:00.000Z" });
    expect(formatUsd(ledger.sums.spentOf(KEY, "day").charged)).toBe("4320");
    await ledger.close();
  });

  test("the first line of a new day counts once", async () => {
    let now = Date.parse("2026-11-20T12:00:00.000Z");
    const ledger = openLedger(optionsFor(newLedgerPath(), { now: () => now }));
    const spent = () => formatUsd(ledger.sums.spentOf(KEY, "day").charged);
    expect(spent()).toBe("0");
    now += 24 * 3600_000;
    await bill(ledger, "req_1", { ...costing("1"), time: new Date(now).toISOString() });
    expect(spent()).toBe("1");
  });
});
