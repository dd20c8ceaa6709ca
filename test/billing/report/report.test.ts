import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

import { array, assert, constantFrom, integer, property, record, string } from "fast-check";

import { deriveAmounts } from "../../../src/billing/charge.ts";
import { followLedger, readLastLines } from "../../../src/billing/ledger/follow.ts";
import {
  encodeCorrection,
  encodeLine,
  GENESIS,
  hashLine,
  type LineDraft,
} from "../../../src/billing/ledger/line.ts";
import { viewBytes } from "../../../src/billing/ledger/scan/bytes.ts";
import { holdLedgerFiles } from "../../../src/billing/ledger/rotation.ts";
import { readFile } from "../../../src/billing/ledger/reader.ts";
import { readRow, type Row } from "../../../src/billing/ledger/scan/row.ts";
import {
  clientOf,
  keyOf,
  LineScanner,
  type ScannedLine,
  timeOf,
} from "../../../src/billing/ledger/scan/scan.ts";
import { describeTotals, type ReportQuery, sumLedger } from "../../../src/billing/report/report.ts";
import { explainRequest, findRequest } from "../../../src/billing/report/explain.ts";
import { findCorrections } from "../../../src/billing/report/reprice.ts";
import type { Price, PriceBook } from "../../../src/billing/prices.ts";
import { readCalls } from "../../../src/dialects/meters/messages.ts";
import { getField, parseJson } from "../../../src/lib/json/json.ts";
import { formatDecimal, formatUsd, usdOfPico } from "../../../src/lib/money.ts";
import { draftOf, newLedgerPath } from "../ledger/ledger-samples.ts";

const ALL: ReportQuery = { by: ["model"], since: null, until: null };

function write(path: string, texts: ReadonlyArray<(prev: string) => string>, start = GENESIS): string {
  let prev = start;
  let bytes = "";
  for (const encode of texts) {
    const text = encode(prev);
    prev = hashLine(text);
    bytes += `${text}\n`;
  }
  writeFileSync(path, bytes);
  return prev;
}

const lineOf =
  (id: string, more: Partial<LineDraft> = {}) =>
  (prev: string) =>
    encodeLine(draftOf(id, more), prev);

const UNPRICED = {
  basis: "unpriced",
  prices: null,
  price_source: null,
  tier: null,
  official_usd: null,
  charge_usd: null,
} as const;

function correctionOf(id: string, of: LineDraft, was: string | null, charge: string) {
  const { key, group, platform, channel, model } = of;
  return (prev: string) =>
    encodeCorrection(
      {
        id,
        time: "2026-12-01T00:00:00.000Z",
        corrects: of.id,
        request_time: of.time,
        key,
        group,
        platform,
        channel,
        model,
        usage: of.usage,
        prices: {},
        price_source: "test",
        tier: "standard",
        official_usd: charge,
        multiplier: "1",
        charge_usd: charge,
        was: { official_usd: was, charge_usd: was },
      },
      prev,
    );
}

function rowsOf(path: string, query: ReportQuery): Record<string, unknown> {
  return Object.fromEntries(
    Array.from(sumLedger(path, query).rows, ({ names, totals }) => [names.join(" "), describeTotals(totals)]),
  );
}

describe("sums", () => {
  test("add up exactly, by every dimension", () => {
    const path = newLedgerPath();
    write(path, [
      lineOf("1", { model: "a", key: "x", charge_usd: "0.1", usage: { input: 1, output: 2 } }),
      lineOf("2", { model: "a", key: "y", charge_usd: "0.2", usage: { input: 10, web_search: 3 } }),
      lineOf("3", {
        model: "b",
        key: "y",
        charge_usd: "0.000000000001",
        time: "2026-11-21T00:00:00.000Z",
        usage: {},
      }),
    ]);
    const { rows, total } = sumLedger(path, ALL);
    expect(rows.map(({ names }) => names)).toEqual([["a"], ["b"]]);
    expect(rowsOf(path, ALL)["a"]).toEqual({
      requests: 2,
      usage: { input: 11, output: 2, web_search: 3 },
      official_usd: "0.022212",
      charge_usd: "0.3",
      cache_hit_rate: 0,
      unpriced: 0,
      unknown: 0,
      partial: 0,
    });
    expect(describeTotals(total)).toMatchObject({
      requests: 3,
      charge_usd: "0.300000000001",
      official_usd: "0.033318",
    });
    expect(Object.keys(rowsOf(path, { ...ALL, by: ["day"] }))).toEqual(["2026-11-20", "2026-11-21"]);
    expect(Object.keys(rowsOf(path, { ...ALL, by: ["key"] }))).toEqual(["y", "x"]);
    expect(Object.keys(rowsOf(path, { ...ALL, by: ["group"] }))).toEqual(["claude"]);
    expect(Object.keys(rowsOf(path, { ...ALL, by: ["channel"] }))).toEqual(["anthropic-main"]);
  });

  test("include requests from `since` and later, and before `until`, by the request's own time", () => {
    const path = newLedgerPath();
    write(
      path,
      [
        "2026-11-19T23:59:59.999Z",
        "2026-11-20T00:00:00.000Z",
        "2026-11-20T23:59:59.999Z",
        "2026-11-21T00:00:00.000Z",
      ].map((time, index) => lineOf(String(index), { time })),
    );
    const { total } = sumLedger(path, {
      by: ["day"],
      since: "2026-11-20T00:00:00.000Z",
      until: "2026-11-21T00:00:00.000Z",
    });
    expect(total.requests).toBe(2);
  });

  test("include rotated files and skip what is not a line", () => {
    const path = newLedgerPath();
    const prev = write(path.replace(".jsonl", "-2026-10.jsonl"), [lineOf("1"), () => "no line"]);
    write(path, [lineOf("2")], prev);
    const report = sumLedger(path, ALL);
    expect(report.total.requests).toBe(2);
    expect(report.unreadable).toBe(1);
  });

  test("cover the files as they were at the start, even if one is rotated meanwhile", () => {
    const path = newLedgerPath();
    const prev = write(path.replace(".jsonl", "-2026-09.jsonl"), [lineOf("1")]);
    const last = write(path, [lineOf("2")], prev);
    const ids: unknown[] = [];
    using held = holdLedgerFiles(path);
    for (const source of held.sources) {
      if (ids.length === 0) {
        renameSync(path, path.replace(".jsonl", "-2026-10.jsonl"));
        write(path, [lineOf("3")], last);
      }
      for (const { bytes } of readFile(source)) ids.push(idIn(bytes.buffer.toString()));
    }
    expect(ids).toEqual(["1", "2"]);
  });

  test("count unpriced, unknown and partial requests", () => {
    const path = newLedgerPath();
    write(path, [
      lineOf("1", UNPRICED),
      lineOf("2", { ...UNPRICED, basis: "unknown", usage: {} }),
      lineOf("3", { basis: "partial" }),
    ]);
    expect(rowsOf(path, ALL)).toMatchObject({
      "claude-sonnet-4-5": { requests: 3, charge_usd: "0.011106", unpriced: 1, unknown: 1, partial: 1 },
    });
  });

  test("apply corrections: the request stays one request on its own day, with its new amounts", () => {
    const path = newLedgerPath();
    const first = draftOf("1", { ...UNPRICED, time: "2026-11-01T00:00:00.000Z" });
    const second = draftOf("2");
    write(path, [
      lineOf("1", first),
      lineOf("2"),
      correctionOf("c1", first, null, "0.5"),
      correctionOf("c2", first, "0.5", "0.25"),
      correctionOf("c3", second, "0.011106", "0"),
    ]);
    expect(rowsOf(path, { ...ALL, by: ["day"] })).toMatchObject({
      "2026-11-01": { requests: 1, charge_usd: "0.25", official_usd: "0.25", unpriced: 0 },
      "2026-11-20": { requests: 1, charge_usd: "0", official_usd: "0" },
    });
  });
});

function idIn(text: string): unknown {
  return getField(parseJson(text), "id");
}

function scan(text: string, scanner = new LineScanner()): ScannedLine | null {
  const bytes = Buffer.from(`${text}\n`);
  return scanner.scan(viewBytes(bytes), 0, bytes.length - 1);
}

function rowOf(text: string): Row | null {
  const bytes = Buffer.from(text);
  return readRow(viewBytes(bytes), 0, bytes.length, new LineScanner());
}

function tellRow(row: Row | null): unknown {
  if (row === null) return null;
  const { kinds, counts, official, client, ...rest } = row;
  const usage = Object.fromEntries(kinds.map((kind, index) => [kind, counts[index]]));
  return { ...rest, client: client(), usage, official: official === null ? null : formatDecimal(official) };
}

/** What a scanned line says, in the words of JSON. */
function tellScanned(line: ScannedLine): Record<string, unknown> {
  const { form, counts, official, charge } = line;
  const reported = (pico: number | null) => (pico === null ? null : formatUsd(usdOfPico(pico)));
  return {
    time: timeOf(line),
    key: keyOf(line),
    group: form.group,
    channel: form.channel,
    model: form.model,
    basis: form.basis,
    client: parseJson(clientOf(line) ?? ""),
    usage: Object.fromEntries(form.kinds.map((kind, index) => [kind, counts[index]])),
    official_usd: reported(official),
    charge_usd: reported(charge),
  };
}

function pickReported(text: string, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, getField(parseJson(text), name)]));
}

describe("the fast reader of lines", () => {
  test("gives what JSON gives, or declines", () => {
    const text = string({ unit: "binary", maxLength: 12 });
    const amount = constantFrom(null, "0", "0.000000000001", "12.5", "1000000");
    const drafts = record({
      id: text,
      key: text,
      group: text,
      channel: text,
      model: text,
      price_source: text,
      upstream_model: constantFrom(null, "x", 'quote"', "back\\slash", '","prices":{}'),
      basis: constantFrom("exact" as const, "partial" as const, "unpriced" as const, "unknown" as const),
      official_usd: amount,
      charge_usd: amount,
      usage: constantFrom({}, { input: 1 }, { input: 0, output: 9007199254740991 }),
      raw_usage: constantFrom(null, { prices: {}, '","prices":': [1] }, [{ official_usd: "9" }], '"prices":'),
      extra: constantFrom(
        {},
        { estimated: ["output"] },
        { tariff: { speed: "fast" } },
        { odd: [{ prices: {} }] },
        { prices2: "x" },
      ),
      status: integer({ min: -1, max: 599 }),
      client: constantFrom(
        undefined,
        {},
        { tool: "codex", session: "s" },
        { tool: "codex", session: "s", agent: "a", parent: "p", label: "größe {}, }" },
        { tool: "codex", session: "t", inferred: true as const },
        { label: 'a "quoted" label' },
        { label: "back\\slash" },
      ),
      upstream_request_id: constantFrom(undefined, "req_1", "", 'x"'),
    });
    let scans = 0;
    const known = new LineScanner();
    assert(
      property(drafts, (more) => {
        const line = encodeLine(draftOf("x", more), GENESIS);
        // Each line as the first of its form, and as one of a form that is known.
        for (const scanned of [scan(line), scan(line, known)]) {
          if (scanned === null) continue;
          scans += 1;
          const reported = tellScanned(scanned);
          expect(reported).toEqual(pickReported(line, Object.keys(reported)));
        }
      }),
      { numRuns: 6000, seed: 1 },
    );
    expect(scans).toBeGreaterThan(100);
  });

  test("leaves every unusual line to JSON, and both give the same row", () => {
    const line = encodeLine(draftOf("req_1"), GENESIS);
    expect(scan(line)).not.toBe(null);
    const fields: Record<string, unknown> = JSON.parse(line);
    const reordered = JSON.stringify(Object.fromEntries(Object.entries(fields).toReversed()));
    for (const other of [
      ` ${line}`,
      line.replace('"v":1', '"v":2'),
      line.replace('"id"', '"id2":1,"id"'),
      reordered,
    ]) {
      expect(scan(other)).toBe(null);
    }
    expect(tellRow(rowOf(reordered))).toEqual(tellRow(rowOf(line)));
    expect(rowOf("{}")).toBe(null);
    expect(rowOf("[]")).toBe(null);
    expect(rowOf(line.replace('"official_usd":"', '"official_usd":"x'))).toBe(null);
  });

  test("of a known form is as exact: whatever one byte is changed to, it gives what JSON gives, or declines", () => {
    const scanner = new LineScanner();
    const client = { tool: "codex", session: "s-1", label: "größe {}" };
    const drafts = [
      draftOf("req_1"),
      draftOf("req_3", { client, upstream_request_id: "req_9" }),
      draftOf("req_2", { ...UNPRICED, usage: {}, first_byte_ms: null }),
    ];
    const lines = drafts.map((draft) => encodeLine(draft, GENESIS));
    for (const line of lines) expect(scan(line, scanner)).not.toBe(null);
    const prevLength = `${GENESIS}"}`.length;
    let scans = 0;
    assert(
      property(
        constantFrom(...lines),
        integer({ min: 0, max: 10_000 }),
        constantFrom(...' "\\,:.0123456789aenul{}[]\u0000\u001f-é'.split("")),
        (line, place, character) => {
          const at = place % (line.length - prevLength);
          // Unread.
          if (at >= line.indexOf('"raw_usage"') && at < line.indexOf(',"prices"')) return;
          const changed = line.slice(0, at) + character + line.slice(at + 1);
          const scanned = scan(changed, scanner);
          if (scanned === null) return;
          scans += 1;
          const reported = tellScanned(scanned);
          expect(reported).toEqual(pickReported(changed, Object.keys(reported)));
        },
      ),
      { numRuns: 20_000, seed: 1 },
    );
    expect(scans).toBeGreaterThan(1000);
  });
});

describe("the explanation of a request", () => {
  test("derives every amount in words", () => {
    const path = newLedgerPath();
    const usage = { input: 1_000_000, cache_read: 0, output: 10, reasoning: 4, web_search: 3 };
    const prices = { input: "3", output: "15", web_search_per_1k: "10", "factor:service_tier=flex": "0.5" };
    const { official, charge } = deriveAmounts({ usage, prices, multiplier: "0.333333333333" });
    const attempts = [
      { channel: "first", error: "connect" },
      { channel: "second", status: 529 },
      { channel: "anthropic-main", status: 200 },
    ];
    write(path, [
      lineOf("req_0"),
      lineOf("req_1", {
        usage,
        prices,
        multiplier: "0.333333333333",
        official_usd: official,
        charge_usd: charge,
        tier: "flex",
        attempts,
        suspect: "it may have been paid twice",
      }),
    ]);
    const found = findRequest(path, "req_1");
    expect(found?.own.number).toBe(2);
    const reported = found === null ? "" : explainRequest(found).join("\n");
    for (const part of [
      "Request req_1",
      "model claude-sonnet-4-5, answered as claude-sonnet-4-5-20250929, streamed",
      "input                 1,000,000 tokens × $3 / 1,000,000 × 0.5 (service_tier=flex) = $1.5",
      "output                       10 tokens × $15 / 1,000,000 × 0.5 (service_tier=flex) = $0.000075",
      "reasoning                     4 tokens, part of the output and not charged again",
      "web_search                    3 calls × $10 / 1,000 = $0.03",
      "official amount = $1.530075",
      `× 0.333333333333 (the group's multiplier) = $${charge}, rounded once, half away from zero, from $`,
      "1. first: connect",
      "2. second: status 529",
      "suspect: it may have been paid twice",
      "ledger.jsonl, line 2",
    ]) {
      expect(reported).toContain(part);
    }
  });

  test("shows corrections, and what is not known", () => {
    const path = newLedgerPath();
    const first = draftOf("req_1", UNPRICED);
    write(path, [lineOf("req_1", first), correctionOf("cor_1", first, null, "0")]);
    const found = findRequest(path, "req_1");
    const reported = found === null ? "" : explainRequest(found).join("\n");
    expect(reported).toContain("there is no price for it");
    expect(reported).toContain("official amount: not known");
    expect(reported).toContain(
      "Corrected at 2026-12-01T00:00:00.000Z: cor_1, ledger.jsonl, line 2; the charge was not known",
    );
    expect(findRequest(path, "req_2")).toBe(null);
  });
});

describe("repricing", () => {
  const rates = { input: "4", output: "20", cache_read: "0.4", cache_write_1h: "8", cache_write_5m: "5" };
  const price: Omit<Price, "source"> = { rates, tiers: [], factors: { "service_tier=flex": "0.5" } };
  const period = { from: Number.NEGATIVE_INFINITY, hours: null, weekend: null, price };
  const model = { provider: "anthropic", ids: ["claude-sonnet-4-5"], periods: [period], source: "test" };
  const book: PriceBook = {
    date: "test",
    label: "book test",
    providers: ["anthropic"],
    fallbacksOf: () => [],
    find: (provider, id) => (provider === "anthropic" && id === "claude-sonnet-4-5" ? model : null),
    listModels: () => [model],
  };
  const query = {
    since: null,
    until: null,
    book,
    overrides: new Map(),
    sellerOf: () => undefined,
    readCalls,
  };

  test("finds requests without a price and with a changed price, and returns their corrections", () => {
    const path = newLedgerPath();
    const usage = { input: 1_000_000 };
    write(path, [
      lineOf("unpriced", { ...UNPRICED, usage, multiplier: "0.5" }),
      lineOf("other", { usage, official_usd: "3", charge_usd: "3" }),
      lineOf("same", { usage, official_usd: "4", charge_usd: "4" }),
      lineOf("nothing known", { ...UNPRICED, basis: "unknown", usage: {} }),
      lineOf("no price now", {
        model: "other",
        upstream_model: "other",
        usage,
        official_usd: "3",
        charge_usd: "3",
      }),
      lineOf("unknown kind", { ...UNPRICED, usage: { input: 1, novel: 5 } }),
    ]);
    const drafts = [...findCorrections(path, query)];
    expect(
      drafts.map(({ corrects, was, official_usd, charge_usd }) => [
        corrects,
        was.charge_usd,
        official_usd,
        charge_usd,
      ]),
    ).toEqual([
      ["unpriced", null, "4", "2"],
      ["other", "3", "4", "4"],
    ]);
  });

  test("happens once: a corrected request is not corrected again", () => {
    const path = newLedgerPath();
    const first = draftOf("req_1", { ...UNPRICED, usage: { input: 1_000_000 } });
    write(path, [lineOf("req_1", first), correctionOf("c1", first, null, "3")]);
    expect([...findCorrections(path, query)]).toMatchObject([
      { corrects: "req_1", was: { charge_usd: "3" }, charge_usd: "4" },
    ]);
    write(path, [
      lineOf("req_1", first),
      correctionOf("c1", first, null, "3"),
      correctionOf("c2", first, "3", "4"),
    ]);
    expect([...findCorrections(path, query)]).toEqual([]);
  });

  test("keeps how the answer was served", () => {
    const path = newLedgerPath();
    const usage = { input: 1_000_000 };
    write(path, [
      lineOf("told", { ...UNPRICED, usage, extra: { tariff: { service_tier: "flex" } } }),
      lineOf("factor", {
        usage,
        prices: { input: "3", "factor:service_tier=flex": "0.5" },
        official_usd: "1.5",
        charge_usd: "1.5",
      }),
      lineOf("raw", { ...UNPRICED, usage, raw_usage: { serviceTier: "flex" } }),
    ]);
    expect(Array.from(findCorrections(path, query), ({ charge_usd }) => charge_usd)).toEqual(["2", "2", "2"]);
  });

  test("covers only the given period", () => {
    const path = newLedgerPath();
    write(path, [
      lineOf("1", { ...UNPRICED, time: "2026-11-19T00:00:00.000Z" }),
      lineOf("2", { ...UNPRICED, time: "2026-11-20T00:00:00.000Z" }),
    ]);
    const drafts = [...findCorrections(path, { ...query, since: "2026-11-20T00:00:00.000Z" })];
    expect(drafts.map(({ corrects }) => corrects)).toEqual(["2"]);
  });
});

describe("following", () => {
  test("starts with the last whole lines", () => {
    const path = newLedgerPath();
    write(
      path,
      Array.from({ length: 30 }, (_, index) => lineOf(String(index))),
    );
    const size = readFileSync(path).length;
    writeFileSync(path, "torn", { flag: "a" });
    const { texts, next } = readLastLines(path, 3);
    expect(texts.map(idIn)).toEqual(["27", "28", "29"]);
    expect(next).toBe(size);
    expect(readLastLines(path, 100).texts).toHaveLength(30);
    expect(readLastLines(path, 0)).toEqual({ texts: [], next: size });
    expect(readLastLines(newLedgerPath(), 3)).toEqual({ texts: [], next: 0 });
  });

  test("starts with lines of rotated files if the growing one has too few", () => {
    const path = newLedgerPath();
    write(path.replace(/\.jsonl$/, "-2026-09.jsonl"), [lineOf("1"), lineOf("2")]);
    write(path.replace(/\.jsonl$/, "-2026-10.jsonl"), [lineOf("3"), lineOf("4")]);
    write(path, [lineOf("5")]);
    const { texts, next } = readLastLines(path, 4);
    expect(texts.map(idIn)).toEqual(["2", "3", "4", "5"]);
    expect(next).toBe(readFileSync(path).length);
    expect(readLastLines(path, 100).texts).toHaveLength(5);
    expect(readLastLines(path, 0).texts).toEqual([]);
  });

  test("yields new lines as they are written, across a rotation", async () => {
    const path = newLedgerPath();
    const stop = new AbortController();
    write(path, [lineOf("1")]);
    const lines = followLedger(path, 0, stop.signal);
    const nextId = async () => {
      const { value } = await lines.next();
      return idIn(value ?? "");
    };
    expect(await nextId()).toBe("1");
    writeFileSync(path, `${encodeLine(draftOf("2"), GENESIS)}\n`, { flag: "a" });
    renameSync(path, path.replace(".jsonl", "-2026-11.jsonl"));
    write(path, [lineOf("3"), lineOf("4")]);
    expect([await nextId(), await nextId(), await nextId()]).toEqual(["2", "3", "4"]);
    stop.abort();
    expect((await lines.next()).done).toBe(true);
    expect(existsSync(path)).toBe(true);
  });
});

test("sums of many random lines equal the sums of their numbers", () => {
  assert(
    property(array(integer({ min: 0, max: 1_000_000_000 }), { maxLength: 50 }), (picos) => {
      const path = newLedgerPath();
      write(
        path,
        picos.map((pico, index) =>
          lineOf(String(index), {
            charge_usd: `0.${String(pico).padStart(12, "0")}`.replace(/\.?0+$/, "") || "0",
          }),
        ),
      );
      const sum = picos.reduce((total, pico) => total + BigInt(pico), 0n);
      expect(sumLedger(path, ALL).total.charge === sum).toBe(true);
    }),
    { numRuns: 30, seed: 2 },
  );
});
