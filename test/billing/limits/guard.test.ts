// Limits on what an agent does: `same_call` and `agents`, of a key and of its group.

import { describe, expect, test } from "bun:test";
import type { AgentIds } from "../../../src/billing/limits/agents.ts";
import type { CountWarning } from "../../../src/billing/limits/stops.ts";
import { createGuard } from "../../../src/billing/limits/guard.ts";
import type { Key, Limits } from "../../../src/config/catalog.ts";
import { GatewayError } from "../../../src/lib/errors.ts";

const NONE: Limits = {
  usdPerDay: null,
  usdPerMonth: null,
  usdTotal: null,
  usdPerSession: null,
  requestsPerMinute: null,
  requestsPerMinutePerSession: null,
  concurrentRequests: null,
  sameCall: null,
  agents: null,
  strict: false,
  allowUnpriced: false,
};

const MINUTE = 60_000;

function keyWith(limits: Partial<Limits>, ofGroup: Partial<Limits> = {}): Key {
  return {
    name: "k",
    group: {
      name: "g",
      platform: "messages",
      multiplier: "1",
      channels: [],
      description: "",
      exclusive: false,
      convert: false,
      listed: [],
      defaultModel: null,
      otherPaths: null,
      cache: null,
      plans: [],
      usesLogin: false,
      crosses: false,
      limits: { ...NONE, ...ofGroup },
    },
    secretSha256: "",
    created: null,
    disabled: false,
    expires: null,
    limits: { ...NONE, ...limits },
  };
}

/** A guard with a clock of its own. */
function openGuard(key: Key) {
  const reported: CountWarning[] = [];
  const clock = { now: 0 };
  const guard = createGuard({ report: (warning) => reported.push(warning), now: () => clock.now });
  const enter = (client: AgentIds, sameCalls = 0): (() => void) | null =>
    guard.enter(key, { client: { session: "s", ...client }, sameCalls: () => sameCalls }, clock.now);
  const refusal = (client: AgentIds, sameCalls = 0): GatewayError | null => {
    try {
      enter(client, sameCalls)?.();
      return null;
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  };
  return { reported, clock, enter, refusal };
}

describe("same_call", () => {
  test("refuses from the Nth repetition on, with a 429 that nobody should repeat", () => {
    const { refusal, reported } = openGuard(keyWith({ sameCall: 3 }));
    expect([0, 1, 2].map((count) => refusal({}, count))).toEqual([null, null, null]);
    const error = refusal({}, 3);
    expect([error?.code, error?.status]).toEqual(["limit_spent", 429]);
    expect(error?.message).toContain("(same_call)");
    expect(refusal({}, 4)?.code).toBe("limit_spent");
    expect(reported[0]).toEqual({
      holder: { kind: "session", name: "s" },
      limit: "same_call",
      count: 3,
      percent: 100,
      resets: null,
    });
  });

  test("the smaller one of key and group counts", () => {
    const { refusal } = openGuard(keyWith({ sameCall: 9 }, { sameCall: 2 }));
    expect(refusal({}, 1)).toBeNull();
    expect(refusal({}, 2)?.message).toContain('the group "g"');
  });

  test("the body is not read if no limit needs it", () => {
    const guard = createGuard({ report: () => {}, now: () => 0 });
    const sameCalls = (): number => {
      throw new Error("read");
    };
    expect(guard.enter(keyWith({}), { client: { session: "s" }, sameCalls }, 0)).toBeNull();
    expect(guard.enter(keyWith({ agents: 2 }), { client: { session: "s" }, sameCalls }, 0)).toBeNull();
  });
});

describe("agents", () => {
  test("the main agent is one of them, and is never refused", () => {
    const { enter, refusal } = openGuard(keyWith({ agents: 2 }));
    enter({});
    enter({ agent: "a" });
    expect(refusal({ agent: "b" })?.message).toContain("may have 2 agents open at once");
    expect(refusal({ agent: "a" })).toBeNull();
    expect(refusal({})).toBeNull();
    expect(refusal({ session: "other", agent: "b" })).toBeNull();
  });

  test("an agent is open while a request runs, and for five minutes after it", () => {
    const { clock, enter, refusal } = openGuard(keyWith({ agents: 2 }));
    const leave = enter({ agent: "a" });
    clock.now += 60 * MINUTE;
    expect(refusal({ agent: "b" })).not.toBeNull();
    leave?.();
    leave?.();
    clock.now += 5 * MINUTE - 1;
    expect(refusal({ agent: "b" })).not.toBeNull();
    clock.now += 1;
    expect(refusal({ agent: "b" })).toBeNull();
    expect(refusal({ agent: "a" })).not.toBeNull();
  });

  test("a clock that is set back does not keep agents open that have ended", () => {
    const { clock, enter, refusal } = openGuard(keyWith({ agents: 2 }));
    clock.now = 60 * MINUTE;
    enter({ agent: "a" })?.();
    clock.now -= 5 * MINUTE - 1;
    expect(refusal({ agent: "b" })).not.toBeNull();
    clock.now -= 1;
    expect(refusal({ agent: "b" })).toBeNull();
  });

  test("an agent is open while one that it started is", () => {
    const { clock, enter, refusal } = openGuard(keyWith({ agents: 3 }));
    enter({ agent: "a" })?.();
    const leave = enter({ agent: "b", parent: "a" });
    clock.now += 60 * MINUTE;
    expect(refusal({ agent: "c" })).not.toBeNull();
    expect(refusal({ agent: "a" })).toBeNull();
    leave?.();
    clock.now += 5 * MINUTE;
    expect(refusal({ agent: "c" })).toBeNull();
  });

  test("agents that name each other as parents end too", () => {
    const { clock, enter, refusal } = openGuard(keyWith({ agents: 3 }));
    enter({ agent: "a", parent: "b" })?.();
    enter({ agent: "b", parent: "a" })?.();
    enter({ agent: "b", parent: "b" })?.();
    clock.now += 5 * MINUTE;
    expect(refusal({ agent: "c" })).toBeNull();
    expect(refusal({ agent: "d" })).toBeNull();
  });

  test("agents with sessions of their own belong to the session that started them", () => {
    const { enter, refusal } = openGuard(keyWith({ agents: 3 }));
    enter({ session: "s" });
    enter({ session: "one", parent: "s" });
    enter({ session: "two", parent: "one" });
    expect(refusal({ session: "three", parent: "s" })).not.toBeNull();
    expect(refusal({ session: "three", parent: "two" })).not.toBeNull();
    expect(refusal({ session: "three" })).toBeNull();
  });

  test("the agents of a group's sessions are counted apart from those of its keys", () => {
    const { enter, refusal, reported } = openGuard(keyWith({ agents: 4 }, { agents: 2 }));
    enter({ agent: "a" });
    expect(refusal({ agent: "b" })?.message).toContain('group "g"');
    expect(reported).toHaveLength(1);
  });
});
