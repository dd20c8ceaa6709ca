// A report makes room for streams, and only for these.

import { afterEach, beforeEach, expect, type Mock, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createZone } from "../../../src/lib/text/zone.ts";
import { createPause } from "../../../src/web/reports/pause.ts";
import { listSessions } from "../../../src/web/reports/sessions.ts";
import { makeLedger } from "../../billing/ledger/ledger-make.ts";

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

test.each([
  [0.1, 0.1],
  [0.9, 0.1],
  [20, 10],
])("after a pause of %d ms, a report goes on for %d ms", (pausedMs, pieceMs) => {
  let nowMs = 0;
  const clock = spyOn(performance, "now").mockImplementation(() => nowMs);
  wait.mockImplementation(() => {
    nowMs += pausedMs;
    return "timed-out";
  });
  try {
    const pause = createPause(new Int32Array(new SharedArrayBuffer(4)).fill(1));
    pause();
    const began = nowMs;
    while (wait.mock.calls.length < 2) {
      nowMs += 0.01;
      const before = nowMs;
      pause();
      if (wait.mock.calls.length === 2) expect(before - began).toBeCloseTo(pieceMs, 1);
    }
  } finally {
    clock.mockRestore();
  }
});

test("a report of sessions can pause after each line, each session's sum and each session that it describes", () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-pause-"));
  try {
    const path = join(folder, "ledger.jsonl");
    const now = Date.now();
    const lines = 400;
    makeLedger(path, lines, { start: now - lines * 1000, stepMs: 1000 });
    let pauses = 0;
    const clock = { zone: createZone("UTC"), now, pause: () => (pauses += 1) };
    const { sessions, more } = listSessions(path, { period: "30d", order: "newest" }, clock);
    expect(sessions.length).toBeGreaterThan(1);
    expect(pauses).toBeGreaterThanOrEqual(lines + sessions.length + more + sessions.length);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
