// Failures, trials and cooldowns of one channel, step by step.

import { describe, expect, test } from "bun:test";
import {
  type ChannelMemory,
  createMemory,
  admittanceOf,
  endTrial,
  noteAnswer,
  noteBreak,
  noteFailure,
  noteWhole,
  renewMemory,
  cooldownOf,
  startTrial,
  endCooldowns,
} from "../../../src/gateway/channels/cooldown.ts";
import { blame, type Failure } from "../../../src/gateway/upstream/failure-rules.ts";

const START = Date.parse("2026-11-20T10:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const failing = (status: number, waitMs: number | null = null): Failure => ({
  ...blame("a", status, "said"),
  waitMs,
});

/** `chance` 1: the whole guessed cooldown. */
function fail(memory: ChannelMemory, failure: Failure, now: number, { model = "m", chance = 1 } = {}): void {
  noteFailure(memory, { failure, model, now, random: () => chance });
}
const breakOff = (memory: ChannelMemory, now: number): void =>
  noteBreak(memory, { failure: failing(500), model: "m", now, random: () => 1 });
const waitOf = (memory: ChannelMemory, now: number, model = "m"): number | null => {
  const cooldown = cooldownOf(memory, model, now);
  return cooldown === null ? null : cooldown.until - now;
};

describe("a failure", () => {
  test.each([
    { status: 401, whole: true, state: "unavailable", strikes: 1, first: 5000, longest: 5 * MINUTE },
    { status: 402, whole: true, state: "unavailable", strikes: 1, first: 30_000, longest: 10 * MINUTE },
    { status: 407, whole: true, state: "unavailable", strikes: 1, first: 1000, longest: MINUTE },
    { status: 429, whole: false, state: "resting", strikes: 1, first: 2000, longest: MINUTE },
    { status: 503, whole: false, state: "resting", strikes: 1, first: 1000, longest: MINUTE / 2 },
    { status: 529, whole: false, state: "resting", strikes: 1, first: 1000, longest: MINUTE / 2 },
    { status: 504, whole: false, state: "resting", strikes: 1, first: 5000, longest: MINUTE },
    { status: 500, whole: true, state: "resting", strikes: 3, first: 1000, longest: MINUTE },
    { status: 302, whole: true, state: "resting", strikes: 3, first: 1000, longest: MINUTE },
  ] as const)(
    "with $status starts a cooldown of $first ms, which doubles each time up to $longest ms",
    (row) => {
      const memory = createMemory("a", "id");
      let now = START;
      for (let strike = 1; strike < row.strikes; strike += 1) {
        fail(memory, failing(row.status), now);
        expect(admittanceOf(memory, "m", now)).toBe("open");
      }
      fail(memory, failing(row.status), now);
      expect(cooldownOf(memory, "m", now)).toMatchObject({
        state: row.state,
        since: START,
        untilIsGiven: false,
      });
      expect(admittanceOf(memory, "m", now)).toBe("trial");
      expect(admittanceOf(memory, "other", now)).toBe(row.whole ? "trial" : "open");
      for (let again = 0; again < 12; again += 1) {
        const wait = Math.min(row.longest, row.first * 2 ** again);
        expect([again, waitOf(memory, now)]).toEqual([again, wait]);
        expect(admittanceOf(memory, "m", now + wait - 1)).toBe("trial");
        now += wait;
        expect(admittanceOf(memory, "m", now)).toBe("open");
        fail(memory, failing(row.status), now);
      }
    },
  );

  test("makes half of the cooldown random", () => {
    for (const [chance, wait] of [
      [0, 15_000],
      [0.5, 22_500],
      [1, 30_000],
    ] as const) {
      const memory = createMemory("a", "id");
      fail(memory, failing(402), START, { chance });
      expect(waitOf(memory, START)).toBe(wait);
    }
  });

  test.each([
    [1, 1],
    [30_000, 30_000],
    [HOUR, HOUR],
    [10 * HOUR, HOUR],
  ])("whose upstream asks for %d ms closes the channel for %d ms, even the first time", (askedMs, wait) => {
    for (const status of [429, 500]) {
      const memory = createMemory("a", "id");
      fail(memory, failing(status, askedMs), START);
      expect([waitOf(memory, START), admittanceOf(memory, "m", START)]).toEqual([wait, "closed"]);
      expect(admittanceOf(memory, "m", START + wait - 1)).toBe("closed");
      expect(admittanceOf(memory, "m", START + wait)).toBe("open");
    }
  });

  test("of a request sent before the cooldown neither counts nor shortens the cooldown", () => {
    for (const status of [401, 429]) {
      const memory = createMemory("a", "id");
      fail(memory, failing(status), START);
      const wait = waitOf(memory, START) ?? 0;
      fail(memory, failing(status), START + 1);
      // As long as the first one, from now on.
      expect(waitOf(memory, START + 1)).toBe(wait);
      fail(memory, failing(status), START + 2, { chance: 0 });
      expect(waitOf(memory, START + 2)).toBe(wait - 1);
      expect(cooldownOf(memory, "m", START + 2)?.since).toBe(START);
      const end = START + 1 + wait;
      fail(memory, failing(status), end);
      expect(waitOf(memory, end)).toBe(2 * wait);
    }
  });

  test("is remembered for the last 64 models", () => {
    const memory = createMemory("a", "id");
    for (let model = 0; model < 64; model += 1) fail(memory, failing(429), START, { model: `m${model}` });
    fail(memory, failing(429), START, { model: "m0" });
    expect(memory.models.size).toBe(64);
    fail(memory, failing(429), START, { model: "more" });
    expect(memory.models.size).toBe(64);
    expect(["m0", "m1", "m2", "more"].map((model) => admittanceOf(memory, model, START))).toEqual([
      "trial",
      "open",
      "trial",
      "trial",
    ]);
  });
});

describe("a trial", () => {
  test.each([
    [401, "the channel"],
    [429, "a model"],
  ])("after a %d is one request at a time: of %s", (status) => {
    const memory = createMemory("a", "id");
    fail(memory, failing(status), START);
    startTrial(memory, "m", START);
    expect(admittanceOf(memory, "m", START + 1999)).toBe("closed");
    expect(admittanceOf(memory, "m", START + 2000)).toBe(status === 401 ? "trial" : "open");
    endTrial(memory, "m");
    expect(admittanceOf(memory, "m", START + 1)).toBe("trial");
  });

  test("that fails counts as a further failure and ends", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(401), START);
    startTrial(memory, "m", START);
    fail(memory, failing(401), START + 1000);
    expect(waitOf(memory, START + 1000)).toBe(10_000);
    expect(admittanceOf(memory, "m", START + 1000)).toBe("trial");
  });

  test("that goes on after the cooldown's time keeps requests away only where another channel is left", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(503), START);
    startTrial(memory, "m", START + 999);
    expect(admittanceOf(memory, "m", START + 999)).toBe("closed");
    expect(admittanceOf(memory, "m", START + 1001)).toBe("trial");
    expect(admittanceOf(memory, "m", START + 2999)).toBe("open");
  });

  test("does not happen while the upstream has named the time to wait", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(429, 1000), START);
    startTrial(memory, "m", START);
    expect(admittanceOf(memory, "m", START + 1000)).toBe("open");
  });
});

describe("a response", () => {
  test("ends a guessed cooldown of the channel and of its model, but not one that the upstream requested", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(401), START);
    fail(memory, failing(429), START, { model: "m" });
    fail(memory, failing(429), START, { model: "other" });
    noteAnswer(memory, "m", 5, START + 1);
    expect([admittanceOf(memory, "m", START + 1), admittanceOf(memory, "other", START + 1)]).toEqual([
      "open",
      "trial",
    ]);
    noteAnswer(memory, "other", 5, START + 2);
    expect(memory).toMatchObject({ cooldown: null, strikes: 0, lastAnswer: START + 2 });
    for (const status of [401, 429]) {
      fail(memory, failing(status, MINUTE), START + 3);
      noteAnswer(memory, "m", 5, START + 4);
      noteAnswer(memory, null, 5, START + 4);
      expect(admittanceOf(memory, "m", START + 4)).toBe("closed");
      noteAnswer(memory, "m", 5, START + 3 + MINUTE);
      expect(admittanceOf(memory, "m", START + 3 + MINUTE)).toBe("open");
    }
  });

  test("resets the count of failures in a row", () => {
    const memory = createMemory("a", "id");
    for (let round = 0; round < 5; round += 1) {
      fail(memory, failing(500), START);
      fail(memory, failing(500), START);
      noteAnswer(memory, "m", 5, START);
    }
    expect(admittanceOf(memory, "m", START)).toBe("open");
  });
});

describe("responses that break off", () => {
  test("three in a row start a cooldown, in which a trial excludes no other request", () => {
    const memory = createMemory("a", "id");
    breakOff(memory, START);
    breakOff(memory, START);
    noteWhole(memory);
    breakOff(memory, START);
    breakOff(memory, START);
    expect(admittanceOf(memory, "m", START)).toBe("open");
    breakOff(memory, START);
    expect([admittanceOf(memory, "m", START), waitOf(memory, START)]).toEqual(["trial", 1000]);
    startTrial(memory, "m", START);
    expect(admittanceOf(memory, "m", START)).toBe("trial");
    breakOff(memory, START + 1);
    expect(waitOf(memory, START + 1)).toBe(1000);
    breakOff(memory, START + 1001);
    expect(waitOf(memory, START + 1001)).toBe(2000);
  });
});

describe("the cooldown that applies", () => {
  test("is the one with a named time, and of two such the longer", () => {
    const both = (whole: number | null, own: number | null): string | undefined => {
      const memory = createMemory("a", "id");
      fail(memory, failing(401, whole), START);
      fail(memory, failing(429, own), START);
      return cooldownOf(memory, "m", START)?.brief;
    };
    const [channel, model] = ["refused the gateway's credential", "is rate limited"];
    expect([both(null, null), both(null, 1000), both(1000, null)]).toEqual([channel, model, channel]);
    expect([both(2000, 1000), both(1000, 2000), both(1000, 1000)]).toEqual([channel, model, channel]);
  });

  test("of a model does not apply to requests without a model", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(429), START);
    expect([cooldownOf(memory, null, START), admittanceOf(memory, null, START)]).toEqual([null, "open"]);
  });

  test("ends when the clock was set back, instead of lasting for hours", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(401, HOUR), START);
    expect([admittanceOf(memory, "m", START - 1), admittanceOf(memory, "m", START)]).toEqual([
      "open",
      "closed",
    ]);
    const early = createMemory("a", "id");
    early.cooldown = { ...memory.cooldown!, begun: START - 2 * HOUR, until: START + HOUR + 1 };
    expect([admittanceOf(early, "m", START), admittanceOf(early, "m", START + 1)]).toEqual([
      "open",
      "closed",
    ]);
  });

  test("that follows an earlier one ends when the clock was set back, by less than the earlier one's age", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(401), START - HOUR);
    fail(memory, failing(401), START);
    expect(memory.cooldown?.since).toBe(START - HOUR);
    expect([admittanceOf(memory, "m", START - 1), admittanceOf(memory, "m", START)]).toEqual([
      "open",
      "trial",
    ]);
  });

  test("a channel that was disabled by command stays so until it is enabled", () => {
    const memory = createMemory("a", "id");
    fail(memory, failing(401), START);
    memory.disabled = true;
    endCooldowns(memory);
    expect([memory.cooldown, admittanceOf(memory, "m", START)]).toEqual([null, "closed"]);
    const renewed = renewMemory(memory, "another");
    expect(renewed).toMatchObject({ name: "a", identity: "another", disabled: true, cooldown: null });
    memory.disabled = false;
    endCooldowns(memory);
    expect(admittanceOf(memory, "m", START)).toBe("open");
  });

  test("after cooldowns are ended, counts start from zero", () => {
    const memory = createMemory("a", "id");
    for (const _each of [1, 2]) {
      fail(memory, failing(500), START);
      breakOff(memory, START);
    }
    endCooldowns(memory);
    for (const _each of [1, 2]) {
      fail(memory, failing(500), START);
      breakOff(memory, START);
    }
    expect(admittanceOf(memory, "m", START)).toBe("open");
  });
});
