// A report makes room for streams, and only for these.

import { afterEach, beforeEach, expect, type Mock, spyOn, test } from "bun:test";
import { createPause } from "../../../src/web/reports/pause.ts";

let wait: Mock<typeof Atomics.wait>;
beforeEach(() => {
  wait = spyOn(Atomics, "wait");
});
afterEach(() => wait.mockRestore());

test("a report has pauses while a stream is open, and none before and after it", () => {
  const streams = new Int32Array(new SharedArrayBuffer(4));
  const pause = createPause(streams);
  const read = (): number => {
    const before = wait.mock.calls.length;
    const end = performance.now() + 5;
    while (performance.now() < end) pause();
    return wait.mock.calls.length - before;
  };
  expect(read()).toBe(0);
  Atomics.store(streams, 0, 1);
  expect(read()).toBeGreaterThan(0);
  Atomics.store(streams, 0, 0);
  expect(read()).toBe(0);
});
