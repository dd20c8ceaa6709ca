// What limits know about the next prompt of a session.

import { expect, test } from "bun:test";

import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { CachedPrompts } from "../../../src/billing/limits/cached-prompts.ts";
import { draftOf, intentOf, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";

const MINUTE_MS = 60_000;
const OWN = { key: "laptop", model: "m", client: { session: "s1" } };
const USAGE = { input: 10, cache_read: 1000, cache_write_5m: 200, output: 7 };
const NEXT = 2000;

test("the cached prompt of a session is what its last request read and wrote, for five minutes", () => {
  const prompts = new CachedPrompts();
  prompts.add(OWN, { cache_write_1h: 9 }, 0, 9);
  prompts.add(OWN, USAGE, 0, 1210);
  expect(prompts.expect(OWN, 5 * MINUTE_MS, NEXT)).toEqual({ tokens: 2000, cached: 1200 });
  expect(prompts.expect(OWN, 5 * MINUTE_MS + 1, NEXT)).toEqual({ tokens: 2000, cached: 0 });
  expect(prompts.expect(OWN, -5 * MINUTE_MS - 1, NEXT)).toEqual({ tokens: 2000, cached: 0 });
  // A shorter prompt has no more than its own tokens in the cache.
  expect(prompts.expect(OWN, 0, 300)).toEqual({ tokens: 300, cached: 300 });
  prompts.add(OWN, { input: 5000 }, MINUTE_MS, 5000);
  expect(prompts.expect(OWN, MINUTE_MS, NEXT)).toEqual({ tokens: 2000, cached: 0 });
});

test.each([
  [605, 4000],
  [2420, 1000],
  [1, 6000],
  [1_000_000, 667],
  [0, 2000],
])(
  "its size makes as many tokens as before: 1210 were estimated as %d, so 2000 are %d",
  (estimated, tokens) => {
    const prompts = new CachedPrompts();
    prompts.add(OWN, USAGE, 0, estimated);
    expect(prompts.expect(OWN, 0, NEXT).tokens).toBe(tokens);
  },
);

test("nothing is known of another key, model, agent or session, nor without a session", () => {
  const prompts = new CachedPrompts();
  prompts.add(OWN, USAGE, 0, 605);
  prompts.add({ ...OWN, client: null }, USAGE, 0, 605);
  for (const other of [
    { ...OWN, key: "other" },
    { ...OWN, model: "n" },
    { ...OWN, client: { session: "s1", agent: "a" } },
    { ...OWN, client: { session: "s2" } },
    { ...OWN, client: null },
  ])
    expect(prompts.expect(other, 0, NEXT)).toEqual({ tokens: NEXT, cached: 0 });
});

test("a ledger's lines with known usage say what is cached, and others do not", async () => {
  const now = Date.parse("2026-11-20T10:00:00Z");
  const ledger = openLedger(optionsFor(newLedgerPath(), { now: () => now }));
  const client = { session: "s1" };
  const own = { key: "laptop", model: "claude-sonnet-4-5", client };
  const write = async (id: string, more: object): Promise<void> => {
    await ledger.open(intentOf(id));
    ledger.append(draftOf(id, { client, ...more }), 22_864);
  };
  await write("req_1", { limit_usd: "1" });
  expect(ledger.expectPrompt(own, 24_000)).toEqual({ tokens: 24_000, cached: 0 });
  await write("req_2", {});
  // 11,432 tokens were estimated as twice as many.
  expect(ledger.expectPrompt(own, 24_000)).toEqual({ tokens: 12_000, cached: 11_420 });
  await ledger.close();
});
