import { describe, expect, test } from "bun:test";
import {
  createZone,
  findNextSpan,
  nameSpan,
  SPANS,
  startOfNextSpan,
  startOfSpan,
} from "../../../src/lib/text/zone.ts";

const at = (iso: string): number => Date.parse(iso);

describe("a time zone converts moments and local times", () => {
  test.each([
    ["UTC", "2026-11-20T23:30:00Z", "2026-11-20T23:30:00Z"],
    ["America/Los_Angeles", "2026-11-20T07:30:00Z", "2026-11-19T23:30:00Z"],
    ["Asia/Kathmandu", "2026-11-20T18:15:00Z", "2026-11-21T00:00:00Z"],
    ["Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:59:59Z"],
    ["Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z"],
  ])("in %s, the moment %s converts to the local time %s and back", (name, moment, local) => {
    const zone = createZone(name);
    expect(zone.toLocal(at(moment))).toBe(at(local));
    expect(zone.fromLocal(at(local))).toBe(at(moment));
  });

  test("a time zone with a change of clocks has days of 23 and 25 hours", () => {
    const { fromLocal } = createZone("Europe/Berlin");
    const hours = (from: string, to: string): number => (fromLocal(at(to)) - fromLocal(at(from))) / 3_600_000;
    expect(hours("2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z")).toBe(23);
    expect(hours("2026-10-25T00:00:00Z", "2026-10-26T00:00:00Z")).toBe(25);
  });

  test("a time zone that nobody knows is an error", () => {
    expect(() => createZone("Mars/Olympus").toLocal(0)).toThrow(RangeError);
  });
});

test.each([
  ["hour", "2026-11-20 14:00"],
  ["day", "2026-11-20"],
  ["week", "2026-W47"],
  ["month", "2026-11"],
] as const)("the %s of 14:59:59 on 2026-11-20 is named %s", (span, name) => {
  expect(nameSpan(span, at("2026-11-20T14:59:59Z"))).toBe(name);
});

test.each([
  ["2026-01-01", "2026-W01"],
  ["2027-01-01", "2026-W53"],
  ["2024-12-30", "2025-W01"],
])("%s is in week %s", (day, name) => {
  expect(nameSpan("week", at(`${day}T00:00:00Z`))).toBe(name);
});

test.each(SPANS.map((span) => [span]))("each %s begins where the one before ends", (span) => {
  let start = startOfSpan(span, at("2026-10-20T10:20:30Z"));
  for (let count = 0; count < 100; count += 1) {
    const next = startOfNextSpan(span, start);
    expect(startOfSpan(span, next)).toBe(next);
    expect(startOfSpan(span, next - 1)).toBe(start);
    start = next;
  }
});

// Clocks change at midnight in Beirut, Havana and Santiago, by half an hour on Lord Howe, and Kiritimati skipped a day.
const ZONES =
  "UTC Europe/Berlin America/Los_Angeles America/Sao_Paulo America/Santiago America/Havana America/St_Johns Asia/Beirut Asia/Kathmandu Africa/Cairo Australia/Lord_Howe Pacific/Apia Pacific/Kiritimati";
describe.each(ZONES.split(" "))("days and months in %s", (name) => {
  const zone = createZone(name);
  test.each(["day", "month"] as const)("a new %s begins when nameSpan gives it a new name", (span) => {
    const nameAt = (ms: number): string => nameSpan(span, zone.toLocal(ms));
    // In these years, some of the places changed their clocks at midnight.
    for (const year of [2011, 2022, 2026]) {
      for (let ms = Date.UTC(year, 0); ms < Date.UTC(year + 1, 0); ms += 23 * 3_600_000 + 1_234_567) {
        const next = findNextSpan(span, zone, ms);
        expect(next).toBeGreaterThan(ms);
        expect(nameAt(next - 1)).toBe(nameAt(ms));
        expect(nameAt(next)).not.toBe(nameAt(ms));
      }
    }
  });
});
