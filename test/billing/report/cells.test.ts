import { expect, test } from "bun:test";

import { array, assert, constantFrom, integer, oneof, property } from "fast-check";

import { Classes, ClassSums, decodeCells, encodeCells, listRows } from "../../../src/billing/index/cells.ts";
import { CELL, SUM } from "../../../src/billing/index/schema.ts";
import type { Traits } from "../../../src/billing/index/traits.ts";
import { formatUsd } from "../../../src/lib/money.ts";

const NUMBERS = oneof(
  constantFrom(
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    32_767,
    32_768,
    -32_769,
    2 ** 31 - 1,
    2 ** 31,
    -(2 ** 31),
    2 ** 52,
  ),
  integer(),
);

test("numbers of every size come back from cells as they were, wherever their bytes begin", () => {
  assert(
    property(
      array(array(NUMBERS, { minLength: 3, maxLength: 3 }), { maxLength: 9 }),
      integer({ min: 0, max: 9 }),
      (rows, at) => {
        const bytes = encodeCells(rows, 3);
        const moved = new Uint8Array(new ArrayBuffer(bytes.length + at), at);
        moved.set(bytes);
        expect(listRows(decodeCells(moved, 3))).toEqual(rows);
      },
    ),
    { seed: 1 },
  );
});

test("cells that lack a byte, or have one more, are damaged", () => {
  const bytes = encodeCells([[1, 300, 2 ** 40]], 3);
  for (const other of [bytes.subarray(0, -1), new Uint8Array([...bytes, 0]), new Uint8Array(2)])
    expect(() => decodeCells(other, 3)).toThrow(RangeError);
});

const TRAITS: Traits = {
  type: "request",
  key: "k",
  group: "g",
  channel: "c",
  model: "m",
  answeredBy: "",
  tool: null,
  label: null,
  inferred: false,
  isNamed: false,
  basis: "exact",
  outcome: "complete",
  kinds: [],
};

test("ten million amounts that each have almost a thousandth of a dollar add up exactly", () => {
  const cell = Array.from({ length: CELL.width }, () => 0);
  cell[CELL.trait] = 1;
  cell[CELL.sums + SUM.requests] = 1;
  cell[CELL.sums + SUM.charge[1]] = 999_999_999;
  const cells = decodeCells(
    encodeCells(
      Array.from({ length: 10_000 }, () => cell),
      CELL.width,
    ),
    CELL.width,
  );
  const sums = new ClassSums(new Classes(() => TRAITS));
  for (let time = 0; time < 1000; time += 1) sums.add(cells);
  const [sum] = sums.take();
  expect([sum?.requests, sum && formatUsd(sum.charge)]).toEqual([10_000_000, "9999.99999"]);
}, 60_000);

test("traits are one class only if a report tells nothing of them apart, whatever their texts are", () => {
  const others: Traits[] = [
    { ...TRAITS, key: "kg", group: "" },
    { ...TRAITS, tool: "null" },
    { ...TRAITS, label: "null" },
    { ...TRAITS, model: "m\n", answeredBy: "" },
    { ...TRAITS, model: "", answeredBy: "m" },
    { ...TRAITS, kinds: ["input"] },
    { ...TRAITS, paidBy: "plan" },
  ];
  const known = [TRAITS, ...others, TRAITS];
  const classes = new Classes((trait) => known[trait] ?? TRAITS, {
    wants: () => true,
    keeps: ["key", "group", "model", "answeredBy", "tool", "label", "kinds", "paidBy"],
  });
  expect(known.map((_, trait) => classes.of(trait))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 0]);
});
