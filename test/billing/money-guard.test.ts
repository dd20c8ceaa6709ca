// Money is computed in one place: src/billing/charge.ts, with src/lib/money.ts. This test reads the source and fails
// where another module multiplies or rounds an amount, or where any module makes a float of an amount. The test
// recognises an amount by its name: it has one of the words below, and no other name has them.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";

const SRC = new URL("../../src/", import.meta.url);
const files = [...new Bun.Glob("**/*.ts").scanSync({ cwd: Bun.fileURLToPath(SRC) })].toSorted();

const AMOUNT = String.raw`\b(?!unpriced\b)\w*(?:usd|price|charge|official|amount|spent|multiplier|cost)\w*\b`;
/** Fits `line.official_usd`, `prices["input"]` and `amount`. */
const PATH = String.raw`(?:\w+\??\.)*${AMOUNT}(?:\??\.\w+|\[[^\]]*\])*`;

const FORBIDDEN: ReadonlyArray<readonly [what: string, pattern: RegExp]> = [
  [
    "a float made of an amount",
    new RegExp(String.raw`\b(?:Number|parseFloat|parseInt|Number\.parseFloat|Math\.\w+)\(\s*${PATH}`, "i"),
  ],
  ["a float made of an amount", new RegExp(String.raw`[=(,?:]\s*\+${PATH}`, "i")],
  ["an amount that is calculated with", new RegExp(String.raw`${PATH}\s*(?:[*/%]|[-+]=?)\s*[\w(]`, "i")],
  ["an amount that is calculated with", new RegExp(String.raw`[\w)]\s*(?:[*/%]|[-+])=?\s*${PATH}`, "i")],
  [
    "an amount written as a float is",
    new RegExp(String.raw`${PATH}\.(?:toFixed|toPrecision|toExponential)\(`, "i"),
  ],
];

/** Code without comments, texts and regular expressions. Line numbers stay the same. */
function strip(source: string): string {
  return source.replace(
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|(?<=[(=,:]\s*)\/(?![*/])(?:\\.|[^/\\\n])+\/\w*/g,
    (text) => {
      const inserted = text.startsWith("`") ? text.match(/\$\{[^}]*\}/g) : null;
      return `"" ${inserted?.join(" ; ") ?? ""}${text.replace(/[^\n]/g, "")}`;
    },
  );
}

function findFaults(source: string): string[] {
  return strip(source)
    .split("\n")
    .flatMap((line, index) =>
      FORBIDDEN.filter(([, pattern]) => pattern.test(line)).map(
        ([what]) => `line ${index + 1}: ${what}: ${line.trim()}`,
      ),
    );
}

describe("no module calculates with amounts", () => {
  test.each([
    "const total = Number(line.charge_usd);",
    "sum += parseFloat(usage.official);",
    "const charge = official * multiplier;",
    "const perToken = price / 1e6;",
    "spent = spent + line.charge;",
    "total += charge;",
    "return -1 * amountUsd;",
    "const shown = chargeUsd.toFixed(2);",
    "const x = +row.price;",
    "Math.round(costs)",
    'const a = prices["input"] * 2;',
    "const text = `${charge * 2} USD`;",
  ])("code that calculates with amounts is found: %s", (line) => {
    expect(findFaults(line)).not.toEqual([]);
  });

  test.each([
    "const charge = computeCharge(billed);",
    "// charge * multiplier",
    'const text = "charge * 2";',
    "const text = `${charge} * 2`;",
    "if (spent < limit) return;",
    "const known = prices[kind + PER_1K];",
    "import { addUsd } from '../lib/money.ts';",
    "const rate = price.rates[name];",
    "for (const [kind, price] of Object.entries(prices)) yield kind;",
  ])("correct code is left alone: %s", (line) => {
    expect(findFaults(line)).toEqual([]);
  });

  test("no file of src calculates with amounts, except money.ts", () => {
    const others = files.filter((file) => file !== "lib/money.ts");
    const faults = others.flatMap((file) =>
      findFaults(readFileSync(new URL(file, SRC), "utf8")).map((fault) => `${file} ${fault}`),
    );
    expect(faults).toEqual([]);
  });
});

describe("only billing calculates with amounts, and only one of its modules with prices", () => {
  const importersOf = (name: string) =>
    files.filter((file) => {
      const imports =
        readFileSync(new URL(file, SRC), "utf8").match(/import[^;]*from\s+"[^"]*\/money\.ts"/g) ?? [];
      return imports.some((each) => new RegExp(String.raw`\b${name}\b`).test(each));
    });

  test.each(["multiplyDecimals", "roundDecimal", "shiftDecimal"])("only charge.ts imports %s", (name) => {
    expect(importersOf(name)).toEqual(["billing/charge.ts"]);
  });

  test("only billing imports addDecimals", () => {
    expect(importersOf("addDecimals").filter((file) => !file.startsWith("billing/"))).toEqual([]);
  });

  test("only money.ts casts a value to an amount", () => {
    const made = files.filter((file) =>
      /\bas (?:Usd|Decimal)\b/.test(strip(readFileSync(new URL(file, SRC), "utf8"))),
    );
    expect(made).toEqual(["lib/money.ts"]);
  });
});
