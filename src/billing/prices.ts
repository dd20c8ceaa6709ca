// What a model's tokens and calls cost, at a moment: the built-in book, and
// the config's own prices, which win. This file finds prices; which of them a
// request pays is tariff.ts, how much that is charge.ts. The book is made by prices/build.ts.

import { fieldOf, isObject, listOf } from "../lib/json/json.ts";
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
  /** The prices of the model that has exactly this id, by time; null where none has. */
  find(id: string): readonly Period[] | null;
}

export interface Period {
  /** The first moment; -Infinity: always. */
  readonly from: number;
  readonly price: Price;
}

/** Model id → kind → decimal, as the config has them. */
export type Overrides = ReadonlyMap<string, Rates>;

/** Costs nothing at the start: the book is looked through when a price is first asked for, an entry when its is. */
export function loadPriceBook(): PriceBook {
  const revision = bookFile.revision;
  let entries: ReadonlyMap<string, unknown> | null = null;
  const read = new Map<unknown, readonly Period[]>();
  return {
    revision,
    find(id) {
      entries ??= indexEntries();
      const entry = entries.get(id);
      if (entry === undefined) return null;
      const periods = read.get(entry) ?? readEntry(entry, revision);
      read.set(entry, periods);
      return periods;
    },
  };
}

function indexEntries(): ReadonlyMap<string, unknown> {
  const entries = new Map<string, unknown>();
  for (const entry of bookFile.models) for (const id of entry.ids) entries.set(id, entry);
  return entries;
}

/** The models that the book knows, and who makes them. */
export function listBookedModels(): { readonly provider: string; readonly id: string }[] {
  return bookFile.models.flatMap(({ provider, ids }) => ids.map((id) => ({ provider, id })));
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
    const periods = book.find(name);
    if (periods !== null) return periods.findLast((period) => period.from <= at.getTime())?.price ?? null;
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
