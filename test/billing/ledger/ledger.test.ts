import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
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
import { readSums, Sums } from "../../../src/billing/ledger/sums.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { holdLedgerFiles, listLedgerFiles, locate } from "../../../src/billing/ledger/rotation.ts";
import { encodeLine, GENESIS, hashLine, lineSchema } from "../../../src/billing/ledger/line.ts";
import { formatUsd } from "../../../src/lib/money.ts";
import { draftOf, filesOf, intentOf, newLedgerPath, optionsFor, readWholeLedger } from "./ledger-samples.ts";

async function bill(ledger: Ledger, id: string, more: Parameters<typeof draftOf>[1] = {}): Promise<void> {
  await ledger.open(intentOf(id));
  ledger.append(draftOf(id, more));
}

/** Leaves a ledger as a killed gateway leaves it: nothing is closed, only the lock is free. */
async function abandon(path: string, opened: readonly string[], settled: readonly string[]): Promise<void> {
  const ledger = openLedger(optionsFor(path));
  for (const id of opened) await ledger.open(intentOf(id));
  for (const id of settled) ledger.append(draftOf(id));
  await new Promise<void>((resolve) => setImmediate(resolve));
  const journal = readFileSync(`${path}.open`);
  await ledger.close();
  writeFileSync(`${path}.open`, journal);
  rmSync(`${path}.sums`, { force: true });
}

function countsOf(path: string): Array<[string, number]> {
  return [...readWholeLedger(path).count].sort(([a], [b]) => a.localeCompare(b));
}

describe("a line", () => {
  test("bears the contract's fields in the contract's order, and the schema takes it", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await bill(ledger, "req_1", { suspect: "x", extra: { requested_model: "y" } });
    await ledger.close();
    const { lines } = readWholeLedger(path);
    expect(Object.keys(lines[0] ?? {}).join(" ")).toBe(
      "v id time key group platform channel endpoint model upstream_model stream status outcome basis usage raw_usage " +
        "prices price_source tier official_usd multiplier charge_usd first_byte_ms duration_ms attempts suspect requested_model prev",
    );
    expect(() => lineSchema.parse(lines[0])).not.toThrow();
  });

  test("is private to its owner", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await bill(ledger, "req_1");
    for (const file of [path, `${path}.open`]) expect(statSync(file).mode & 0o777).toBe(0o600);
    await ledger.close();
  });

  test("holds any text in names and usage without breaking the file", async () => {
    const path = newLedgerPath();
    const names = sample(string({ unit: "binary" }), { numRuns: 50, seed: 7 });
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

describe("exactly one line", () => {
  test("a request is appended once: a second time throws, and so does one that was never opened", async () => {
    const ledger = openLedger(optionsFor(newLedgerPath()));
    await bill(ledger, "req_1");
    expect(() => ledger.append(draftOf("req_1"))).toThrow("req_1 is not open");
    expect(() => ledger.append(draftOf("req_2"))).toThrow("req_2 is not open");
    await ledger.close();
  });

  test("a discarded request gets no line, neither now nor after a crash", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("req_1"));
    ledger.discard("req_1");
    await new Promise<void>((resolve) => setImmediate(resolve));
    const journal = readFileSync(`${path}.open`);
    await ledger.close();
    writeFileSync(`${path}.open`, journal);
    await openLedger(optionsFor(path)).close();
    expect(readWholeLedger(path).lines).toEqual([]);
  });

  test("what was with an upstream when the gateway died becomes interrupted, with the channels it was sent to", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("req_1"));
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

  test("a ledger cut at any byte of its last lines is mended, and each request still has exactly one line", async () => {
    const whole = newLedgerPath();
    await abandon(whole, ["req_1", "req_2", "req_3"], ["req_1", "req_2"]);
    const bytes = readFileSync(whole);
    const journal = readFileSync(`${whole}.open`);
    const path = newLedgerPath();
    for (let end = 0; end <= bytes.length; end += 7) {
      writeFileSync(path, bytes.subarray(0, end));
      writeFileSync(`${path}.open`, journal);
      await openLedger(optionsFor(path)).close();
      expect(countsOf(path)).toEqual([
        ["req_1", 1],
        ["req_2", 1],
        ["req_3", 1],
      ]);
      rmSync(`${path}.sums`);
    }
  });

  test("recovery that is itself cut off at any byte can be done again", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2", "req_3"], ["req_2"]);
    const before = readFileSync(path);
    const journal = readFileSync(`${path}.open`);
    await openLedger(optionsFor(path)).close();
    const after = readFileSync(path);
    for (let end = before.length; end <= after.length; end += 5) {
      writeFileSync(path, after.subarray(0, end));
      writeFileSync(`${path}.open`, journal);
      rmSync(`${path}.sums`, { force: true });
      await openLedger(optionsFor(path)).close();
      expect(readFileSync(path, "utf8")).toBe(after.toString());
    }
  });

  test("a journal cut at any byte makes no line for a request that had not gone out", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2"], ["req_1"]);
    const journal = readFileSync(`${path}.open`);
    const bytes = readFileSync(path);
    for (let end = 0; end <= journal.length; end += 3) {
      writeFileSync(path, bytes);
      writeFileSync(`${path}.open`, journal.subarray(0, end));
      rmSync(`${path}.sums`, { force: true });
      await openLedger(optionsFor(path)).close();
      const { count } = readWholeLedger(path);
      expect(count.get("req_1")).toBe(1);
      expect(count.get("req_2") ?? 0).toBe(end >= journal.length - 1 ? 1 : 0);
    }
  });

  test("pages that a power cut left empty are cut off and kept aside", async () => {
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

  test.each([["listen: { port: 4141 }\nkeys: []\n"], ['{\n  "name": "package"\n}\n'], ["\uFEFFx"]])(
    "a file that is none, such as %j, is refused and stays as it is",
    (text) => {
      const path = newLedgerPath();
      writeFileSync(path, text);
      expect(() => openLedger(optionsFor(path))).toThrow(
        `the ledger ${path} can't be opened: it is no ledger`,
      );
      expect(readFileSync(path, "utf8")).toBe(text);
    },
  );

  test.each([["{"], ['{"v":1,"id":"req_1"'], ["\0\0\0"]])(
    "one whose first line is torn is opened",
    async (text) => {
      const path = newLedgerPath();
      writeFileSync(path, text);
      await openLedger(optionsFor(path)).close();
      expect(readFileSync(path, "utf8")).toBe("");
    },
  );

  test("a last line that lacks only its newline is kept", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1"], ["req_1"]);
    truncateSync(path, statSync(path).size - 1);
    await openLedger(optionsFor(path)).close();
    expect(readWholeLedger(path).lines.map(({ outcome }) => outcome)).toEqual(["complete"]);
  });

  test("a long journal is written anew with what is open, and still finds it after a crash", async () => {
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

test("what ends after the ledger was closed gets its line at the next start", async () => {
  const path = newLedgerPath();
  const messages: string[] = [];
  const ledger = openLedger(optionsFor(path, { report: (message) => messages.push(message) }));
  await ledger.open(intentOf("req_1"));
  await Promise.all([ledger.close(), ledger.close()]);
  ledger.append(draftOf("req_1"));
  expect(messages).toEqual([
    "request req_1 ended after the ledger was closed: the next start gives it its line",
  ]);
  expect(await ledger.open(intentOf("req_2")).catch(String)).toContain("it is closed");
  await openLedger(optionsFor(path)).close();
  expect(readWholeLedger(path).lines.map(({ id, outcome }) => [id, outcome])).toEqual([
    ["req_1", "interrupted"],
  ]);
});

describe("one writer", () => {
  test("a second ledger on the same file is refused with the name of who holds it", async () => {
    const path = newLedgerPath();
    const first = openLedger(optionsFor(path));
    expect(() => openLedger(optionsFor(path))).toThrow(
      new RegExp(`is being written by process ${process.pid} since 2`),
    );
    await bill(first, "req_1");
    await first.close();
    await openLedger(optionsFor(path)).close();
    expect(readWholeLedger(path).lines.length).toBe(1);
  });

  test("the lock of a killed process is free", async () => {
    const path = newLedgerPath();
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "ledger-load.ts"), path, "never"], {
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

describe("a disk that can't be written", () => {
  const hasPrlimit = Bun.which("prlimit") !== null && Bun.which("bash") !== null;

  test.skipIf(!hasPrlimit)(
    "stops new requests, loses no line, leaves nothing torn, and goes on when there is room",
    async () => {
      const path = newLedgerPath();
      const script = `trap '' XFSZ; ulimit -S -f 100; exec "$0" "$1" "$2"`;
      const child = Bun.spawn(
        ["bash", "-c", script, process.execPath, join(import.meta.dir, "ledger-full-disk.ts"), path],
        {
          stdout: "pipe",
          stderr: "inherit",
        },
      );
      const told: unknown = JSON.parse(await new Response(child.stdout).text());
      expect(told).toMatchObject({
        code: "ledger_unwritable",
        problem: expect.stringContaining("EFBIG"),
        endsWhole: true,
        problemAfter: null,
        refusedHasLine: false,
        everyIdOnce: true,
        reports: [
          expect.stringContaining("billable requests are refused"),
          "the ledger can be written again",
        ],
      });
    },
  );

  test.skipIf(!existsSync("/dev/null"))(
    "a device is no place for a ledger, and nothing is put beside it",
    () => {
      const path = newLedgerPath();
      symlinkSync("/dev/null", path);
      expect(() => openLedger(optionsFor(path))).toThrow("can't be locked: it is no regular file");
      expect(existsSync(`${path}.lock`)).toBe(false);
    },
  );

  test("a path that can't be opened is a sentence, not a stack", () => {
    const path = join(newLedgerPath(), "nowhere");
    writeFileSync(join(path, ".."), "a file, not a folder");
    expect(() => openLedger(optionsFor(path))).toThrow(`the ledger ${path} can't be`);
  });

  test.each([
    ["a second later", 1000],
    ["also when the clock was set back meanwhile", -86_400_000],
  ])(
    "a file that somebody moves away is noticed %s, and later lines go to the path again",
    async (_, step) => {
      const path = newLedgerPath();
      let now = Date.parse("2026-11-20T10:00:00Z");
      const messages: string[] = [];
      const ledger = openLedger(
        optionsFor(path, { now: () => now, report: (message) => messages.push(message) }),
      );
      await bill(ledger, "req_1");
      await bill(ledger, "req_2");
      renameSync(path, path.replace(".jsonl", "-2026-11.jsonl"));
      now += step;
      await bill(ledger, "req_3");
      await ledger.close();
      expect(messages[0]).toContain("was moved");
      expect(readWholeLedger(path).lines.map(({ id }) => id)).toEqual(["req_1", "req_2", "req_3"]);
      expect(readFileSync(path, "utf8")).toContain("req_3");
    },
  );
});

describe("rotation", () => {
  test("by size: the chain goes on across files, and the names stay in order", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, {
      rotate: { bytes: 2000, monthly: false },
      now: () => Date.parse("2026-11-20T10:00:00Z"),
    });
    const first = openLedger(options);
    for (let number = 0; number < 8; number += 1) await bill(first, `req_${number}`);
    await first.close();
    const second = openLedger(options);
    for (let number = 8; number < 40; number += 1) await bill(second, `req_${number}`);
    await second.close();
    expect(readWholeLedger(path).lines.map(({ id }) => id)).toEqual(
      Array.from({ length: 40 }, (_, index) => `req_${index}`),
    );
    expect(filesOf(path).length).toBeGreaterThan(11);
  });

  test("by month: a file holds the lines that were written in its month", async () => {
    const path = newLedgerPath();
    let now = Date.parse("2026-10-31T23:59:59Z");
    const ledger = openLedger(optionsFor(path, { rotate: { bytes: null, monthly: true }, now: () => now }));
    await bill(ledger, "october");
    await new Promise<void>((resolve) => setImmediate(resolve));
    now += 1000;
    await bill(ledger, "november");
    await new Promise<void>((resolve) => setImmediate(resolve));
    await ledger.close();
    expect(readFileSync(path.replace(".jsonl", "-2026-10.jsonl"), "utf8")).toContain('"october"');
    expect(readFileSync(path, "utf8")).not.toContain('"october"');
    readWholeLedger(path);
  });

  test("killed between the renaming and the new file, what was open is still found once", async () => {
    const path = newLedgerPath();
    await abandon(path, ["req_1", "req_2", "req_3"], ["req_1", "req_2"]);
    renameSync(path, path.replace(".jsonl", "-2026-11.jsonl"));
    const journal = readFileSync(`${path}.open`);
    for (const crashed of ["before the new file", "after it"]) {
      if (crashed === "after it") writeFileSync(path, "");
      else rmSync(path, { force: true });
      writeFileSync(`${path}.open`, journal);
      rmSync(`${path}.sums`, { force: true });
      await openLedger(optionsFor(path)).close();
      expect(countsOf(path)).toEqual([
        ["req_1", 1],
        ["req_2", 1],
        ["req_3", 1],
      ]);
    }
  });
});

test("a torn end of a rotated file keeps no ledger from being opened", async () => {
  const path = newLedgerPath();
  const line = encodeLine(draftOf("req_1", { time: new Date().toISOString() }), GENESIS);
  writeFileSync(path.replace(".jsonl", "-2026-11.jsonl"), `${line}\n${line.slice(0, 99)}`);
  const ledger = openLedger(optionsFor(path));
  expect(ledger.recentOf({ kind: "key", name: "laptop" }, 0)).toHaveLength(1);
  await ledger.close();
});

test("a place in the chain is found wherever its file has gone, and nowhere else", () => {
  const path = newLedgerPath();
  let prev = GENESIS;
  const places: Array<{ file: number; offset: number; prev: string }> = [];
  for (const [file, suffix] of ["-2026-09", "-2026-09.2", ""].entries()) {
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
    ".jsonl",
  ]);
  for (const { file, offset, prev: before } of places) {
    expect(locate(files, { offset, prev: before })).toEqual({ file, offset });
    expect(locate(files, { offset: offset + 1, prev: before })).toBe(null);
    expect(locate(files, { offset, prev: GENESIS.replace("0", "1") })).toBe(null);
  }
});

describe("sums", () => {
  const at = (time: string) => ({ now: () => Date.parse(time) });

  test("by day, month and in all, for key and group, in UTC, and the same after a restart", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, at("2026-11-20T12:00:00Z"));
    const sumsOf = (ledger: Ledger) =>
      (["key", "group"] as const).map((kind) =>
        (["day", "month", "total"] as const).map((window) =>
          formatUsd(ledger.spentOf({ kind, name: kind === "key" ? "laptop" : "claude" }, window)),
        ),
      );
    const ledger = openLedger(options);
    await bill(ledger, "req_1", { charge_usd: "0.1", time: "2026-10-31T23:59:59.999Z" });
    await bill(ledger, "req_2", { charge_usd: "0.2", time: "2026-11-01T00:00:00.000Z" });
    await bill(ledger, "req_3", { charge_usd: "0.000000000001", time: "2026-11-20T00:00:00.000Z" });
    await bill(ledger, "req_4", { charge_usd: null, time: "2026-11-20T01:00:00.000Z" });
    await bill(ledger, "req_5", { charge_usd: "7", key: "other", time: "2026-11-20T01:00:00.000Z" });
    const expected = [
      ["0.000000000001", "0.200000000001", "0.300000000001"],
      ["7.000000000001", "7.200000000001", "7.300000000001"],
    ];
    expect(sumsOf(ledger)).toEqual(expected);
    expect(ledger.lastUsed("laptop")).toBe("2026-11-20T01:00:00.000Z");
    expect(ledger.lastUsed("never")).toBe(null);
    await ledger.close();

    for (const damage of ["none", "lost", "damaged"] as const) {
      if (damage === "lost") rmSync(`${path}.sums`);
      if (damage === "damaged")
        writeFileSync(`${path}.sums`, readFileSync(`${path}.sums`, "utf8").replace("7", "8"));
      const again = openLedger(options);
      expect(sumsOf(again)).toEqual(expected);
      expect(again.lastUsed("laptop")).toBe("2026-11-20T01:00:00.000Z");
      await again.close();
    }
  });

  test("a checkpoint is taken up only where it stands in the chain", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, at("2026-11-20T12:00:00Z"));
    const first = openLedger(options);
    await bill(first, "req_1", { charge_usd: "1" });
    await first.close();
    const old = readFileSync(`${path}.sums`);
    const second = openLedger(options);
    await bill(second, "req_2", { charge_usd: "2" });
    await second.close();

    writeFileSync(`${path}.sums`, old);
    const third = openLedger(options);
    expect(formatUsd(third.spentOf({ kind: "key", name: "laptop" }, "total"))).toBe("3");
    await third.close();

    renameSync(path, path.replace(".jsonl", "-2026-11.jsonl"));
    writeFileSync(`${path}.sums`, old);
    const fourth = openLedger(options);
    expect(formatUsd(fourth.spentOf({ kind: "key", name: "laptop" }, "total"))).toBe("3");
    await fourth.close();

    const strange = newLedgerPath();
    writeFileSync(`${strange}.sums`, old);
    const fifth = openLedger({ ...options, path: strange });
    expect(formatUsd(fifth.spentOf({ kind: "key", name: "laptop" }, "total"))).toBe("0");
    await fifth.close();
  });

  test("a start says when lines are gone that had been written, and only then", async () => {
    const path = newLedgerPath();
    const told: string[] = [];
    const options = optionsFor(path, { report: (message) => told.push(message) });
    for (const id of ["req_1", "req_2"]) {
      const ledger = openLedger(options);
      await bill(ledger, id);
      await ledger.close();
    }
    expect(told).toEqual([]);
    truncateSync(path, readFileSync(path).indexOf("\n") + 1);
    await openLedger(options).close();
    await openLedger(options).close();
    expect(told.filter((message) => message.includes("are gone or changed"))).toHaveLength(1);
  });

  test("a correction's difference counts on the request's day", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, at("2026-11-20T12:00:00Z"));
    const ledger = openLedger(options);
    await bill(ledger, "req_1", { charge_usd: "5", time: "2026-11-02T00:00:00.000Z" });
    const { key, group, platform, channel, model, usage, prices, multiplier } = draftOf("x");
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
      usage,
      prices,
      price_source: "test",
      tier: "standard",
      official_usd: "3",
      multiplier,
      charge_usd: "3",
      was: { official_usd: "5", charge_usd: "5" },
    });
    const read = (of: Ledger) =>
      (["day", "month", "total"] as const).map((window) =>
        formatUsd(of.spentOf({ kind: "key", name: "laptop" }, window)),
      );
    expect(read(ledger)).toEqual(["0", "3", "3"]);
    await ledger.close();
    rmSync(`${path}.sums`);
    const again = openLedger(options);
    expect(read(again)).toEqual(["0", "3", "3"]);
    await again.close();
    readWholeLedger(path);
  });
});

test("with sync always, a request goes out once its record is on the disk", async () => {
  const path = newLedgerPath();
  const ledger = openLedger(optionsFor(path, { sync: "always" }));
  await Promise.all(Array.from({ length: 50 }, (_, index) => bill(ledger, `req_${index}`)));
  await bill(ledger, "last");
  await ledger.close();
  expect(readWholeLedger(path).count.size).toBe(51);
});

test("sums can be read while the gateway writes, and show the last use of each key", async () => {
  const path = newLedgerPath();
  const ledger = openLedger(optionsFor(path));
  await bill(ledger, "req_1", { time: "2026-11-20T10:00:00.000Z" });
  await bill(ledger, "req_2", { time: "2026-11-19T10:00:00.000Z" });
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(readSums(path).lastUsed("laptop")).toBe("2026-11-20T10:00:00.000Z");
  expect(readSums(path).lastUsed("other")).toBe(null);
  await ledger.close();
});

test.each([false, true])(
  "sums that are read while the ledger is rotated have each line once, whether a checkpoint is newer: %p",
  async (isNewer) => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await bill(ledger, "req_1", { charge_usd: "1" });
    await bill(ledger, "req_2", { charge_usd: "20" });
    await ledger.close();
    const sums = new Sums();
    using held = holdLedgerFiles(path);
    const next = openLedger(optionsFor(path, { rotate: { bytes: 1, monthly: false } }));
    await bill(next, "req_3", { charge_usd: "300" });
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (isNewer) await next.close();
    expect(listLedgerFiles(path)).toHaveLength(2);
    sums.load(held.sources, `${path}.sums`);
    expect(formatUsd(sums.spentOf({ kind: "key", name: "laptop" }, "total", 0))).toBe("21");
    await next.close();
    expect(formatUsd(readSums(path).spentOf({ kind: "key", name: "laptop" }, "total", 0))).toBe("321");
  },
);
