// What an answer is billed for, by how it ended and what was read of it.

import { describe, expect, test } from "bun:test";
import { assess, type Assessment, type Ended } from "../../src/billing/assess.ts";
import type { Reading, Usage } from "../../src/billing/usage.ts";

const OPEN: Reading = {
  model: "m",
  parts: [],
  raw: null,
  tariff: {},
  end: "open",
  final: false,
  estimatedOutput: 0,
};
const readingOf = (usage: Usage | null, more: Partial<Reading> = {}): Reading => ({
  ...OPEN,
  parts: usage === null ? [] : [{ model: null, pass: "message", usage }],
  ...more,
});
const judge = (reading: Reading, more: Partial<Ended> = {}) => {
  const ended = { outcome: "upstream_cut", status: 200, streamed: true, estimatedInput: 70 } as const;
  const { basis, parts, estimated, suspect } = assess({ ...ended, reading, ...more });
  return { basis, usage: parts.map((part) => part.usage), estimated, suspect: suspect !== null };
};
const FINAL = { end: "complete", final: true } as const;

describe("an answer that broke off", () => {
  test.each<[string, Reading, Usage, Assessment["estimated"]]>([
    ["with its prompt counted", readingOf({ input: 5, output: 1 }), { input: 5, output: 1 }, []],
    [
      "with more output seen than reported",
      readingOf({ input: 5, output: 1 }, { estimatedOutput: 9 }),
      { input: 5, output: 9 },
      ["output"],
    ],
    [
      "with its prompt in the cache",
      readingOf({ input: 0, cache_read: 900, output: 1 }, { estimatedOutput: 9 }),
      { input: 0, cache_read: 900, output: 9 },
      ["output"],
    ],
    [
      "with output, and nothing counted",
      readingOf(null, { estimatedOutput: 9 }),
      { input: 70, output: 9 },
      ["input", "output"],
    ],
    [
      "with a search, and no token counted",
      readingOf({ web_search: 1 }, { estimatedOutput: 9 }),
      { input: 70, output: 9, web_search: 1 },
      ["input", "output"],
    ],
    [
      "with a search, before a word was said",
      readingOf({ web_search: 1 }),
      { input: 70, web_search: 1 },
      ["input"],
    ],
    [
      "with zeros that stood for a count to come",
      readingOf({ input: 0, output: 0 }, { estimatedOutput: 9 }),
      { input: 70, output: 9 },
      ["input", "output"],
    ],
  ])("%s", (_, reading, usage, estimated) => {
    expect(judge(reading)).toEqual({ basis: "partial", usage: [usage], estimated, suspect: false });
  });

  test("before anything was said is unknown", () => {
    expect(judge(OPEN)).toEqual({ basis: "unknown", usage: [], estimated: [], suspect: false });
  });
});

describe("a whole answer", () => {
  const whole = { outcome: "complete" } as const;

  test("costs what it reports, nothing where it said nothing", () => {
    for (const usage of [
      { input: 5, output: 0, web_search: 2 },
      { input: 0, output: 0 },
    ]) {
      const told = judge(readingOf(usage, FINAL), whole);
      expect(told).toEqual({ basis: "exact", usage: [usage], estimated: [], suspect: false });
    }
  });

  test.each<[string, Usage | null, number]>([
    ["no usage", null, 9],
    ["no usage, nor a word", null, 0],
    ["zeros beside its words", { input: 0, output: 0 }, 9],
    ["its searches alone", { web_search: 2 }, 9],
    ["its searches alone, and not a word", { web_search: 2 }, 0],
    ["zeros, searches and words", { input: 0, output: 0, web_search: 2 }, 9],
  ])("that reports %s is unknown, and suspect", (_, usage, estimatedOutput) => {
    const told = judge(readingOf(usage, { ...FINAL, estimatedOutput }), whole);
    expect(told).toEqual({ basis: "unknown", usage: [], estimated: [], suspect: true });
  });
});

describe("an answer that says it failed", () => {
  const failed = { outcome: "upstream_error" } as const;

  test.each([
    ["stream", false],
    ["whole body, or list of values", true],
  ])("and reported nothing costs nothing, as a %s", (_, final) => {
    const told = judge(readingOf(null, { end: "error", final, estimatedOutput: 9 }), failed);
    expect(told).toEqual({ basis: "exact", usage: [], estimated: [], suspect: false });
  });

  test.each([
    ["partial", false],
    ["exact", true],
  ])("costs what it reported: %s", (basis, final) => {
    const told = judge(readingOf({ input: 5, output: 1 }, { end: "error", final }), failed);
    expect(told).toMatchObject({ basis, usage: [{ input: 5, output: 1 }] });
  });
});
