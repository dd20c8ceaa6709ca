// What limits know about the prompts that an upstream has cached.

import { expect, test } from "bun:test";

import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { CachedPrompts } from "../../../src/billing/limits/cached-prompts.ts";
import { bill, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";

const MINUTE_MS = 60_000;
const OWN = { key: "laptop", model: "m", client: { session: "s1" } };
const USAGE = { input: 10, cache_read: 1000, cache_write_5m: 200, output: 7 };

test("the cached prompt of a session is what its last request read and wrote, for five minutes", () => {
  const prompts = new CachedPrompts();
  prompts.add(OWN, { cache_write_1h: 9 }, 0);
  prompts.add(OWN, USAGE, 0);
  expect(prompts.expect(OWN, 5 * MINUTE_MS)).toBe(1200);
  expect(prompts.expect(OWN, 5 * MINUTE_MS + 1)).toBe(0);
  prompts.add(OWN, { input: 5000 }, MINUTE_MS);
  expect(prompts.expect(OWN, MINUTE_MS)).toBe(0);
});

test("no cached prompt is expected of another key, model, agent or session, nor without a session", () => {
  const prompts = new CachedPrompts();
  prompts.add(OWN, USAGE, 0);
  prompts.add({ ...OWN, client: null }, USAGE, 0);
  for (const other of [
    { ...OWN, key: "other" },
    { ...OWN, model: "n" },
    { ...OWN, client: { session: "s1", agent: "a" } },
    { ...OWN, client: { session: "s2" } },
    { ...OWN, client: null },
  ])
    expect(prompts.expect(other, 0)).toBe(0);
});

test("a ledger's lines with known usage say what is cached, and others do not", async () => {
  const now = Date.parse("2026-11-20T10:00:00Z");
  const ledger = openLedger(optionsFor(newLedgerPath(), { now: () => now }));
  const client = { session: "s1" };
  const own = { key: "laptop", model: "claude-sonnet-4-5", client };
  await bill(ledger, "req_1", { client, limit_usd: "1" });
  expect(ledger.expectCached(own)).toBe(0);
  await bill(ledger, "req_2", { client });
  expect(ledger.expectCached(own)).toBe(11_420);
  await ledger.close();
});
