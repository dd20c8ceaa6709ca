import { expect, test } from "bun:test";
import { array, assert, boolean, integer, property, record } from "fast-check";
import { ChannelWindow } from "../../../src/gateway/channels/recent.ts";

const MINUTE = 60_000;
const MINUTES = 60;
const START = 30_000_000 * MINUTE;

test("the counts of the last hour are exact, also after a restart", () => {
  const events = array(
    record({ passed: integer({ min: 0, max: 20 * MINUTE }), failed: boolean(), restarts: boolean() }),
    { maxLength: 80 },
  );
  assert(
    property(events, integer({ min: 0, max: 90 * MINUTE }), (all, rest) => {
      let window = new ChannelWindow();
      let now = START;
      const seen: { minute: number; failed: boolean }[] = [];
      for (const { passed, failed, restarts } of all) {
        now += passed;
        window.addRequest(now);
        if (failed) window.addError(now);
        seen.push({ minute: Math.floor(now / MINUTE), failed });
        if (!restarts) continue;
        const saved = window.save(now);
        window = new ChannelWindow();
        window.load(saved, now);
      }
      now += rest;
      const minute = Math.floor(now / MINUTE);
      for (const minutes of [1, 10, MINUTES]) {
        const recent = seen.filter((event) => event.minute > minute - minutes);
        const errors = recent.filter(({ failed }) => failed).length;
        expect(window.count(minutes, now)).toEqual({ requests: recent.length, errors });
      }
      const steps = window.steps(5, now);
      expect(steps).toHaveLength(12);
      const newest = seen.filter((event) => event.minute > minute - 5);
      expect(steps.at(-1)?.requests).toBe(newest.length);
    }),
  );
});

test("a clock that was set back does no harm", () => {
  const window = new ChannelWindow();
  window.addRequest(START);
  window.addRequest(START - 10 * MINUTE);
  expect(window.count(1, START - 10 * MINUTE)).toEqual({ requests: 2, errors: 0 });
  const later = new ChannelWindow();
  later.load(window.save(START), START - 10 * MINUTE);
  expect(later.count(MINUTES, START)).toEqual({ requests: 0, errors: 0 });
});

test("counting continues after a clock that was far ahead is set right", () => {
  const window = new ChannelWindow();
  window.addRequest(START + 1000 * MINUTE);
  window.addRequest(START);
  expect(window.count(1, START)).toEqual({ requests: 1, errors: 0 });
  expect(window.count(1, START + MINUTE)).toEqual({ requests: 0, errors: 0 });
  expect(window.count(10, START + MINUTE)).toEqual({ requests: 1, errors: 0 });
});

test("the median is the middle of the last responses' times", () => {
  const window = new ChannelWindow();
  expect(window.quantile(0.5)).toBeNull();
  for (let ms = 1; ms <= 1000; ms += 1) window.addFirstByte(ms);
  // The last 256 of them.
  expect(window.quantile(0.5)).toBe(873);
  expect(window.quantile(0.95)).toBe(988);
});
