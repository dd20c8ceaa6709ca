// After a restart, limits a minute count the requests that the ledger's end has, and those that were in flight at a kill.

import { expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";

import { type Ledger, openLedger } from "../../../src/billing/ledger/ledger.ts";
import type { LedgerOptions } from "../../../src/billing/ledger/writer.ts";
import { draftOf, filesOf, intentOf, newLedgerPath, optionsFor } from "./ledger-samples.ts";

const NOW = Date.parse("2026-11-20T10:00:30.000Z");
const LAPTOP = { kind: "key", name: "laptop" } as const;

function open(path: string, more: Partial<LedgerOptions> = {}): Ledger {
  return openLedger(optionsFor(path, { now: () => NOW, ...more }));
}

async function bill(ledger: Ledger, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const id = `req_${number}`;
    await ledger.open(intentOf(id));
    ledger.append(draftOf(id));
  }
}

async function countAfterRestart(path: string): Promise<number> {
  const ledger = open(path);
  const { length } = ledger.recentOf(LAPTOP, NOW - 60_000);
  await ledger.close();
  return length;
}

test("they are counted across rotated files", async () => {
  const path = newLedgerPath();
  for (let start = 0; start < 3; start += 1) {
    const ledger = open(path, { rotate: { bytes: 1, monthly: false } });
    await bill(ledger, 2);
    await ledger.close();
  }
  expect(filesOf(path).length).toBeGreaterThan(2);
  expect(await countAfterRestart(path)).toBe(6);
});

test("they are counted however many corrections follow them", async () => {
  const path = newLedgerPath();
  const ledger = open(path);
  await bill(ledger, 3);
  const { key, group, platform, channel, model, usage, prices, multiplier } = draftOf("req_0");
  for (let number = 0; number < 3000; number += 1) {
    ledger.correct({
      id: `cor_${number}`,
      time: "2026-11-20T10:00:20.000Z",
      corrects: "req_0",
      request_time: "2026-11-20T10:00:00.000Z",
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
  }
  await ledger.close();
  expect(statSync(path).size).toBeGreaterThan(1 << 20);
  expect(await countAfterRestart(path)).toBe(3);
});

test("they are counted however many they are", async () => {
  const path = newLedgerPath();
  const ledger = open(path);
  await bill(ledger, 4000);
  await ledger.close();
  expect(statSync(path).size).toBeGreaterThan(2 << 20);
  expect(await countAfterRestart(path)).toBe(4000);
});

/** Leaves the ledger as a gateway that is killed now. */
async function kill(ledger: Ledger, path: string): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  const journal = readFileSync(`${path}.open`);
  await ledger.close();
  writeFileSync(`${path}.open`, journal);
}

test("those that were in flight when the gateway was killed are counted, for their key, group and session", async () => {
  const path = newLedgerPath();
  const ledger = open(path);
  const client = { tool: "codex", session: "s1" };
  await ledger.open(intentOf("req_cut", { client, time: "2026-11-20T10:00:10.000Z" }));
  await ledger.open(intentOf("req_earlier", { client, time: "2026-11-20T09:59:00.000Z" }));
  await ledger.open(intentOf("req_long_ago", { client, time: "2026-11-20T09:00:00.000Z" }));
  await ledger.open(intentOf("req_discarded"));
  ledger.discard("req_discarded");
  await bill(ledger, 1);
  await kill(ledger, path);

  for (const start of ["the next start", "the one after it"]) {
    const next = open(path);
    const since = NOW - 60_000;
    const counts = [
      next.recentOf(LAPTOP, since),
      next.recentOf({ kind: "group", name: "claude" }, since),
      next.recentOf({ kind: "session", name: "s1" }, since),
    ];
    const [billed, cut] = [NOW - 30_000, NOW - 20_000];
    expect({ start, counts }).toEqual({ start, counts: [[billed, cut], [billed, cut], [cut]] });
    // Sessions that no tool names go on, too.
    const times = next.recent.map(({ time }) => time.slice(11, 19));
    expect(times).toEqual(["09:59:00", "10:00:00", "10:00:10"]);
    await next.close();
  }
});
