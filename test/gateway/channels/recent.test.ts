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
        const saved = window.hour.save(now);
        window = new ChannelWindow();
        window.hour.load(saved, now);
      }
      now += rest;
      const minute = Math.floor(now / MINUTE);
      for (const minutes of [1, 10, MINUTES]) {
        const recent = seen.filter((event) => event.minute > minute - minutes);
        const errors = recent.filter(({ failed }) => failed).length;
        expect(window.hour.count(minutes, now)).toEqual({ requests: recent.length, errors });
      }
      const steps = window.hour.steps(5, now);
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
  expect(window.hour.count(1, START - 10 * MINUTE)).toEqual({ requests: 2, errors: 0 });
  const later = new ChannelWindow();
  later.hour.load(window.hour.save(START), START - 10 * MINUTE);
  expect(later.hour.count(MINUTES, START)).toEqual({ requests: 0, errors: 0 });
});

test("counting continues after a clock that was far ahead is set right", () => {
  const window = new ChannelWindow();
  window.addRequest(START + 1000 * MINUTE);
  window.addRequest(START);
  expect(window.hour.count(1, START)).toEqual({ requests: 1, errors: 0 });
  expect(window.hour.count(1, START + MINUTE)).toEqual({ requests: 0, errors: 0 });
  expect(window.hour.count(10, START + MINUTE)).toEqual({ requests: 1, errors: 0 });
});

test("the median is the middle of the last responses' times", () => {
  const window = new ChannelWindow();
  expect(window.quantile(0.5)).toBeNull();
  for (let ms = 1; ms <= 1000; ms += 1) window.addFirstByte(ms);
  // The last 256 of them.
  expect(window.quantile(0.5)).toBe(873);
  expect(window.quantile(0.95)).toBe(988);
});

test("the last day is counted by the hour, and survives being saved", () => {
  const window = new ChannelWindow();
  window.addRequest(START);
  window.addError(START + 5 * 60 * MINUTE);
  const now = START + 23 * 60 * MINUTE;
  const day = window.day.steps(1, now);
  expect(day).toHaveLength(24);
  expect(day[0]).toEqual({ requests: 1, errors: 0 });
  expect(day[5]).toEqual({ requests: 0, errors: 1 });
  const later = new ChannelWindow();
  later.day.load(window.day.save(now), now + 60 * MINUTE);
  expect(later.day.steps(1, now + 60 * MINUTE)[4]).toEqual({ requests: 0, errors: 1 });
  expect(later.day.count(24, now + 60 * MINUTE)).toEqual({ requests: 0, errors: 1 });
});
