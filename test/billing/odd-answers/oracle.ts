// Checks with exact fractions what an odd answer costs, from its bytes to its amounts. The tests next to this file repeat
// the prices of the book, so that a changed price makes them fail.

import { expect, test } from "bun:test";
import { assess, type Assessment } from "../../../src/billing/assess.ts";
import { type Charge, computeCharge } from "../../../src/billing/charge.ts";
import { loadBook } from "../../../src/billing/prices.ts";
import type { Meter } from "../../../src/billing/usage.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { openEmbeddingsMeter } from "../../../src/dialects/meters/calls.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";
import { openResponsesMeter } from "../../../src/dialects/meters/responses.ts";

/** A count and its price, USD per million. */
export type Term = readonly [count: number | bigint, price: string];

/** Reads a text such as `100 × 0.5, 3 × 2.5`: counts, and the price of each. */
export function pay(text: string): Term[] {
  return text.split(", ").map((each) => {
    const [count = "", price = ""] = each.split(" × ");
    return [BigInt(count), price];
  });
}
type Dialect = "messages" | "responses" | "content" | "embeddings" | "chat";

interface Case {
  readonly id: string;
  readonly dialect: Dialect;
  /** The requested model. */
  readonly ask: string;
  readonly body: string;
  /** The expected basis. The default is "exact". */
  readonly basis?: string;
  readonly terms?: readonly Term[];
  /** The counts of calls, each with the price of a thousand calls in USD. */
  readonly calls?: readonly Term[];
  readonly factor?: string;
  readonly suspect?: boolean;
  /** The counts that have a price, if others have none. Their cost is the least that the answer costs. */
  readonly least?: readonly Term[];
  readonly isFree?: boolean;
  readonly pricedAs?: string;
}

interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

function read(decimal: string): Fraction {
  const [whole = "", decimals = ""] = decimal.split(".");
  return { over: BigInt(whole + decimals), under: 10n ** BigInt(decimals.length) };
}

const times = (one: Fraction, other: Fraction): Fraction => ({
  over: one.over * other.over,
  under: one.under * other.under,
});
const plus = (one: Fraction, other: Fraction): Fraction => ({
  over: one.over * other.under + other.over * one.under,
  under: one.under * other.under,
});
const ZERO: Fraction = { over: 0n, under: 1n };

function sum(terms: readonly Term[], each: bigint): Fraction {
  const amounts = terms.map(([count, price]) => times(read(price), { over: BigInt(count), under: each }));
  return amounts.reduce(plus, ZERO);
}

function amountOf({ factor = "1", calls = [] }: Case, terms: readonly Term[]): Fraction {
  return plus(times(sum(terms, 1_000_000n), read(factor)), sum(calls, 1000n));
}

/** Rounds an amount at 12 decimals, half away from zero. */
function round(amount: Fraction): Fraction {
  const under = 10n ** 12n;
  return { over: (2n * amount.over * under + amount.under) / (2n * amount.under), under };
}

function isEqual(text: string | null, { over, under }: Fraction): boolean {
  if (text === null) return false;
  const own = read(text);
  return own.over * under === over * own.under;
}

const METERS: Readonly<Record<Dialect, (contentType: string) => Meter>> = {
  messages: openMessagesMeter,
  responses: openResponsesMeter,
  content: openContentMeter,
  embeddings: openEmbeddingsMeter,
  chat: openChatMeter,
};

/** With this multiplier, most amounts have more than 12 decimals. */
const MULTIPLIER = "0.3333337";
const book = loadBook();

export function testCases(cases: readonly Case[]): void {
  test.each(cases.map((each): [string, Case] => [each.id, each]))(
    "an answer costs what a second calculation with exact fractions gives: %s",
    (_, each) => checkCase(each),
  );
}

function checkCase(each: Case): void {
  const { assessment, charge } = bill(each);
  const basis = assessment.basis === "unknown" || charge.charge !== null ? assessment.basis : "unpriced";
  expect(basis).toBe(each.basis ?? "exact");
  expect(assessment.suspect !== null).toBe(each.suspect ?? basis === "unknown");
  if (basis === "unknown") return;
  expect(charge.pricedAs).toBe(each.pricedAs ?? null);
  checkAmounts(each, charge);
}

function bill(each: Case): { readonly assessment: Assessment; readonly charge: Charge } {
  const streamed = !each.body.startsWith("{");
  const meter = METERS[each.dialect](streamed ? "text/event-stream" : "application/json");
  meter.see(Buffer.from(each.body));
  const reading = meter.read();
  const assessment = assess({ outcome: "complete", status: 200, reading, streamed, estimatedInput: 1 });
  const charge = computeCharge({
    parts: assessment.parts,
    tariff: reading.tariff,
    model: reading.model,
    requested: each.ask,
    book,
    overrides: new Map(),
    unbilled: assessment.unbilled,
    at: new Date("2026-11-22T12:00:00Z"),
    multiplier: MULTIPLIER,
  });
  return { assessment, charge };
}

function checkAmounts(each: Case, { official, charge, atLeast }: Charge): void {
  const multiplied = (terms: readonly Term[]): Fraction =>
    round(times(amountOf(each, terms), read(MULTIPLIER)));
  if (each.least !== undefined) expect(isEqual(atLeast, multiplied(each.least))).toBe(true);
  if (each.basis === "unpriced") {
    expect([official, charge]).toEqual([null, null]);
    return;
  }
  const { terms = [] } = each;
  expect(terms.length > 0).toBe(each.isFree !== true);
  expect([official, isEqual(official, amountOf(each, terms))]).toEqual([official, true]);
  expect([charge, isEqual(charge, multiplied(terms))]).toEqual([charge, true]);
}

export type Wanted = Omit<Case, "id" | "dialect" | "ask" | "body">;

/** Collects the cases of a test. */
export function collectCases() {
  const cases: Case[] = [];
  const add =
    (dialect: Dialect) =>
    (id: string, ask: string, body: string, wanted: Wanted): void =>
      void cases.push({ id, dialect, ask, body, ...wanted });
  return { cases, add };
}
