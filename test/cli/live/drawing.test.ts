// What the live views are made of, without a terminal.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { drawBar } from "../../../src/cli/money/bars.ts";
import { createFlexTable, type FlexColumn } from "../../../src/cli/table.ts";
import { fitFrame, type Frame } from "../../../src/cli/live/sections.ts";
import { alignText, cutText, measure } from "../../../src/cli/text.ts";
import { createTraffic, describeStatus } from "../../../src/cli/live/traffic.ts";

const anyText = fc.string({ unit: "grapheme", maxLength: 40 });

describe("text", () => {
  test("is never wider than its room, and cut only when it must be", () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, room) => {
        const cut = cutText(text, room);
        expect(measure(cut)).toBeLessThanOrEqual(room);
        if (measure(text) <= room) expect(cut).toBe(text);
      }),
    );
  });

  test("is aligned to exactly its room", () => {
    expect(alignText("漢字", 6, "right")).toBe("  漢字");
    expect(alignText("漢字漢字", 6)).toBe("漢字… ");
  });
});

const COLUMNS: readonly FlexColumn[] = [
  { title: "NAME", rank: 1, least: 4, most: 10 },
  { title: "NOTE", rank: 3, least: 4, most: 20, extra: true },
  { title: "SUM", align: "right", rank: 0, least: 3, most: 6 },
];

describe("a table whose rows come one by one", () => {
  test("grows with what it shows", () => {
    const table = createFlexTable(COLUMNS);
    expect(table.row(["a", "x", "1"], 80)).toBe("a     x       1");
    expect(table.row(["longer-name", "", "12.50"], 80)).toBe("longer-na…        12.50");
    expect(table.row(["b", "y", "2"], 80)).toBe("b           y         2");
    expect(table.row(["longer-name", "y", "2"], Number.POSITIVE_INFINITY)).toBe("longer-name  y         2");
  });

  test("gives up what is extra before it cuts, and by rank what has no room at all", () => {
    const table = createFlexTable(COLUMNS, ["longer-nam", "a note", "99999"]);
    expect(table.head(30)).toBe("NAME        NOTE      SUM");
    expect(table.head(24)).toBe("NAME          SUM");
    expect(table.row(["longer-nam", "a note", "1"], 14)).toBe("longer…      1");
    expect(table.head(8)).toBe("  SUM");
    expect(table.head(1)).toBe("SUM");
  });

  test("never writes a row wider than the terminal, nor an escape of a name", () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(anyText, { maxLength: 3 })),
        fc.integer({ min: 3, max: 60 }),
        (rows, room) => {
          const table = createFlexTable(COLUMNS);
          for (const row of rows) {
            const line = table.row(row, room);
            expect(measure(line)).toBeLessThanOrEqual(room);
            expect(line).not.toMatch(/\p{Cc}/u);
          }
        },
      ),
    );
    expect(createFlexTable(COLUMNS).row(["a\u001B[2J", "", ""], 80)).toBe("a [2J");
  });
});

test("a bar is as long as its share, to an eighth of a cell", () => {
  expect(drawBar(8n, 8n, 4)).toBe("████");
  expect(drawBar(3n, 8n, 4)).toBe("█▌");
  expect(drawBar(1n, 32n, 4)).toBe("▏");
  expect(drawBar(1n, 1_000n, 4)).toBe("");
  expect([drawBar(0n, 8n, 4), drawBar(1n, 0n, 4), drawBar(1n, 1n, -3)]).toEqual(["", "", ""]);
});

describe("sections over each other", () => {
  const lines = (name: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${name}${index}`);
  const frame: Frame = {
    head: ["head"],
    sections: [
      { title: "Streams", lines: lines("s", 9), counts: true },
      { title: "Recent", lines: lines("r", 50), counts: false },
    ],
    foot: "foot",
  };

  test("share the rows that there are, and say what they leave out", () => {
    expect(fitFrame(frame, 12, 80)).toEqual([
      "head",
      "",
      "Streams",
      "s0",
      "s1",
      "… and 7 more",
      "",
      "Recent",
      "r0",
      "r1",
      "r2",
      "foot",
    ]);
  });

  test("fill any number of rows exactly, the last with the foot", () => {
    for (let rows = 1; rows < 90; rows += 1) {
      const drawn = fitFrame(frame, rows, 80);
      expect(drawn).toHaveLength(rows);
      expect(drawn.at(-1)).toBe("foot");
    }
  });
});

describe("tokens a second", () => {
  test("are those of the last seconds, ended streams among them", () => {
    const traffic = createTraffic();
    traffic.see([{ id: "a", tokens: 100 }], 0);
    expect(traffic.tokensPerSecond()).toBe(0);
    traffic.see([{ id: "a", tokens: 150 }], 1000);
    expect(traffic.tokensPerSecond()).toBe(50);
    traffic.end({ id: "a", tokens: 200 });
    traffic.see([], 2000);
    expect(traffic.tokensPerSecond()).toBe(50);
    for (const now of [3000, 4000, 5000]) traffic.see([], now);
    expect(traffic.tokensPerSecond()).toBe(0);
  });

  test("never fall below nothing when an estimate is corrected", () => {
    const traffic = createTraffic();
    traffic.see([{ id: "a", tokens: 100 }], 0);
    traffic.see([{ id: "a", tokens: 60 }], 1000);
    traffic.see([{ id: "a", tokens: 110 }], 2000);
    expect(traffic.tokensPerSecond()).toBe(5);
  });
});

test("the status line says less where there is less room", () => {
  const status = { open: 1, tokensPerSecond: 85, today: "1.5" };
  expect(describeStatus(status, 80)).toBe("1 open stream · 85 tokens/s · $1.5 today");
  expect(describeStatus(status, 30)).toBe("1 open · 85 tok/s · $1.5");
});
