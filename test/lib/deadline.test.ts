import { describe, expect, test } from "bun:test";
import { Deadline } from "../../src/lib/deadline.ts";

/** Resolves when a deadline of its own, armed after those under test, has expired. */
function expireAfter(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  new Deadline(resolve).arm(ms);
  const alive = setTimeout(() => {}, 10_000); // deadlines do not keep the process alive
  return promise.finally(() => clearTimeout(alive));
}

describe("a deadline", () => {
  test("expires once, and never early", async () => {
    const started = performance.now();
    let times = 0;
    const early: number[] = [];
    const deadline = new Deadline(() => {
      times++;
      if (performance.now() - started < 30) early.push(performance.now() - started);
    });
    deadline.arm(30);
    await expireAfter(90);
    expect({ times, early }).toEqual({ times: 1, early: [] });
  });

  test("says nothing once it is disarmed, and can be armed again", async () => {
    let times = 0;
    const deadline = new Deadline(() => times++);
    deadline.arm(1);
    deadline.disarm();
    deadline.disarm();
    await expireAfter(1);
    expect(times).toBe(0);
    deadline.arm(1);
    await expireAfter(1);
    expect(times).toBe(1);
  });

  test("moves when it is armed again, later or earlier", async () => {
    const order: string[] = [];
    const moved = new Deadline(() => order.push("moved later"));
    moved.arm(1);
    moved.arm(200);
    const hurried = new Deadline(() => order.push("moved earlier"));
    hurried.arm(100_000);
    hurried.arm(1);
    await expireAfter(60);
    order.push("between");
    await expireAfter(250);
    expect(order).toEqual(["moved earlier", "between", "moved later"]);
  });

  test("is off at zero and at infinity", async () => {
    let times = 0;
    const deadline = new Deadline(() => times++);
    deadline.arm(0);
    deadline.arm(Infinity);
    await expireAfter(1);
    expect(times).toBe(0);
  });

  test("of a thousand disarms any other of them in time", async () => {
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
    await expireAfter(1);
    expect(expired.size).toBe(500);
    expect([...expired].every((index) => index % 2 === 0)).toBe(true);
  });
});
