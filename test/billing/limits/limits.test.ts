import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { openLedger, type Ledger } from "../../../src/billing/ledger/ledger.ts";
import type { LineDraft } from "../../../src/billing/ledger/line.ts";
import { type Admission, type Cost, createGate, type Gate } from "../../../src/billing/limits/limits.ts";
import { NOTHING } from "../../../src/billing/ledger/shares.ts";
import type { Key } from "../../../src/config/catalog.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import { formatUsd, parseUsd } from "../../../src/lib/money.ts";
import { createZone, UTC } from "../../../src/lib/text/zone.ts";
import {
  bill,
  chargedOf,
  draftOf,
  intentOf,
  makeTable,
  newLedgerPath,
  optionsFor,
} from "../ledger/ledger-samples.ts";
import { limitedKey } from "./simulated-sessions.ts";

/** What a request will cost. Null: its price is not known. */
function costing(usd: string | null): Cost {
  const forecast = usd === null ? null : { expected: parseUsd(usd), most: parseUsd(usd) };
  return { model: "some-model", forecast: () => forecast };
}

const NOON = Date.parse("2026-11-20T12:00:00Z");

/** A ledger at a fixed moment. The test chooses the cost of each request. */
async function withLedger(
  use: (ledger: Ledger, gate: Gate, spend: (usd: string, time?: string) => Promise<void>) => Promise<void>,
  now = NOON,
): Promise<void> {
  const ledger = openLedger(optionsFor(newLedgerPath(), { now: () => now }));
  let count = 0;
  const spend = async (usd: string, time = new Date(now).toISOString()): Promise<void> => {
    count += 1;
    await bill(ledger, `req_${count}`, { time, charge_usd: usd });
  };
  await use(ledger, createGate(ledger.sums), spend);
  await ledger.close();
}

/** Asks the gate to let a request in. If there is no room, the request is refused and does not wait. */
function admit(gate: Gate, key: Key, now: number, cost: Cost | null, session?: string): Admission {
  const place = gate.enter(key, now, cost, { session });
  if ("noRoom" in place) throw place.noRoom;
  return place;
}

function refusalOf(act: () => unknown): GatewayError {
  try {
    act();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("it was let in");
}

describe("P113: a USD limit refuses requests when it is spent", () => {
  test("the refusal of a USD limit per day names the limit, the sum and the reset, which is at UTC midnight", async () => {
    await withLedger(async (_, gate, spend) => {
      await spend("4.999999999999");
      const key = limitedKey({ usdPerDay: "5" });
      admit(gate, key, NOON, costing("0")).release();
      await spend("0.000000000001");
      const refusal = refusalOf(() => admit(gate, key, NOON, costing("0")));
      expect(refusal.code).toBe("limit_spent");
      expect(refusal.message).toBe(
        'The key "laptop" may spend $5 (usd_per_day) and has spent $5. It resets at 2026-11-21T00:00:00Z.',
      );
      expect(refusal.retrySeconds).toBe(12 * 3600);
    });
    await withLedger(async (_, gate, spend) => {
      await spend("100", "2026-11-20T23:59:59.999Z");
      admit(gate, limitedKey({ usdPerDay: "5" }), Date.parse("2026-11-21T00:00:00Z"), null);
    }, Date.parse("2026-11-21T00:00:00Z"));
  });

  test("a USD limit per day or month asks to wait at least one second, even in the last second of the day", async () => {
    const late = Date.parse("2026-12-31T23:59:59.500Z");
    await withLedger(async (_, gate, spend) => {
      await spend("5");
      const day = refusalOf(() => admit(gate, limitedKey({ usdPerDay: "5" }), late, costing("0")));
      const month = refusalOf(() => admit(gate, limitedKey({ usdPerMonth: "5" }), late, costing("0")));
      expect([day.retrySeconds, month.retrySeconds]).toEqual([1, 1]);
      for (const { message } of [day, month]) expect(message).toContain("It resets at 2027-01-01T00:00:00Z.");
    }, late);
  });

  test("USD limits per day and per month reset at midnight in the config's time zone", async () => {
    // Summer time ends in this night, so the day has 25 hours.
    const evening = Date.parse("2026-10-24T22:30:00Z");
    const zone = createZone("Europe/Berlin");
    let now = evening;
    const ledger = openLedger(optionsFor(newLedgerPath(), { now: () => now, zone }));
    const gate = createGate(ledger.sums);
    await bill(ledger, "req_1", { time: new Date(now).toISOString(), charge_usd: "5" });
    const key = limitedKey({ usdPerDay: "5" });
    const refusal = refusalOf(() => admit(gate, key, now, costing("0")));
    expect(refusal.message).toContain("It resets at 2026-10-25T23:00:00Z.");
    now += (refusal.retrySeconds ?? 0) * 1000 - 1;
    expect(refusalOf(() => admit(gate, key, now, costing("0"))).code).toBe("limit_spent");
    now += 1;
    admit(gate, key, now, costing("0")).release();
    const month = refusalOf(() => admit(gate, limitedKey({ usdPerMonth: "5" }), now, costing("0")));
    expect(month.message).toContain("It resets at 2026-10-31T23:00:00Z.");
    await ledger.close();
  });

  test("a group's USD limit per month and a key's USD limit in total refuse requests when they are spent", async () => {
    await withLedger(async (_, gate, spend) => {
      await spend("3", "2026-11-01T00:00:00.000Z");
      await spend("4", "2026-10-31T00:00:00.000Z");
      admit(gate, limitedKey({ usdPerMonth: "3.01", usdTotal: "7.01" }), NOON, costing("0"));
      const month = refusalOf(() => admit(gate, limitedKey({}, { usdPerMonth: "3" }), NOON, costing("0")));
      expect(month.message).toContain(
        'The group "claude" may spend $3 (usd_per_month) and has spent $3. It resets at 2026-12-01T00:00:00Z.',
      );
      const total = refusalOf(() => admit(gate, limitedKey({ usdTotal: "7" }), NOON, costing("0")));
      expect(total.message).toContain("(usd_total) and has spent $7. This limit does not reset.");
      expect(total.retrySeconds).toBe(86_400);
      // Another key of the group has a limit of its own, and has spent nothing.
      admit(gate, limitedKey({ usdTotal: "7" }, {}, "other"), NOON, costing("0"));
    });
  });

  test("parallel requests exceed a USD limit by at most the last request that was let in", async () => {
    await withLedger(async (_, gate, spend) => {
      const key = limitedKey({ usdPerDay: "5" });
      const running = Array.from({ length: 4 }, () => admit(gate, key, NOON, costing("1.5")));
      const refusal = refusalOf(() => admit(gate, key, NOON, costing("1.5")));
      expect(refusal.code).toBe("rate_limited");
      expect(refusal.message).toContain("has spent $0; up to $6 more is reserved by 4 requests in flight");
      expect(refusal.retrySeconds).toBe(2);
      await spend("1.5");
      for (const admission of running.slice(1)) {
        admission.release();
        admission.release();
      }
      // $1.5 is spent, and the request that still runs has reserved $1.5.
      admit(gate, key, NOON, costing("1.5"));
      admit(gate, key, NOON, costing("1.5"));
      expect(refusalOf(() => admit(gate, key, NOON, costing("1.5"))).message).toContain(
        "has spent $1.5; up to $4.5",
      );
    });
  });
});

test("P116: a model without a price is refused if only one of key and group allows it", async () => {
  await withLedger(async (_, gate) => {
    const key = limitedKey({ usdTotal: "5", allowUnpriced: true }, { usdTotal: "50" });
    expect(refusalOf(() => admit(gate, key, NOON, costing(null))).message).toStartWith('The group "claude"');
  });
});

test("P118: if the gateway dies during a request, a limit counts what the request had reserved", async () => {
  const path = newLedgerPath();
  const options = optionsFor(path, { now: () => NOON });
  const ledger = openLedger(options);
  await ledger.open(intentOf("req_1", { time: new Date(NOON).toISOString(), limit_usd: "5" }));
  const journal = readFileSync(`${path}.open`);
  await ledger.close();
  writeFileSync(`${path}.open`, journal);
  const again = openLedger(options);
  expect(
    refusalOf(() => admit(createGate(again.sums), limitedKey({ usdPerDay: "5" }), NOON, costing("0"))).code,
  ).toBe("limit_spent");
  await again.close();
});

test.each([true, false])(
  "P118: the estimate of a replaced line counts neither for the day nor for the month; sums were in memory before: %p",
  async (isKept) => {
    await withLedger(async (ledger) => {
      const spentOf = (window: "day" | "month") =>
        ledger.sums.spentOf({ kind: "key", name: "laptop" }, window);
      if (isKept) spentOf("day");
      const [time, limit_usd] = ["2026-11-19T10:00:00.000Z", "3"];
      await bill(ledger, "req_1", { time, charge_usd: null, limit_usd });
      const replaces = { id: "req_1", time, limit_usd };
      await bill(ledger, "req_2", { charge_usd: "1", replaces });
      for (const window of ["day", "month"] as const)
        expect(spentOf(window)).toMatchObject({ charged: parseUsd("1"), estimated: parseUsd("0") });
    });
  },
);

describe("P113: a rate limit counts the requests of a minute", () => {
  test("a rate limit of requests per minute counts the last 60 seconds, and says when to try again", async () => {
    await withLedger(async (_, gate) => {
      const key = limitedKey({ requestsPerMinute: 3 });
      for (const second of [0, 10, 20]) admit(gate, key, NOON + second * 1000, null).release();
      const refusal = refusalOf(() => admit(gate, key, NOON + 30_000, null));
      expect(refusal.code).toBe("rate_limited");
      expect(refusal.retrySeconds).toBe(30);
      expect(refusal.message).toContain(
        "3 requests a minute (requests_per_minute), and has made 3 in the last one: try again in 30 s.",
      );
      expect(refusalOf(() => admit(gate, key, NOON + 59_999, null)).retrySeconds).toBe(1);
      admit(gate, key, NOON + 60_000, null);
      expect(refusalOf(() => admit(gate, key, NOON + 60_000, null)).retrySeconds).toBe(10);
      // A lowered limit also counts earlier requests.
      const lower = limitedKey({ requestsPerMinute: 1 });
      expect(refusalOf(() => admit(gate, lower, NOON + 60_000, null)).retrySeconds).toBe(60);
    });
  });

  test("a limit of requests per minute counts requests of the same instant, and a limit of 1 lets one request through each minute", async () => {
    await withLedger(async (_, gate) => {
      const key = limitedKey({ requestsPerMinute: 3 });
      for (const _each of [1, 2, 3]) admit(gate, key, NOON, null).release();
      expect(refusalOf(() => admit(gate, key, NOON, null)).retrySeconds).toBe(60);
      const slow = limitedKey({ requestsPerMinute: 1 }, {}, "slow");
      for (const minute of [0, 1, 2]) admit(gate, slow, NOON + minute * 60_000, null).release();
      expect(refusalOf(() => admit(gate, slow, NOON + 179_999, null)).retrySeconds).toBe(1);
    });
  });

  test("if the clock was set back, a limit of requests per minute refuses requests for a minute at most", async () => {
    await withLedger(async (_, gate) => {
      const key = limitedKey({ requestsPerMinute: 2 });
      for (const second of [0, 1]) admit(gate, key, NOON + second * 1000, null).release();
      const before = NOON - 3_600_000;
      for (const second of [0, 1]) admit(gate, key, before + second * 1000, null).release();
      expect(refusalOf(() => admit(gate, key, before + 2000, null)).retrySeconds).toBe(58);
    });
  });

  test("a request that one limit refuses does not count for the other limits", async () => {
    await withLedger(async (_, gate) => {
      const key = limitedKey({ requestsPerMinute: 2 }, { concurrentRequests: 1 });
      const admission = admit(gate, key, NOON, null);
      for (let tries = 0; tries < 5; tries += 1)
        expect(() => admit(gate, key, NOON, null)).toThrow("at once");
      admission.release();
      admit(gate, key, NOON, null);
    });
  });
});

describe("P119: the limits of a session count each session by itself", () => {
  const inSession = (session: string) => ({ client: { tool: "codex", session } });
  const at = new Date(NOON).toISOString();

  async function spendIn(ledger: Ledger, id: string, usd: string, more: Partial<LineDraft>): Promise<void> {
    await bill(ledger, id, { time: at, charge_usd: usd, ...more });
  }

  test("the limits of a session count what the session has spent with any key, and say how to go on", async () => {
    await withLedger(async (ledger, gate) => {
      const key = limitedKey({ usdPerSession: "2" });
      await spendIn(ledger, "req_1", "1.5", inSession("a"));
      admit(gate, key, NOON, costing("0"), "a").release();
      await spendIn(ledger, "req_2", "0.5", { ...inSession("a"), key: "another" });
      await spendIn(ledger, "req_3", "9", inSession("b"));
      await spendIn(ledger, "req_4", "9", {});
      const refusal = refusalOf(() => admit(gate, key, NOON, costing("0"), "a"));
      expect(refusal.code).toBe("limit_spent");
      expect(refusal.message).toContain('The session "a" may spend $2 (usd_per_session) and has spent $2.');
      expect(refusal.message).toContain('Start a new session, or raise usd_per_session of the key "laptop".');
      admit(gate, key, NOON, costing("0"), "c");
    });
  });

  test("the limits of a session reserve for each session what its requests in flight may cost", async () => {
    await withLedger(async (_ledger, gate) => {
      const key = limitedKey({ usdPerSession: "2" }, { usdPerSession: "5" });
      const running = [
        admit(gate, key, NOON, costing("1.5"), "a"),
        admit(gate, key, NOON, costing("1.5"), "a"),
      ];
      const refusal = refusalOf(() => admit(gate, key, NOON, costing("1.5"), "a"));
      expect(refusal).toMatchObject({ code: "rate_limited", retrySeconds: 2 });
      admit(gate, key, NOON, costing("1.5"), "b").release();
      for (const each of running) each.release();
      admit(gate, key, NOON, costing("1.5"), "a");
    });
  });

  test("a session keeps the reservation of its running request, however many sessions come after it", () => {
    const gate = createGate({ spentOf: () => NOTHING, zone: UTC });
    const key = limitedKey({ usdPerSession: "2" });
    const running = admit(gate, key, NOON, costing("2"), "a");
    const later = NOON + 5 * 60_000;
    for (let count = 0; count <= 10_000; count += 1)
      admit(gate, key, later, costing("0"), `other-${count}`).release();
    expect(refusalOf(() => admit(gate, key, later, costing("0"), "a")).code).toBe("rate_limited");
    running.release();
    admit(gate, key, later, costing("0"), "a");
  });

  test("a session limit of a group counts what the session has spent with any key of the group", async () => {
    await withLedger(async (ledger, gate) => {
      await spendIn(ledger, "req_1", "2", inSession("a"));
      const other = limitedKey({}, { usdPerSession: "2" }, "other");
      const refusal = refusalOf(() => admit(gate, other, NOON, costing("0"), "a"));
      expect(refusal.message).toContain('raise usd_per_session of the group "claude"');
      admit(gate, other, NOON, costing("0"), "b");
    });
  });

  test.each([
    ["with an index of the ledger", false],
    ["without an index of the ledger", true],
  ])("%s, the limits of a session survive a restart", async (_, isLost) => {
    const path = newLedgerPath();
    const first = openLedger(optionsFor(path, { now: () => NOON }));
    await spendIn(first, "req_1", "1.25", inSession("a"));
    const unknown = {
      basis: "unknown",
      usage: {},
      prices: null,
      official_usd: null,
      charge_usd: null,
    } as const;
    void first.open(intentOf("req_2"));
    first.append(draftOf("req_2", { ...unknown, time: at, limit_usd: "0.75", ...inSession("a") }));
    void first.open(intentOf("req_3", { ...inSession("a"), limit_usd: "0.5" }));
    await first.close();
    if (!isLost) makeTable(path);
    // The third request was in flight when the gateway ended.
    const again = openLedger(optionsFor(path, { now: () => NOON }));
    const holder = { kind: "session", name: "a" } as const;
    expect(formatUsd(again.sums.spentOf(holder, "total").charged)).toBe("1.25");
    expect(formatUsd(again.sums.spentOf(holder, "total").estimated)).toBe("1.25");
    expect(again.sums.sessionOf("a")).toMatchObject({ requests: 3, key: "laptop", input: 1_000_000 });
    const refusal = refusalOf(() =>
      admit(createGate(again.sums), limitedKey({ usdPerSession: "2.5" }), NOON, costing("0"), "a"),
    );
    expect(refusal.message).toContain("has spent $1.25 and $1.25 estimated");
    await again.close();
  });

  test("requests per minute are counted for each session by itself", async () => {
    await withLedger(async (_, gate) => {
      const key = limitedKey({ requestsPerMinutePerSession: 1 });
      admit(gate, key, NOON, null, "a").release();
      const refusal = refusalOf(() => admit(gate, key, NOON + 1000, null, "a"));
      expect(refusal).toMatchObject({ code: "rate_limited", retrySeconds: 59 });
      expect(refusal.message).toContain("(requests_per_minute_per_session)");
      admit(gate, key, NOON + 1000, null, "b").release();
      admit(gate, key, NOON + 60_000, null, "a").release();
    });
  });

  test("a correction changes what a session has spent, but does not bring back a forgotten session", async () => {
    await withLedger(async (ledger, gate) => {
      await spendIn(ledger, "req_1", "1", inSession("a"));
      const { key, group, platform, channel, model, price_source, tier, usage, prices, multiplier } =
        chargedOf("req_1", { charge_usd: "3" });
      const correction = {
        key,
        group,
        platform,
        channel,
        model,
        price_source,
        tier,
        usage,
        prices,
        multiplier,
      };
      const amounts = { official_usd: "3", charge_usd: "3", was: { official_usd: "1", charge_usd: "1" } };
      for (const [corrects, session] of [
        ["req_1", "a"],
        ["req_0", "old"],
      ] as const)
        ledger.correct({
          id: `cor_${corrects}`,
          time: at,
          corrects,
          request_time: at,
          ...correction,
          ...amounts,
          ...inSession(session),
        });
      expect(formatUsd(ledger.sums.spentOf({ kind: "session", name: "a" }, "total").charged)).toBe("3");
      expect(ledger.sums.sessionOf("old")).toBe(null);
      expect(
        refusalOf(() => admit(gate, limitedKey({ usdPerSession: "3" }), NOON, costing("0"), "a")).code,
      ).toBe("limit_spent");
    });
  });
});
