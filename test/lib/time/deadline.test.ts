import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { Deadline } from "../../../src/lib/time/deadline.ts";

/** How late a deadline may be, by its own account. */
const LATE = 25;

// A clock of the test's own: on a machine that is busy the real one runs on while nobody is looking.
beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.runAllTimers();
  jest.useRealTimers();
});

const wait = (ms: number) => void jest.advanceTimersByTime(ms);

describe("a deadline", () => {
  test("expires once, never early, and not later than it says", () => {
    let times = 0;
    const deadline = new Deadline(() => times++);
    deadline.arm(30);
    wait(29);
    expect(times).toBe(0);
    wait(1 + LATE);
    expect(times).toBe(1);
    wait(1000);
    expect(times).toBe(1);
  });

  test("does not expire once it is disarmed, and can be armed again", () => {
    let times = 0;
    const deadline = new Deadline(() => times++);
    deadline.arm(1);
    deadline.disarm();
    deadline.disarm();
    wait(1 + LATE);
    expect(times).toBe(0);
    deadline.arm(1);
    wait(1 + LATE);
    expect(times).toBe(1);
  });

  test("starts again when it is armed again, later or earlier", () => {
    const order: string[] = [];
    const moved = new Deadline(() => order.push("moved later"));
    moved.arm(1);
    moved.arm(200);
    const hurried = new Deadline(() => order.push("moved earlier"));
    hurried.arm(100_000);
    hurried.arm(1);
    wait(1 + LATE);
    expect(order).toEqual(["moved earlier"]);
    wait(170);
    expect(order).toEqual(["moved earlier"]);
    wait(4 + LATE);
    expect(order).toEqual(["moved earlier", "moved later"]);
  });

  test("is off at zero and at infinity", () => {
    let times = 0;
    const deadline = new Deadline(() => times++);
    for (const never of [0, -1, Infinity]) {
      deadline.arm(5);
      deadline.arm(never);
      wait(1_000_000);
    }
    expect(times).toBe(0);
  });

  test("one of a thousand deadlines disarms any other of them in time", () => {
    const expired = new Set<number>();
    const all: Deadline[] = Array.from(
      { length: 1000 },
      (_, index) =>
        new Deadline(() => {
          expired.add(index);
          all[index + 1]?.disarm();
        }),
    );
    for (const deadline of all) deadline.arm(1);
    wait(1 + LATE);
    expect(expired.size).toBe(500);
    expect([...expired].every((index) => index % 2 === 0)).toBe(true);
  });
});
