import { describe, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";

import { array, assert, integer, property } from "fast-check";

import { deriveAmounts } from "../../../src/billing/charge.ts";
import { readLastLines } from "../../../src/billing/ledger/follow.ts";
import {
  encodeCorrection,
  encodeLine,
  GENESIS,
  hashLine,
  type LineDraft,
} from "../../../src/billing/ledger/line.ts";
import { holdLedgerFiles } from "../../../src/billing/ledger/rotation.ts";
import { readFile } from "../../../src/billing/ledger/reader.ts";
import { readRow } from "../../../src/billing/ledger/row.ts";
import { describeTotals, type ReportQuery, sumLedger } from "../../../src/billing/report/report.ts";
import { explainRequest, findRequest } from "../../../src/billing/report/explain.ts";
import { findCorrections } from "../../../src/billing/report/reprice.ts";
import type { Price, PriceBook } from "../../../src/billing/prices.ts";
import { readCalls } from "../../../src/dialects/meters/messages.ts";
import { getField, parseJson } from "../../../src/lib/json/json.ts";
import { draftOf, newLedgerPath, readIndex } from "../ledger/ledger-samples.ts";

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
    Array.from(sumLedger(readIndex(path), query).rows, ({ names, totals }) => [
      names.join(" "),
      describeTotals(totals),
    ]),
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
    const { rows, total } = sumLedger(readIndex(path), ALL);
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
    const { total } = sumLedger(readIndex(path), {
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
    const report = sumLedger(readIndex(path), ALL);
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
      for (const { bytes } of readFile(source)) ids.push(idIn(bytes.toString()));
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

describe("a row", () => {
  test("is read whatever the order and the spaces of a line's members", () => {
    const client = { tool: "codex", session: "s-1", label: "größe {}" };
    const line = encodeLine(draftOf("req_1", { client }), GENESIS);
    const fields: Record<string, unknown> = JSON.parse(line);
    const { line: _line, ...row } = readRow(line) ?? expect.unreachable();
    expect(row).toMatchObject({
      id: "req_1",
      key: "laptop",
      group: "claude",
      channel: "anthropic-main",
      client,
    });
    expect(row.usage).toEqual(draftOf("req_1").usage);
    const reordered = Object.fromEntries(Object.entries(fields).toReversed());
    for (const text of [JSON.stringify(reordered), JSON.stringify(fields, null, " ").replaceAll("\n", "")])
      expect(readRow(text)).toMatchObject(row);
  });

  test("is not read from a line that lacks a name, or has an amount that is not a decimal", () => {
    const line = encodeLine(draftOf("req_1"), GENESIS);
    const damaged = [
      "{}",
      "[]",
      line.slice(1),
      line.replace('"key":"laptop"', '"key":1'),
      line.replace('"official_usd":"', '"official_usd":"x'),
      line.replace('"usage":{', '"usage":[],"other":{'),
    ];
    for (const text of damaged) expect(readRow(text)).toBe(null);
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
    const found = findRequest(readIndex(path), "req_1");
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
    const found = findRequest(readIndex(path), "req_1");
    const reported = found === null ? "" : explainRequest(found).join("\n");
    expect(reported).toContain("there is no price for it");
    expect(reported).toContain("official amount: not known");
    expect(reported).toContain(
      "Corrected at 2026-12-01T00:00:00.000Z: cor_1, ledger.jsonl, line 2; the charge was not known",
    );
    expect(findRequest(readIndex(path), "req_2")).toBe(null);
  });
});

describe("repricing", () => {
  const rates = { input: "4", output: "20", cache_read: "0.4", cache_write_1h: "8", cache_write_5m: "5" };
  const price: Omit<Price, "source"> = { rates, tiers: [], factors: { "service_tier=flex": "0.5" } };
  const period = {
    from: Number.NEGATIVE_INFINITY,
    until: Number.POSITIVE_INFINITY,
    hours: null,
    weekend: null,
    price,
  };
  const model = {
    provider: "anthropic",
    ids: ["claude-sonnet-4-5"],
    periods: [period],
    context: null,
    source: "test",
  };
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
      lineOf("named by the seller", {
        usage,
        prices: null,
        price_source: "reported",
        provider_usd: "3",
        official_usd: "3",
        charge_usd: "3",
      }),
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
      lineOf("raw", { ...UNPRICED, usage, raw_usage: '{"serviceTier":"flex"}' }),
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

describe("the last lines", () => {
  test("are whole ones", () => {
    const path = newLedgerPath();
    write(
      path,
      Array.from({ length: 30 }, (_, index) => lineOf(String(index))),
    );
    writeFileSync(path, "torn", { flag: "a" });
    expect(readLastLines(path, 3).map(idIn)).toEqual(["27", "28", "29"]);
    expect(readLastLines(path, 100)).toHaveLength(30);
    expect(readLastLines(path, 0)).toEqual([]);
    expect(readLastLines(newLedgerPath(), 3)).toEqual([]);
  });

  test("are of rotated files, too, if the growing one has too few", () => {
    const path = newLedgerPath();
    write(path.replace(/\.jsonl$/, "-2026-09.jsonl"), [lineOf("1"), lineOf("2")]);
    write(path.replace(/\.jsonl$/, "-2026-10.jsonl"), [lineOf("3"), lineOf("4")]);
    write(path, [lineOf("5")]);
    expect(readLastLines(path, 4).map(idIn)).toEqual(["2", "3", "4", "5"]);
    expect(readLastLines(path, 100)).toHaveLength(5);
    expect(readLastLines(path, 0)).toEqual([]);
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
      expect(sumLedger(readIndex(path), ALL).total.charge === sum).toBe(true);
    }),
    { numRuns: 30, seed: 2 },
  );
});
