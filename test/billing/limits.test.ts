import { describe, expect, test } from "bun:test";

import { openLedger, type Ledger } from "../../src/billing/ledger/ledger.ts";
import { createGate, type Gate } from "../../src/billing/limits.ts";
import type { Group, Key, Limits } from "../../src/config/catalog.ts";
import { GatewayError } from "../../src/lib/errors.ts";
import { draftOf, intentOf, newLedgerPath, optionsFor } from "./ledger/ledger-samples.ts";

const NONE: Limits = {
  usdPerDay: null,
  usdPerMonth: null,
  usdTotal: null,
  requestsPerMinute: null,
  concurrentRequests: null,
};

const NOON = Date.parse("2026-11-20T12:00:00Z");

function keyWith(own: Partial<Limits>, group: Partial<Limits> = {}, name = "laptop"): Key {
  const bound: Group = {
    name: "claude",
    platform: "messages",
    multiplier: "1",
    description: "",
    channels: [],
    exclusive: false,
    plans: [],
    limits: { ...NONE, ...group },
  };
  return {
    name,
    group: bound,
    secretSha256: "",
    created: null,
    disabled: false,
    expires: null,
    limits: { ...NONE, ...own },
  };
}

/** A ledger at a fixed moment, in which requests cost what they are told to. */
async function withLedger(
  use: (ledger: Ledger, gate: Gate, spend: (usd: string, time?: string) => Promise<void>) => Promise<void>,
  now = NOON,
): Promise<void> {
  const ledger = openLedger(optionsFor(newLedgerPath(), { now: () => now }));
  let count = 0;
  const spend = async (usd: string, time = new Date(now).toISOString()): Promise<void> => {
    count += 1;
    await ledger.open(intentOf(`req_${count}`));
    ledger.append(draftOf(`req_${count}`, { time, charge_usd: usd }));
  };
  await use(ledger, createGate(ledger), spend);
  await ledger.close();
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

describe("a USD limit", () => {
  test("per day: the refusal names the limit, the sum and the reset, and it ends at UTC midnight", async () => {
    await withLedger(async (_, gate, spend) => {
      await spend("4.999999999999");
      const key = keyWith({ usdPerDay: "5" });
      gate.admit(key, NOON, null).release();
      await spend("0.000000000001");
      const refusal = refusalOf(() => gate.admit(key, NOON, null));
      expect(refusal.code).toBe("limit_spent");
      expect(refusal.message).toBe(
        'The key "laptop" may spend $5 (usd_per_day) and has spent $5. It resets at 2026-11-21T00:00:00Z.',
      );
      expect(refusal.retryAfterSeconds).toBe(12 * 3600);
    });
    await withLedger(async (_, gate, spend) => {
      await spend("100", "2026-11-20T23:59:59.999Z");
      gate.admit(keyWith({ usdPerDay: "5" }), Date.parse("2026-11-21T00:00:00Z"), null);
    }, Date.parse("2026-11-21T00:00:00Z"));
  });

  test("per day, in its last second: retry-after is never less than one second", async () => {
    const late = Date.parse("2026-12-31T23:59:59.500Z");
    await withLedger(async (_, gate, spend) => {
      await spend("5");
      const day = refusalOf(() => gate.admit(keyWith({ usdPerDay: "5" }), late, null));
      const month = refusalOf(() => gate.admit(keyWith({ usdPerMonth: "5" }), late, null));
      expect([day.retryAfterSeconds, month.retryAfterSeconds]).toEqual([1, 1]);
      for (const { message } of [day, month]) expect(message).toContain("It resets at 2027-01-01T00:00:00Z.");
    }, late);
  });

  test("per day, for a key that has limits of every kind", async () => {
    await withLedger(async (_, gate, spend) => {
      await spend("5");
      const many = { requestsPerMinute: 99, concurrentRequests: 99, usdPerMonth: "99", usdTotal: "99" };
      const refusal = refusalOf(() => gate.admit(keyWith({ ...many, usdPerDay: "5" }), NOON, null));
      expect(refusal.message).toContain("(usd_per_day)");
    });
  });

  test("per month and in total, for the group as for the key", async () => {
    await withLedger(async (_, gate, spend) => {
      await spend("3", "2026-11-01T00:00:00.000Z");
      await spend("4", "2026-10-31T00:00:00.000Z");
      gate.admit(keyWith({ usdPerMonth: "3.01", usdTotal: "7.01" }), NOON, null);
      const month = refusalOf(() => gate.admit(keyWith({}, { usdPerMonth: "3" }), NOON, null));
      expect(month.message).toContain(
        'The group "claude" may spend $3 (usd_per_month) and has spent $3. It resets at 2026-12-01T00:00:00Z.',
      );
      const total = refusalOf(() => gate.admit(keyWith({ usdTotal: "7" }), NOON, null));
      expect(total.message).toContain("(usd_total) and has spent $7. This limit does not reset.");
      expect(total.retryAfterSeconds).toBe(86_400);
      // Another key of the group has spent nothing itself.
      gate.admit(keyWith({ usdTotal: "7" }, {}, "other"), NOON, null);
    });
  });

  test("survives a restart", async () => {
    const path = newLedgerPath();
    const options = optionsFor(path, { now: () => NOON });
    const first = openLedger(options);
    await first.open(intentOf("req_1"));
    first.append(draftOf("req_1", { charge_usd: "5" }));
    await first.close();
    const second = openLedger(options);
    expect(refusalOf(() => createGate(second).admit(keyWith({ usdPerDay: "5" }), NOON, null)).code).toBe(
      "limit_spent",
    );
    await second.close();
  });

  test("parallel requests exceed it by at most the last one let in", async () => {
    await withLedger(async (_, gate, spend) => {
      const key = keyWith({ usdPerDay: "5" });
      const running = Array.from({ length: 4 }, () => gate.admit(key, NOON, "1.5"));
      const refusal = refusalOf(() => gate.admit(key, NOON, "1.5"));
      expect(refusal.code).toBe("rate_limited");
      expect(refusal.message).toContain("has spent $0; up to $6 more is reserved by 4 requests in flight");
      expect(refusal.retryAfterSeconds).toBe(2);
      await spend("1.5");
      for (const admission of running.slice(1)) {
        admission.release();
        admission.release();
      }
      // 1.5 is spent and 1.5 reserved by the one that still runs.
      gate.admit(key, NOON, "1.5");
      gate.admit(key, NOON, "1.5");
      expect(refusalOf(() => gate.admit(key, NOON, "1.5")).message).toContain("has spent $1.5; up to $4.5");
    });
  });
});

describe("a rate limit", () => {
  test("requests per minute: a sliding minute, with the seconds until the next is free", async () => {
    await withLedger(async (_, gate) => {
      const key = keyWith({ requestsPerMinute: 3 });
      for (const second of [0, 10, 20]) gate.admit(key, NOON + second * 1000, null).release();
      const refusal = refusalOf(() => gate.admit(key, NOON + 30_000, null));
      expect(refusal.code).toBe("rate_limited");
      expect(refusal.retryAfterSeconds).toBe(30);
      expect(refusal.message).toContain(
        "3 requests a minute (requests_per_minute), and has made 3 in the last one: try again in 30 s.",
      );
      expect(refusalOf(() => gate.admit(key, NOON + 59_999, null)).retryAfterSeconds).toBe(1);
      gate.admit(key, NOON + 60_000, null);
      expect(refusalOf(() => gate.admit(key, NOON + 60_000, null)).retryAfterSeconds).toBe(10);
      // A lowered limit counts from the requests that would still be too many.
      const lower = keyWith({ requestsPerMinute: 1 });
      expect(refusalOf(() => gate.admit(lower, NOON + 60_000, null)).retryAfterSeconds).toBe(60);
    });
  });

  test("requests per minute: requests at one instant all count, and one a minute means one a minute", async () => {
    await withLedger(async (_, gate) => {
      const key = keyWith({ requestsPerMinute: 3 });
      for (const _each of [1, 2, 3]) gate.admit(key, NOON, null).release();
      expect(refusalOf(() => gate.admit(key, NOON, null)).retryAfterSeconds).toBe(60);
      const slow = keyWith({ requestsPerMinute: 1 }, {}, "slow");
      for (const minute of [0, 1, 2]) gate.admit(slow, NOON + minute * 60_000, null).release();
      expect(refusalOf(() => gate.admit(slow, NOON + 179_999, null)).retryAfterSeconds).toBe(1);
    });
  });

  test("requests per minute: a clock that is set back refuses nobody for longer than a minute", async () => {
    await withLedger(async (_, gate) => {
      const key = keyWith({ requestsPerMinute: 2 });
      for (const second of [0, 1]) gate.admit(key, NOON + second * 1000, null).release();
      const before = NOON - 3_600_000;
      for (const second of [0, 1]) gate.admit(key, before + second * 1000, null).release();
      expect(refusalOf(() => gate.admit(key, before + 2000, null)).retryAfterSeconds).toBe(58);
    });
  });

  test("requests per minute: those before a restart count", async () => {
    const path = newLedgerPath();
    const now = Date.now();
    const first = openLedger(optionsFor(path));
    for (const [id, ago] of [
      ["old", 61_000],
      ["late", 5000],
      ["early", 30_000],
    ] as const) {
      await first.open(intentOf(id));
      first.append(draftOf(id, { time: new Date(now - ago).toISOString() }));
    }
    await first.close();
    const second = openLedger(optionsFor(path, { now: () => now }));
    const gate = createGate(second);
    expect(refusalOf(() => gate.admit(keyWith({ requestsPerMinute: 2 }), now, null)).retryAfterSeconds).toBe(
      30,
    );
    gate.admit(keyWith({ requestsPerMinute: 3 }), now, null);
    await second.close();
  });

  test("concurrent requests: the next one is let in when another has ended", async () => {
    await withLedger(async (_, gate) => {
      const key = keyWith({}, { concurrentRequests: 2 });
      const first = gate.admit(key, NOON, null);
      gate.admit(key, NOON, null);
      const refusal = refusalOf(() => gate.admit(key, NOON, null));
      expect(refusal.code).toBe("rate_limited");
      expect(refusal.message).toContain(
        'The group "claude" may have 2 requests at once (concurrent_requests)',
      );
      first.release();
      first.release();
      gate.admit(key, NOON, null);
      expect(() => gate.admit(key, NOON, null)).toThrow(GatewayError);
    });
  });

  test("a request that one limit refuses does not count for the others", async () => {
    await withLedger(async (_, gate) => {
      const key = keyWith({ requestsPerMinute: 2 }, { concurrentRequests: 1 });
      const admission = gate.admit(key, NOON, null);
      for (let tries = 0; tries < 5; tries += 1) expect(() => gate.admit(key, NOON, null)).toThrow("at once");
      admission.release();
      gate.admit(key, NOON, null);
    });
  });
});
