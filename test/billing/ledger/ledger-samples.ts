// Makes requests, intents and lines for the tests of the ledger.

import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Ledger } from "../../../src/billing/ledger/ledger.ts";
import type { Intent, LineDraft } from "../../../src/billing/ledger/line.ts";
import type { LedgerOptions } from "../../../src/billing/ledger/writer.ts";
import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import { Table } from "../../../src/billing/store/open.ts";
import { makeSweptFolder } from "../../harness/temp.ts";

export function newLedgerPath(): string {
  return join(makeSweptFolder(), "ledger.jsonl");
}

export function optionsFor(path: string, more: Partial<LedgerOptions> = {}): LedgerOptions {
  return { path, rotate: { monthly: false }, report: () => undefined, ...more };
}

export function intentOf(id: string, more: Partial<Intent> = {}): Intent {
  return {
    id,
    time: "2026-11-20T10:00:00.000Z",
    key: "laptop",
    group: "claude",
    platform: "messages",
    channel: "anthropic-main",
    endpoint: "/v1/messages",
    model: "claude-sonnet-4-5",
    upstream_model: "claude-sonnet-4-5",
    stream: true,
    multiplier: "1",
    ...more,
  };
}

export function draftOf(id: string, more: Partial<LineDraft> = {}): LineDraft {
  const { multiplier, ...intent } = intentOf(id);
  return {
    ...intent,
    upstream_model: "claude-sonnet-4-5-20250929",
    status: 200,
    outcome: "complete",
    basis: "exact",
    usage: {
      input: 12,
      cache_read: 11000,
      cache_write_5m: 0,
      cache_write_1h: 420,
      output: 350,
      reasoning: 120,
    },
    parts: undefined,
    raw_usage: { input_tokens: 12, cache_read_input_tokens: 11000, output_tokens: 350 },
    prices: { input: "3", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6", output: "15" },
    price_source: "test",
    tier: "standard",
    official_usd: "0.011106",
    multiplier,
    charge_usd: "0.011106",
    first_byte_ms: 340,
    duration_ms: 4120,
    attempts: [{ channel: "anthropic-main", status: 200 }],
    ...more,
  };
}

/** Returns a line whose usage and prices give its charge. */
export function chargedOf(id: string, more: Partial<LineDraft>): LineDraft {
  const unknown = { basis: "unknown", prices: null, official_usd: null } as const;
  const { charge_usd } = more;
  return draftOf(id, {
    ...(typeof charge_usd === "string" ? costing(charge_usd) : charge_usd === null && unknown),
    ...more,
  });
}

/** Returns the amounts of a line with this charge. */
export function costing(
  charge_usd: string,
): Pick<LineDraft, "usage" | "prices" | "official_usd" | "multiplier" | "charge_usd"> {
  const usage = { input: 1_000_000 };
  return { usage, prices: { input: charge_usd }, official_usd: charge_usd, multiplier: "1", charge_usd };
}

/** Opens a request and writes its line. */
export async function bill(ledger: Ledger, id: string, more: Partial<LineDraft> = {}): Promise<void> {
  await ledger.open(intentOf(id));
  ledger.append(chargedOf(id, more));
}

/** Returns the journal as if the machine had restarted since it was written, as after a power cut. */
export function asOfAnotherBoot(journal: string): string {
  return journal.replace(/"boot":"[^"]*"/, '"boot":"another"');
}

/** Returns the ledger's files, oldest first, found without the code under test. */
function filesOf(path: string): string[] {
  const stem = basename(path, ".jsonl");
  const rotated = readdirSync(dirname(path))
    .map((name) => /^(.*)-(\d{4}-\d{2})(?:\.(\d+))?\.jsonl$/.exec(name))
    .filter((match) => match !== null && match[1] === stem)
    .map((match) => ({ name: match![0], month: match![2]!, number: Number(match![3] ?? 1) }))
    .sort((a, b) => (a.month < b.month ? -1 : a.month > b.month ? 1 : a.number - b.number))
    .map(({ name }) => join(dirname(path), name));
  return existsSync(path) ? [...rotated, path] : rotated;
}

export interface ReadLedger {
  readonly lines: Array<Record<string, unknown> & { id: string; outcome: string }>;
  readonly count: Map<string, number>;
}

/** Reads every line. Throws unless each is complete and has the hash of the line before. */
export function readWholeLedger(path: string): ReadLedger {
  const lines: ReadLedger["lines"] = [];
  const count = new Map<string, number>();
  let prev = "0".repeat(64);
  for (const file of filesOf(path)) {
    const texts = readFileSync(file, "utf8").split("\n");
    if (texts.pop() !== "") throw new Error(`${file} ends in a torn line`);
    for (const [index, text] of texts.entries()) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a test that reads a missing field fails
      const line = JSON.parse(text) as ReadLedger["lines"][number];
      if (line["prev"] !== prev) throw new Error(`${file}:${index + 1}: the chain is broken`);
      prev = createHash("sha256").update(text).digest("hex");
      lines.push(line);
      count.set(line.id, (count.get(line.id) ?? 0) + 1);
    }
  }
  return { lines, count };
}

/** Brings the table of a ledger up to date, as each reader does. */
export function makeTable(path: string): void {
  new Table(path, { report: () => {} })[Symbol.dispose]();
}

const PAGE_BYTES = 32_768;

/** Overwrites the first page of the table's rows. Nothing notices this before a query reads the rows. */
export function damageTable(path: string): void {
  const database = new Database(`${path}.index`);
  const pages = database
    .query("SELECT rootpage FROM sqlite_master WHERE name IN ('lines', 'by_who')")
    .values();
  database.close();
  const bytes = readFileSync(`${path}.index`);
  for (const [page] of pages) bytes.fill(0xff, (Number(page) - 1) * PAGE_BYTES, Number(page) * PAGE_BYTES);
  writeFileSync(`${path}.index`, bytes);
}

/** Returns what `ledger verify` finds, in words. */
export function listProblems(path: string, running = false): string[] {
  const problems: string[] = [];
  verifyLedger(path, { partial: false, running }, ({ problem }) => problems.push(problem));
  return problems;
}
