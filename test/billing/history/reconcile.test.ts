import { describe, expect, test } from "bun:test";
import { reconcileExport, readExport } from "../../../src/billing/history/exports.ts";
import type { OurLine } from "../../../src/billing/history/our-lines.ts";
import {
  type Reconciliation,
  reconcileLogs,
  reconcileSellers,
} from "../../../src/billing/history/reconcile.ts";
import { loadPriceBook } from "../../../src/billing/prices.ts";
import { formatDecimal, parseDecimal } from "../../../src/lib/money.ts";
import { entryOf, lineOf, T } from "./made-requests.ts";

const PRICES = { book: loadPriceBook(), overrides: new Map() };
const always = (): boolean => true;

/** [agree, only theirs, only ours, different] */
function count({ agree, differences }: Reconciliation): number[] {
  const onlyTheirs = differences.filter(({ ours }) => ours === null).length;
  const onlyOurs = differences.filter(({ theirs }) => theirs === null).length;
  return [agree, onlyTheirs, onlyOurs, differences.length - onlyTheirs - onlyOurs];
}

describe("the agents' logs", () => {
  test("show what went past the gateway, what they lack, and what differs, each with its reason", () => {
    const entries = [
      entryOf({ requestId: "a" }),
      entryOf({ requestId: "b", session: "past" }),
      entryOf({ requestId: "c", usage: { input: 1, output: 1 }, basis: "partial" }),
      entryOf({ requestId: "e", usage: { input: 2, output: 1 } }),
    ];
    const lines = [
      lineOf({ id: "1", requestId: "a" }),
      lineOf({ id: "3", requestId: "c" }),
      lineOf({ id: "4", requestId: "d", session: "other", time: T + 1, official: parseDecimal("0.5") }),
      lineOf({ id: "5", requestId: "e", outcome: "client_closed", time: T + 2 }),
    ];
    const found = reconcileLogs(entries, lines, PRICES, always);
    expect(count(found)).toEqual([1, 1, 1, 2]);
    expect(found.differences.map(({ id, because }) => [id, because])).toEqual([
      ["3", "the log was written before the response ended"],
      ["4", "Codex logs no service tier, no titles, no fees of searches, and no stopped answers"],
      ["5", "the response ended early (client_closed)"],
      ["b", "no line has it: it went past this gateway"],
    ]);
    expect(found.differences.find(({ id }) => id === "4")?.ours?.usd).toEqual(parseDecimal("0.5"));
  });

  test("a line without usage needs no entry, and one of unknown usage does", () => {
    const lines = [lineOf({ usage: {} }), lineOf({ id: "2", usage: {}, basis: "unknown" })];
    expect(count(reconcileLogs([], lines, PRICES, always))).toEqual([0, 0, 1, 0]);
  });

  test("requests at the edge of the period are joined before they are left out", () => {
    const within = (time: number): boolean => time >= T + 1000;
    expect(count(reconcileLogs([entryOf()], [lineOf()], PRICES, within))).toEqual([0, 0, 0, 0]);
  });

  test("an entry whose model has no price has no amount", () => {
    const { differences, theirs } = reconcileLogs([entryOf({ model: "nobody-1" })], [], PRICES, always);
    expect([differences[0]?.theirs?.usd, formatDecimal(theirs)]).toEqual([null, "0"]);
  });
});

test("sellers' amounts are compared where the seller names one, and bills all of it", () => {
  const official = parseDecimal("1");
  const lines = [
    lineOf({ id: "1", official, providerUsd: "1.009" }),
    lineOf({ id: "2", official, providerUsd: "1.02" }),
    lineOf({ id: "3", official }),
    lineOf({ id: "4", official, providerUsd: "0.1", isOwnKey: true }),
    lineOf({ id: "5", providerUsd: "0.1" }),
  ];
  const found = reconcileSellers(lines);
  expect(found.differences.map(({ id, because }) => [id, because])).toEqual([
    ["2", null],
    ["5", "the ledger has no price"],
  ]);
  expect([found.agree, found.notes]).toEqual([
    1,
    ["2 of 5 requests have no amount of their seller's to compare with"],
  ]);
});

describe("exports of consoles", () => {
  const DAY = Date.parse("2026-11-20T00:00:00.000Z");
  const HEAD =
    "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m," +
    "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,web_search_count,inference_geo,speed";
  const claude = (more: Partial<OurLine> = {}): OurLine => {
    const usage = { input: 10, cache_read: 20, cache_write_5m: 3, cache_write_1h: 4, output: 5 };
    return lineOf({
      model: "claude-haiku-4-5",
      answeredBy: "claude-haiku-4-5-20251001",
      usage,
      time: DAY + 3_600_000,
      official: parseDecimal("1.234"),
      ...more,
    });
  };
  const lines = [claude(), claude({ id: "2", time: DAY + 7_200_000 })];

  function reconcile(text: string, own: readonly OurLine[] = lines): Reconciliation {
    const exported = readExport(text);
    if (exported === null) throw new Error("no export");
    return reconcileExport(exported, own, always);
  }

  test("Anthropic's usage in CSV: rows of one day and model are one sum", () => {
    const rows = ["key-1,Default", '"key, ""2""",Default'].map(
      (names) => `2026-11-20,claude-haiku-4-5-20251001,${names},standard,≤ 200k,10,3,4,20,5,0,global,`,
    );
    expect(count(reconcile([HEAD, ...rows].join("\r\n")))).toEqual([1, 0, 0, 0]);
    const [difference] = reconcile(`\uFEFF${HEAD}\n${rows[0]}\n`).differences;
    expect(difference?.because).toContain("usage_output_tokens 5, ours 10");
  });

  test("a day and model of which only one side has something is in that side's list", () => {
    const other = "2026-11-20,claude-opus-4-8,k,Default,standard,≤ 200k,10,3,4,20,5,0,global,";
    const empty = "2026-11-21,claude-opus-4-8,k,Default,standard,≤ 200k,0,0,0,0,0,0,global,";
    const later = claude({ id: "3", time: DAY + 5 * 86_400_000 });
    expect(count(reconcile([HEAD, other, empty].join("\n"), [...lines, later]))).toEqual([0, 1, 2, 0]);
  });

  test("Anthropic's costs in CSV: amounts are rounded to cents, and models have names for people", () => {
    const head =
      "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type,inference_geo,speed";
    const row = (type: string, usd: string): string =>
      `2026-11-20,Claude Haiku 4.5,Default,k,message,≤ 200k,${type},${usd},${usd},token,global,`;
    expect(count(reconcile([head, row("input_no_cache", "1.47"), row("output", "1.00")].join("\n")))).toEqual(
      [1, 0, 0, 0],
    );
    expect(count(reconcile([head, row("input_no_cache", "1.50"), row("output", "1.00")].join("\n")))).toEqual(
      [0, 0, 0, 1],
    );
  });

  test("Anthropic's API in JSON: counts in objects, and amounts in cents", () => {
    const page = (result: object): string =>
      JSON.stringify({
        data: [{ starting_at: "2026-11-20T00:00:00Z", ending_at: "2026-11-21T00:00:00Z", results: [result] }],
        has_more: false,
      });
    const counts = {
      model: "claude-haiku-4-5-20251001",
      uncached_input_tokens: 20,
      cache_read_input_tokens: 40,
      cache_creation: { ephemeral_5m_input_tokens: 6, ephemeral_1h_input_tokens: 8 },
      server_tool_use: { web_search_requests: 0 },
      output_tokens: 10,
    };
    expect(count(reconcile(page(counts)))).toEqual([1, 0, 0, 0]);
    expect(count(reconcile(page({ ...counts, cache_creation: { ephemeral_5m_input_tokens: 7 } })))).toEqual([
      0, 0, 0, 1,
    ]);
    expect(count(reconcile(page({ amount: "246.8", currency: "USD", model: null })))).toEqual([1, 0, 0, 0]);
    expect(count(reconcile(page({ amount: "246.9", currency: "USD", model: null })))).toEqual([0, 0, 0, 1]);
  });

  test("times may overlap, and have gaps: a line counts in each row of its time, and none of a time that no row has", () => {
    const head = "starting_at,ending_at,model,output_tokens";
    const row = (from: string, until: string, output: number, model = "claude-haiku-4-5"): string =>
      `2026-11-20T${from}:00Z,2026-11-20T${until}:00Z,${model},${output}`;
    const rows = [row("02:00", "02:01", 5), row("00:00", "05:00", 10), row("01:00", "01:01", 5)];
    const opus = row("01:00", "01:01", 0, "claude-opus-4-8");
    const at = (hours: number): OurLine => claude({ id: `at ${hours}`, time: DAY + hours * 3_600_000 });
    expect(count(reconcile([head, ...rows, opus].join("\n"), [at(2), at(1)]))).toEqual([3, 0, 0, 0]);
    const narrow = [head, rows[0], rows[2]].join("\n");
    expect(count(reconcile(narrow, [at(1.5), at(1), at(2), at(7)]))).toEqual([2, 0, 0, 0]);
    expect(count(reconcile([head, opus].join("\n"), [at(1), at(1.5)]))).toEqual([0, 0, 1, 0]);
  });

  test("OpenAI's usage and costs, in CSV and JSON", () => {
    const own = [
      lineOf({
        time: DAY + 30_000,
        usage: { input: 40, cache_read: 50, cache_write: 10, output: 7 },
        official: parseDecimal("0.00383598"),
      }),
    ];
    const [from, until] = [DAY / 1000, DAY / 1000 + 60];
    const usage = {
      input_tokens: 100,
      input_cached_tokens: 50,
      output_tokens: 7,
      num_model_requests: 1,
      model: "gpt-5.5-2026-04-24",
    };
    const json = JSON.stringify({
      object: "page",
      data: [{ object: "bucket", start_time: from, end_time: until, results: [usage] }],
    });
    expect(count(reconcile(json, own))).toEqual([1, 0, 0, 0]);
    const csv = `start_time,end_time,start_time_iso,end_time_iso,model,input_tokens,input_cached_tokens,output_tokens\n${from},${until},a,b,gpt-5.5,100,49,7\n`;
    expect(count(reconcile(csv, own))).toEqual([0, 0, 0, 1]);
    const costs = `start_time,end_time,amount_value,amount_currency,line_item\n${from},${until},0.003835980000000000000000000000,usd,\n`;
    expect(count(reconcile(costs, own))).toEqual([1, 0, 0, 0]);
    const items = JSON.stringify({
      data: [
        {
          start_time: from,
          end_time: until,
          results: [
            { amount: { value: 0.00383598, currency: "usd" }, line_item: "gpt-5.5-2026-04-24, input" },
          ],
        },
      ],
    });
    expect(count(reconcile(items, own))).toEqual([1, 0, 0, 0]);
  });

  test.each([
    ["nothing", ""],
    ["text", "hello\nworld"],
    ["another CSV", "a,b\n1,2\n"],
    ["another JSON", '{"data":[{"results":[1,null]},7]}'],
    ["a head without rows", HEAD],
    ["a day that is none", `${HEAD}\nnever,claude,k,w,s,c,1,1,1,1,1,1,,`],
  ])("%s is no export", (_, text) => {
    expect(readExport(text)).toBeNull();
  });

  test("counts that are none differ from ours", () => {
    expect(count(reconcile(`${HEAD}\n2026-11-20,claude-haiku-4-5,k,w,s,c,many,-1,4,1e9,5,0,,`))).toEqual([
      0, 0, 0, 1,
    ]);
  });
});
