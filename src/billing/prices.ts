// What a model's tokens and calls cost, at a moment: the built-in book, and
// the config's own prices, which win. This file finds prices; which of them a
// request pays, and how much that is, is charge.ts. The book is made by prices/build.ts.

import { fieldOf, isObject, listOf } from "../lib/json.ts";
import bookFile from "./prices/book.json";

/** Kind of usage → USD, a decimal: per million tokens, or, with `_per_1k` at the kind's end, per thousand calls. */
export type Rates = Readonly<Record<string, string>>;

export interface Price {
  /** As the ledger names it: `book 2026-11-20`, `config`. */
  readonly source: string;
  readonly rates: Rates;
  /** The whole request costs these rates when its input is of more than `over` tokens. Ascending. */
  readonly tiers: readonly { readonly over: number; readonly rates: Rates }[];
  /** `service_tier=flex` → what all tokens' prices are multiplied by. */
  readonly factors: Rates;
}

export interface PriceBook {
  /** The day on which the book was last looked through. */
  readonly revision: string;
  /** By id; an entry is read when it is first asked for. */
  readonly entries: ReadonlyMap<string, unknown>;
  readonly read: Map<unknown, readonly Period[]>;
}

interface Period {
  /** The first moment; -Infinity: always. */
  readonly from: number;
  readonly price: Price;
}

/** Model id → kind → decimal, as the config has them. */
export type Overrides = ReadonlyMap<string, Rates>;

export function loadPriceBook(file: unknown = bookFile): PriceBook {
  const entries = listOf(fieldOf(file, "models")).flatMap((entry) =>
    listOf(fieldOf(entry, "ids")).map((id): [string, unknown] => [String(id), entry]),
  );
  return { revision: String(fieldOf(file, "revision")), entries: new Map(entries), read: new Map() };
}

/** A dated snapshot (`-20250929`, `-2025-08-07`, `@20250929`) or a stable version (`-001`) of a model costs what the model costs. */
const SNAPSHOT = /(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-00\d)$/;

/** The names under which a model may stand in a list: its own, and that of the model it is a snapshot of. Never a part of it. */
function namesOf(model: string): readonly string[] {
  const own = model.startsWith("models/") ? model.slice("models/".length) : model;
  const plain = own.replace(SNAPSHOT, "");
  return plain === own ? [own] : [own, plain];
}

/** The price of a model at a moment; null where none is known. */
export function findPrice(book: PriceBook, overrides: Overrides, model: string, at: Date): Price | null {
  const names = namesOf(model);
  return findConfigured(book, overrides, names, at) ?? findBooked(book, names, at);
}

/**
 * A configured price is whole: kinds that it does not name have no price, whatever the book says. Only the factors
 * of service tiers, which a config can't name, are the book's.
 */
function findConfigured(
  book: PriceBook,
  overrides: Overrides,
  names: readonly string[],
  at: Date,
): Price | null {
  for (const name of names) {
    const rates = overrides.get(name);
    if (rates !== undefined) {
      return { source: "config", rates, tiers: [], factors: findBooked(book, names, at)?.factors ?? {} };
    }
  }
  return null;
}

function findBooked(book: PriceBook, names: readonly string[], at: Date): Price | null {
  for (const name of names) {
    const entry = book.entries.get(name);
    if (entry === undefined) continue;
    const periods = book.read.get(entry) ?? readEntry(entry, book.revision);
    book.read.set(entry, periods);
    return periods.findLast((period) => period.from <= at.getTime())?.price ?? null;
  }
  return null;
}

function readEntry(entry: unknown, revision: string): readonly Period[] {
  const factors = readRates(fieldOf(entry, "factors"));
  return listOf(fieldOf(entry, "periods")).map((period) => {
    const from = fieldOf(period, "from");
    const tiers = listOf(fieldOf(period, "tiers")).map((tier) => ({
      over: Number(fieldOf(tier, "over")),
      rates: readRates(fieldOf(tier, "rates")),
    }));
    return {
      from: typeof from === "string" ? Date.parse(from) : Number.NEGATIVE_INFINITY,
      price: { source: `book ${revision}`, rates: readRates(fieldOf(period, "rates")), tiers, factors },
    };
  });
}

function readRates(value: unknown): Rates {
  const entries = isObject(value) ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.flatMap(([kind, rate]) => (typeof rate === "string" ? [[kind, rate]] : [])),
  );
}
