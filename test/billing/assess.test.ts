// Tests what an answer is billed for. It depends on the answer's end and on the usage that was read.

import { describe, expect, test } from "bun:test";
import { assess, type Assessment, type EndedResponse } from "../../src/billing/assess.ts";
import type { Reading, Usage } from "../../src/billing/usage.ts";

const OPEN: Reading = {
  model: "m",
  parts: [],
  rawUsage: null,
  tariff: {},
  end: "open",
  final: false,
  estimatedOutput: 0,
  hasText: false,
};
const readingOf = (usage: Usage | null, more: Partial<Reading> = {}): Reading => ({
  ...OPEN,
  parts: usage === null ? [] : [{ model: null, pass: "message", usage }],
  hasText: (more.estimatedOutput ?? 0) > 0,
  ...more,
});
const judge = (reading: Reading, more: Partial<EndedResponse> = {}) => {
  const ended = { outcome: "upstream_cut", status: 200, streamed: true, estimatedInput: 70 } as const;
  const { basis, parts, estimated, suspect } = assess({ ...ended, reading, ...more });
  return { basis, usage: parts.map((part) => part.usage), estimated, suspect: suspect !== null };
};
const FINAL = { end: "complete", final: true } as const;

describe("P136: an answer that broke off is charged for what came", () => {
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
      "with output but nothing counted",
      readingOf(null, { estimatedOutput: 9 }),
      { input: 70, output: 9 },
      ["input", "output"],
    ],
    [
      "with a search and text but no token counted",
      readingOf({ web_search: 1 }, { estimatedOutput: 9 }),
      { input: 70, output: 9, web_search: 1 },
      ["input", "output"],
    ],
    ["with a search and no text", readingOf({ web_search: 1 }), { input: 70, web_search: 1 }, ["input"]],
    [
      "with zeros in place of its real counts",
      readingOf({ input: 0, output: 0 }, { estimatedOutput: 9 }),
      { input: 70, output: 9 },
      ["input", "output"],
    ],
  ])("an answer that broke off %s costs what was counted and seen", (_, reading, usage, estimated) => {
    expect(judge(reading)).toEqual({ basis: "partial", usage: [usage], estimated, suspect: false });
  });

  test.each<[string, Usage, number]>([
    ["less output seen than reported", { input: 1, output: 9 }, 5],
    ["as much output seen as reported", { input: 1, output: 9 }, 9],
    ["no output reported, and none seen", { input: 1 }, 0],
  ])("an answer with %s costs what was reported", (_, usage, estimatedOutput) => {
    const shown = judge(readingOf(usage, { estimatedOutput }));
    expect(shown).toEqual({ basis: "partial", usage: [usage], estimated: [], suspect: false });
  });

  test("if only one token came before an answer broke off, the answer is charged for that token", () => {
    const shown = judge(readingOf({ input: 1 }, { estimatedOutput: 1 }));
    expect(shown).toMatchObject({ usage: [{ input: 1, output: 1 }], estimated: ["output"] });
  });

  test("if an answer broke off in its second pass, the first pass is charged as reported, and each pass keeps its model", () => {
    const first = { model: "a", pass: "compaction", usage: { input: 3, output: 4 } };
    const last = { model: "b", pass: "advisor_message", usage: { output: 2 } };
    const reading = { ...OPEN, parts: [first, last], estimatedOutput: 9 };
    const ended = { outcome: "client_closed", status: 200, streamed: true, estimatedInput: 70 } as const;
    expect(assess({ ...ended, reading }).parts).toEqual([
      first,
      { ...last, usage: { input: 70, output: 9 } },
    ]);
    expect(assess({ ...ended, reading: { ...OPEN, estimatedOutput: 9 } }).parts).toEqual([
      { model: null, pass: "message", usage: { input: 70, output: 9 } },
    ]);
  });

  test("the cost of an answer that broke off before anything was said is unknown", () => {
    expect(judge(OPEN)).toEqual({ basis: "unknown", usage: [], estimated: [], suspect: false });
  });
});

describe("an answer that never came costs nothing, or an unknown amount", () => {
  const nothing: ReturnType<typeof judge> = { basis: "exact", usage: [], estimated: [], suspect: false };

  test.each([400, 429, 500])("an error of status %d costs nothing, whatever it reports", (status) => {
    const reading = readingOf({ input: 5, output: 1 }, FINAL);
    for (const outcome of ["upstream_error", "complete", "client_closed"] as const)
      expect(judge(reading, { outcome, status })).toEqual(nothing);
    expect(
      assess({ outcome: "upstream_error", status, reading: null, streamed: true, estimatedInput: 70 }),
    ).toMatchObject({ basis: "exact", parts: [] });
  });

  test.each([
    ["without a status", null, OPEN],
    ["without a status, though usage was read", null, readingOf({ input: 5 }, FINAL)],
    ["with a status, and nothing that could be read", 200, null],
  ])("if an answer comes %s, its cost is unknown", (_, status, reading) => {
    for (const outcome of ["upstream_error", "client_closed", "interrupted"] as const) {
      const { basis, parts } = assess({ outcome, status, reading, streamed: true, estimatedInput: 70 });
      expect({ basis, parts }).toEqual({ basis: "unknown", parts: [] });
    }
  });
});

describe("a complete answer is charged for what it reports", () => {
  const whole = { outcome: "complete" } as const;

  test("a complete answer of a single token costs that token", () => {
    expect(judge(readingOf({ input: 1 }, FINAL), whole)).toMatchObject({
      basis: "exact",
      usage: [{ input: 1 }],
    });
  });

  test("a complete answer that was not streamed is suspect if it reports zeros", () => {
    const shown = judge(readingOf({ input: 0, output: 0 }, FINAL), { ...whole, streamed: false });
    expect(shown).toEqual({ basis: "unknown", usage: [], estimated: [], suspect: true });
  });

  test("the cost of a response that still runs in the background is unknown, but the response is not suspect", () => {
    const stored = { id: "resp_1", goesOn: true };
    const shown = judge(readingOf(null, { ...FINAL, stored }), whole);
    expect(shown).toEqual({ basis: "unknown", usage: [], estimated: [], suspect: false });
    const done = judge(readingOf(null, { ...FINAL, stored: { ...stored, goesOn: false } }), whole);
    expect(done).toMatchObject({ basis: "unknown", suspect: true });
  });

  test("a complete answer without a final usage report costs what was reported before, and nothing is estimated", () => {
    const shown = judge(readingOf({ output: 1 }, { estimatedOutput: 9 }), whole);
    expect(shown).toEqual({ basis: "partial", usage: [{ output: 1 }], estimated: [], suspect: false });
    expect(judge(OPEN, whole)).toMatchObject({ basis: "unknown", usage: [], suspect: false });
  });

  test("a complete answer costs what it reports, and nothing if it reports zeros", () => {
    for (const usage of [
      { input: 5, output: 0, web_search: 2 },
      { input: 0, output: 0 },
    ]) {
      const shown = judge(readingOf(usage, FINAL), whole);
      expect(shown).toEqual({ basis: "exact", usage: [usage], estimated: [], suspect: false });
    }
  });

  test.each<[string, Usage | null, number]>([
    ["text, but no usage", null, 9],
    ["no text and no usage", null, 0],
    ["text, and zeros as its usage", { input: 0, output: 0 }, 9],
    ["text, and no usage but searches", { web_search: 2 }, 9],
    ["no text, and no usage but searches", { web_search: 2 }, 0],
    ["text, searches, and zeros for its tokens", { input: 0, output: 0, web_search: 2 }, 9],
  ])("the cost of an answer with %s is unknown, and suspect", (_, usage, estimatedOutput) => {
    const shown = judge(readingOf(usage, { ...FINAL, estimatedOutput }), whole);
    expect(shown).toEqual({ basis: "unknown", usage: [], estimated: [], suspect: true });
  });
});

test.each([
  [100, 800, false],
  [100, 801, true],
  [1, 256, false],
  [1, 257, true],
])("if an answer reports %p output tokens and %p are seen, it is suspect: %p", (output, seen, suspect) => {
  const reading = readingOf({ input: 5, output }, { ...FINAL, estimatedOutput: seen });
  expect(judge(reading, { outcome: "complete" }).suspect).toBe(suspect);
});

describe("an answer that says it failed costs only what it reported", () => {
  const failed = { outcome: "upstream_error" } as const;
  const assessFailed = (reading: Reading) =>
    assess({ ...failed, status: 200, streamed: true, estimatedInput: 70, reading });

  test.each([
    ["stream", false],
    ["JSON body or array", true],
  ])("a failed %s that reported no usage costs nothing", (_, final) => {
    const shown = judge(readingOf(null, { end: "error", final }), failed);
    expect(shown).toEqual({ basis: "exact", usage: [], estimated: [], suspect: false });
    // Nobody knows whether an upstream charges for the text before its error, so the line is marked as lacking output.
    const seen = assessFailed(readingOf(null, { end: "error", final, estimatedOutput: 9 }));
    expect(seen).toMatchObject({ basis: "exact", parts: [], lacksOutput: true });
    expect(seen.suspect).toContain("before its error");
  });

  test("an answer that failed without usage costs nothing if it was cut off, and an unknown amount if it is complete", () => {
    const cut = judge(readingOf(null, { end: "open", final: false }), failed);
    expect(cut).toMatchObject({ basis: "exact", usage: [] });
    const body = judge(readingOf(null, { ...FINAL, estimatedOutput: 9 }), failed);
    expect(body).toMatchObject({ basis: "unknown", suspect: true });
  });

  test.each([
    ["partial", false],
    ["exact", true],
  ])("an answer that failed costs what it reported, and its basis is %s", (basis, final) => {
    const shown = judge(readingOf({ input: 5, output: 1 }, { end: "error", final }), failed);
    expect(shown).toMatchObject({ basis, usage: [{ input: 5, output: 1 }] });
    const counted = { end: "error", final, estimatedOutput: 1 } as const;
    expect(assessFailed(readingOf({ input: 5, output: 1 }, counted))).not.toHaveProperty("lacksOutput");
  });

  test("the report of a failed answer is marked as lacking output if more output was seen than reported", () => {
    const reading = readingOf({ input: 5, output: 1 }, { end: "error", estimatedOutput: 9 });
    expect(assessFailed(reading)).toMatchObject({ basis: "partial", estimated: [], lacksOutput: true });
  });
});

describe("P134: a count that cannot be trusted makes the line unknown or suspect", () => {
  const unreadable = { basis: "unknown", text: "the upstream's input_tokens cannot be read" } as const;
  const doubtful = { basis: "suspect", text: "the upstream's cached_tokens cannot be read" } as const;
  const assessWith = (reading: Reading, more: Partial<EndedResponse> = {}) =>
    assess({ outcome: "complete", status: 200, streamed: true, estimatedInput: 70, reading, ...more });

  test("a count that cannot be trusted makes a complete answer's cost unknown if the cost depends on that count", () => {
    const reading = readingOf({ input: 0, output: 3 }, { ...FINAL, faults: [doubtful, unreadable] });
    expect(assessWith(reading)).toEqual({
      basis: "unknown",
      parts: [],
      estimated: [],
      suspect: "the upstream's cached_tokens cannot be read; the upstream's input_tokens cannot be read",
    });
    expect(assessWith(readingOf(null, { ...FINAL, faults: [unreadable] })).suspect).toBe(unreadable.text);
  });

  test("a count that cannot be trusted makes the answer suspect if the count is a part of a total", () => {
    const reading = readingOf({ input: 9, output: 3 }, { ...FINAL, faults: [doubtful] });
    expect(assessWith(reading)).toMatchObject({ basis: "exact", suspect: doubtful.text });
  });

  test("a report is marked as lacking output if the meter says so, or if the report counts no output although text was seen", () => {
    const fault = { ...doubtful, lacksOutput: true } as const;
    const reading = readingOf({ input: 9, output: 1 }, { ...FINAL, faults: [fault] });
    expect(assessWith(reading)).toMatchObject({ basis: "exact", lacksOutput: true });
    const seen = readingOf({ input: 9, output: 0 }, { ...FINAL, estimatedOutput: 40 });
    expect(assessWith(seen)).toMatchObject({ basis: "exact", lacksOutput: true });
    const whole = readingOf({ input: 9, output: 1 }, { ...FINAL, estimatedOutput: 40, faults: [doubtful] });
    expect(assessWith(whole)).not.toHaveProperty("lacksOutput");
  });

  test("a count that cannot be trusted makes a broken answer suspect, even if an estimate replaces the count", () => {
    const reading = readingOf({ input: 0, output: 3 }, { faults: [unreadable] });
    const assessment = assessWith(reading, { outcome: "upstream_cut" });
    expect(assessment).toMatchObject({ basis: "partial", estimated: ["input"], suspect: unreadable.text });
  });

  test("an answer with an error status costs nothing, also with a count that cannot be trusted", () => {
    const reading = readingOf(null, { ...FINAL, faults: [unreadable] });
    expect(assessWith(reading, { status: 400 })).toMatchObject({ basis: "exact", suspect: null });
  });
});
