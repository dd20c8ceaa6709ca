// Requests that wait for room: who comes first, how a wait ends, and what a refusal after it says.

import { describe, expect, test } from "bun:test";

import {
  type Admission,
  type Cost,
  createGate,
  type Gate,
  type NoRoom,
} from "../../../src/billing/limits/limits.ts";
import { MAX_WAIT_MS, WaitingRequests } from "../../../src/billing/limits/waiting.ts";
import type { Key } from "../../../src/config/catalog.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import { parseUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { UTC } from "../../../src/lib/text/zone.ts";
import { limitedKey } from "./simulated-sessions.ts";

const NOON = Date.parse("2026-11-20T12:00:00Z");

interface Asked {
  readonly usd?: string;
  /** What it may well cost, unproven and proven. */
  readonly most?: readonly [string, string];
  readonly seconds?: number | null;
}

const LARGE: Asked = { most: ["6", "6"] };

function costing({ usd = "1", most = [usd, usd], seconds = null }: Asked): Cost {
  const forecast = { expected: usd, most: (isProven: boolean) => most[isProven ? 1 : 0] };
  return { model: "m", expect: () => forecast, bound: () => usd, seconds: () => seconds };
}

/** A limit of $4, of which `spent` is spent, and timers that the test lets expire. */
function openLimit(usd = "4") {
  const state = { now: NOON, spent: ZERO_USD };
  const timers = new Set<() => void>();
  const waiting = new WaitingRequests((ms, expire) => {
    expect(ms).toBe(MAX_WAIT_MS);
    timers.add(expire);
    return () => void timers.delete(expire);
  });
  const ledger = { spentOf: () => state.spent, estimatedOf: () => ZERO_USD, recentOf: () => [], zone: UTC };
  const gate = createGate(ledger, undefined, () => waiting.freed());
  const key = limitedKey({ usdTotal: usd });
  const ask = (asked: Asked = {}, hasWaited = false, of: Key = key) =>
    gate.admit(of, state.now, costing(asked), { hasWaited });
  const hold = (asked: Asked = {}, of: Key = key) => {
    const place = ask(asked, false, of);
    if (!("noRoom" in place)) throw new Error("it was let in");
    return waiting.hold(place, () => ask(asked, true, of))!;
  };
  const expire = (): void => {
    const [first] = timers;
    first?.();
  };
  return { state, timers, waiting, gate, key, ask, hold, expire };
}

function enter(place: Admission | NoRoom): Admission {
  if ("noRoom" in place) throw place.noRoom;
  return place;
}

/** Whether a promise is settled already. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  return Bun.peek.status(promise) !== "pending";
}

const errorOf = (promise: Promise<unknown>): Promise<GatewayError> =>
  promise.then(
    () => Promise.reject(new Error("it was let in")),
    (error: GatewayError) => error,
  );

describe("a request without room", () => {
  test("is let in when one in flight has ended, the first one first", async () => {
    const { ask, hold, waiting } = openLimit();
    const running = [1, 2, 3, 4].map(() => enter(ask()));
    const [first, second] = [hold(), hold()];
    running[0]!.release();
    expect([await isDone(first.admitted), await isDone(second.admitted), waiting.size]).toEqual([
      true,
      false,
      1,
    ]);
    running[1]!.release();
    expect([await isDone(second.admitted), waiting.size]).toEqual([true, 0]);
  });

  test("comes before those that arrive later, and before larger and smaller ones", async () => {
    const { ask, hold } = openLimit();
    const running = [LARGE, {}, {}].map((asked) => enter(ask(asked)));
    // Beside another large one there is no room for it. There is for a small one.
    const large = hold(LARGE);
    const small = hold({ usd: "0.01" });
    for (const each of running.slice(1)) each.release();
    expect([await isDone(large.admitted), await isDone(small.admitted)]).toEqual([false, false]);
    running[0]!.release();
    expect([await isDone(large.admitted), await isDone(small.admitted)]).toEqual([true, true]);
  });

  test("does not keep another key waiting", async () => {
    const { ask, hold } = openLimit();
    for (let count = 0; count < 4; count += 1) enter(ask());
    hold();
    const other = limitedKey({ usdTotal: "4" }, {}, "other");
    enter(ask({}, false, other));
    // A key without a limit in USD does not come here at all.
    enter(ask({}, false, limitedKey({ requestsPerMinute: 9 }, {}, "free")));
  });

  test("is refused after five seconds, with a time in which there may be room", async () => {
    const { ask, hold, expire, state, timers } = openLimit();
    for (let count = 0; count < 4; count += 1) enter(ask({ seconds: 7 }));
    const held = hold({ seconds: 7 });
    const behind = hold({ seconds: 7 });
    state.now += MAX_WAIT_MS;
    expire();
    const error = await errorOf(held.admitted);
    expect([error.code, error.retryAfterSeconds]).toEqual(["rate_limited", 7]);
    expect(error.message).toContain(
      "up to $4 more is reserved by 4 requests in flight: try again when one has ended",
    );
    expect([await isDone(behind.admitted), timers.size]).toEqual([false, 1]);
  });

  test("asks once more before it is refused", async () => {
    const { ask, hold, expire, state } = openLimit();
    for (let count = 0; count < 4; count += 1) enter(ask());
    const held = hold();
    // A correction, or a new day: nothing has ended.
    state.spent = parseUsd("-1");
    expire();
    enter(await held.admitted);
  });

  test("is refused at once when the limit is spent meanwhile", async () => {
    const { ask, hold, state, waiting } = openLimit();
    const running = [1, 2, 3, 4].map(() => enter(ask()));
    const held = hold();
    state.spent = parseUsd("4");
    running[0]!.release();
    expect((await errorOf(held.admitted)).code).toBe("limit_spent");
    expect(waiting.size).toBe(0);
  });

  test("waits no more when its client has left, and those behind it come up", async () => {
    const { ask, hold, waiting, timers } = openLimit();
    enter(ask(LARGE));
    const left = hold(LARGE);
    const behind = hold({ usd: "0.01" });
    const gone = new GatewayError("client_gone", "The client disconnected.");
    left.end(gone);
    left.end(gone);
    expect(await errorOf(left.admitted)).toBe(gone);
    enter(await behind.admitted);
    expect([waiting.size, timers.size]).toEqual([0, 0]);
  });

  test("is one of at most a thousand", () => {
    const { ask, hold, waiting } = openLimit();
    for (let count = 0; count < 4; count += 1) enter(ask());
    for (let count = 0; count < 1000; count += 1) void hold().admitted.catch(() => {});
    expect([() => hold(), waiting.size]).toEqual([expect.any(Function), 1000]);
    const place = ask();
    expect("noRoom" in place && waiting.hold(place, () => ask({}, true))).toBe(null);
  });
});

describe("how long a refused client waits", () => {
  const waitOf = (place: ReturnType<Gate["admit"]>): number | null | undefined =>
    "noRoom" in place ? place.noRoom.retryAfterSeconds : undefined;

  test.each([
    [null, 0, 2],
    [0.3, 0, 2],
    [12.4, 0, 13],
    [300, 0, 55],
    [null, 8, 8],
    [12.4, 40, 40],
  ])(
    "is the time of the model's answers (%p s), or of those in flight (%d s): %d s",
    (seconds, age, wait) => {
      const { ask, state } = openLimit();
      for (let count = 0; count < 4; count += 1) enter(ask());
      state.now += age * 1000;
      expect(waitOf(ask({ seconds }))).toBe(wait);
    },
  );

  test("is longer where others wait before it", () => {
    const { ask, hold } = openLimit();
    for (let count = 0; count < 4; count += 1) enter(ask());
    for (let count = 0; count < 9; count += 1) void hold({ seconds: 5 }).admitted.catch(() => {});
    // Four at once, nine before it: two whole turns, and its own.
    expect(waitOf(ask({ seconds: 5 }))).toBe(15);
  });
});

describe("what requests at once may well cost together", () => {
  test("is at most twice the limit, or the limit and the dearest of them; one alone is let in", () => {
    const { ask } = openLimit();
    const one = { usd: "0.1", most: ["3", "3"] } as const;
    const first = enter(ask({ usd: "0.1", most: ["9", "9"] }));
    // 9 and 3 are more than 8, but without the dearest less than 4.
    const second = enter(ask(one));
    expect("noRoom" in ask(one)).toBe(true);
    first.release();
    const third = enter(ask(one));
    expect("noRoom" in ask(one)).toBe(true);
    second.release();
    third.release();
  });

  test("is what answers say that came while others were refused, for a minute, for four times as many", () => {
    const { ask, state } = openLimit();
    const asked = { usd: "0.01", most: ["4", "0.5"] } as const;
    const before = [enter(ask(asked)), enter(ask(asked))];
    // Two at once had their whole answers, while nobody was refused.
    for (const each of before) each.release(true);
    const pair = [enter(ask(asked)), enter(ask(asked))];
    expect("noRoom" in ask(asked)).toBe(true);
    for (const each of pair) each.release(true);
    // Now two show what eight may be like.
    const many = Array.from({ length: 8 }, () => enter(ask(asked)));
    // Another one may cost as much as ever, for which there is room.
    many.push(enter(ask(asked)));
    expect("noRoom" in ask(asked)).toBe(true);
    for (const each of many) each.release(true);
    state.now += 60_001;
    for (let count = 0; count < 2; count += 1) enter(ask(asked));
    expect("noRoom" in ask(asked)).toBe(true);
  });

  test("is not what broken answers say", () => {
    const { ask } = openLimit();
    const asked = { usd: "0.01", most: ["4", "0.1"] } as const;
    const pair = [enter(ask(asked)), enter(ask(asked))];
    expect("noRoom" in ask(asked)).toBe(true);
    for (const each of pair) each.release(false);
    for (let count = 0; count < 2; count += 1) enter(ask(asked));
    expect("noRoom" in ask(asked)).toBe(true);
  });
});
