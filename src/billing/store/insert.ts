// Puts lines of a ledger into its table. A request is a row, and a correction changes it: the ledger has the history.

import { getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import { type Decimal, formatDecimal, parseUsd, toPico, type Usd, ZERO_USD } from "../../lib/money.ts";
import { type Derivable, deriveCacheSaving } from "../charge.ts";
import { cacheSchema, type Column } from "../ledger/line.ts";
import { type Row, rowOf } from "../ledger/row.ts";
import {
  AMOUNT_COLUMNS,
  CHECKSUM,
  COLUMN_NAMES,
  FIELD_COLUMNS,
  KIND_COLUMNS,
  type TableDatabase,
} from "./schema.ts";

type Value = string | number | null;
type Values = Record<string, Value>;
type Amounts = Partial<Record<(typeof AMOUNT_COLUMNS)[number], Decimal | null>>;

const INSERT = `INSERT INTO requests VALUES (${COLUMN_NAMES.map(() => "?").join(", ")})`;
const FIND = "SELECT line, exact, corrections FROM requests WHERE id = ? ORDER BY line LIMIT 1";
const CORRECT = `UPDATE requests SET official = ?, charge = ?, counted = ?, exact = ?, corrections = ? WHERE line = ?`;
/** Limits count the charge. */
const FREE = `UPDATE requests SET counted = charge, exact = json_patch(exact, json_object('counted', exact ->> 'charge'))
  WHERE line = ?`;
const MAX_COUNT = 2 ** 31;

export interface Place {
  readonly line: number;
  readonly place: number;
}

export class Inserter {
  readonly #database: TableDatabase;
  readonly #first: number;
  /** By how much the checksum of earlier rows has changed. */
  #change = 0;

  /** `first`: the number of the first line. */
  constructor(database: TableDatabase, first: number) {
    this.#database = database;
    this.#first = first;
  }

  /** What the lines add to the number of rows, and to the checksum. */
  get added(): readonly [requests: number, checksum: number] {
    const [[requests, checksum] = []] = this.#database
      .query(`${CHECKSUM} WHERE line >= ?`)
      .values(this.#first);
    return [Number(requests), Number(checksum) + this.#change];
  }

  /** `line`: its JSON. */
  add(line: unknown, place: Place): void {
    const row = rowOf(line);
    const at = Date.parse(row?.time ?? "");
    if (row === null || Number.isNaN(at)) this.#addUnreadable(line, place);
    else if (row.line["mark"] !== undefined) this.#addMark(row);
    else if (row.was !== null) this.#correct(row, place);
    else this.#addRequest(row, place);
    // The real cost of an earlier request is known now: limits do not count its estimate any more.
    const replaced = readText(getField(row?.line["replaces"], "id"));
    const [[number] = []] = replaced === null ? [] : this.#database.query(FIND).values(replaced);
    if (number !== undefined) this.#update(number, FREE);
  }

  /** `values`: all but the last one, which is the number of the line. */
  #update(line: unknown, sql: string, ...values: readonly Value[]): void {
    const number = Number(line);
    const check = (): number =>
      number >= this.#first
        ? 0
        : Number(this.#database.query(`${CHECKSUM} WHERE line = ?`).values(number)[0]?.[1]);
    this.#change -= check();
    this.#database.query(sql).run(...values, number);
    this.#change += check();
  }

  /** A person may look for its id. */
  #addUnreadable(value: unknown, { line, place }: Place): void {
    const id = readText(getField(value, "id"));
    this.#database.query("INSERT INTO unreadable VALUES (?, ?, ?)").run(line, place, id);
  }

  #addMark({ line }: Row): void {
    const accepted = readText(line["accepts"]);
    if (accepted !== null) this.#database.query("DELETE FROM marks WHERE id = ?").run(accepted);
    else
      this.#database.query("REPLACE INTO marks VALUES (?, ?)").run(String(line["id"]), JSON.stringify(line));
  }

  #addRequest(row: Row, { line, place }: Place): void {
    const { paidBy } = row;
    const { saved, miss, missed } = readCache(row);
    const named = readUsd(row.line["provider_usd"]);
    const amounts = {
      official: row.official,
      charge: usd(row.charge),
      counted: usd(row.limit ?? row.charge),
      named,
      saved,
      missed,
    };
    const { columns, exact } = splitAmounts(amounts, paidBy);
    const fields = FIELD_COLUMNS.map(({ name, as, path }): [string, Value] => {
      const value = path.reduce<unknown>((object, field) => getField(object, field), row.line);
      return [name, READ[as](value)];
    });
    const values: Values = {
      ...Object.fromEntries(fields),
      ...splitUsage(row.usage),
      ...columns,
      line,
      place,
      exact,
      // One that cannot be read is not there.
      miss,
    };
    this.#database.query(INSERT).run(...COLUMN_NAMES.map((name) => values[name] ?? null));
  }

  /** One whose request is not in the ledger changes nothing. */
  #correct(row: Row, { line, place }: Place): void {
    const [found] = this.#database.query(FIND).values(String(row.line["corrects"]));
    if (found === undefined) return;
    const [number, before, corrections] = found;
    const amounts = {
      official: row.official,
      charge: usd(row.charge),
      counted: usd(row.limit ?? row.charge),
    };
    const { columns, exact } = splitAmounts(amounts, row.paidBy, keepExact(before));
    const places = [...getList(parseJson(String(corrections))), [line, place]];
    const { official = null, charge = null, counted = null } = columns;
    this.#update(number, CORRECT, official, charge, counted, exact, JSON.stringify(places));
  }
}

function usd(amount: Usd | null): Decimal | null {
  return amount === null ? null : { units: amount, scale: 12 };
}

/** To a pico-dollar. Null: it is not what a line should have. */
function readUsd(value: unknown): Decimal | null {
  try {
    return typeof value === "string" ? usd(parseUsd(value)) : null;
  } catch {
    return null;
  }
}

function readText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function readCount(value: unknown): number | null {
  const count = Number(value);
  return (typeof value === "number" || value === true) &&
    Number.isInteger(count) &&
    Math.abs(count) < MAX_COUNT
    ? count
    : null;
}

const READ: Readonly<Record<Column["as"], (value: unknown) => Value>> = {
  // An empty name is none.
  text: (value) => readText(value) || null,
  count: readCount,
  time: (value) => Date.parse(String(value)),
  json: (value) => (value === undefined ? null : JSON.stringify(value)),
  usd: () => null,
};

function splitUsage(usage: Row["usage"]): Values {
  const columns: Values = {};
  const more: Record<string, number> = {};
  for (const [kind, count] of Object.entries(usage)) {
    const column = KIND_COLUMNS.find((each) => each === kind);
    if (column === undefined || readCount(count) === null) more[kind] = count;
    else columns[column] = count;
  }
  return { ...columns, more: Object.keys(more).length === 0 ? null : JSON.stringify(more) };
}

interface SplitAmounts {
  readonly columns: Values;
  readonly exact: string | null;
}

/** `kept`: exact amounts that stay. */
function splitAmounts(amounts: Amounts, paidBy: string | undefined, kept: object = {}): SplitAmounts {
  const columns: Values = {};
  const exact: Record<string, unknown> = { ...kept };
  for (const name of AMOUNT_COLUMNS) {
    const amount = amounts[name] ?? null;
    if (amount === null) continue;
    const pico = toPico(amount);
    columns[name] = pico ?? 0;
    if (pico === null) exact[name] = formatDecimal(amount);
  }
  const payer = paidBy === "plan" ? "plan" : "overage";
  if (exact["official"] !== undefined && paidBy !== undefined) exact[payer] = exact["official"];
  return { columns, exact: Object.keys(exact).length === 0 ? null : JSON.stringify(exact) };
}

/** The exact amounts that no correction states again. */
function keepExact(text: unknown): object {
  const before = parseJson(String(text));
  const kept = ["named", "saved", "missed"].map((name) => [name, getField(before, name)] as const);
  return Object.fromEntries(kept.filter(([, amount]) => amount !== undefined));
}

interface CacheEffect {
  readonly saved: Decimal | null;
  readonly missed: Decimal | null;
  readonly miss: string | null;
}

/** Only `verify` checks that a line is right: what cannot be read saves and misses nothing. */
function readCache(row: Row): CacheEffect {
  const { cache } = row.line;
  const { data } = cache === undefined ? { data: undefined } : cacheSchema.safeParse(cache);
  return {
    saved: usd(readSaving(row)),
    missed: readUsd(data?.usd),
    miss: data === undefined ? null : JSON.stringify(data),
  };
}

function readSaving({ official, charge, usage, line }: Row): Usd | null {
  if (official === null || charge === null || charge === ZERO_USD) return null;
  try {
    const { multiplier, prices, parts } = line;
    if (typeof multiplier !== "string" || !isObject(prices)) return null;
    const own = { usage, prices: readPrices(prices), multiplier, official };
    return deriveCacheSaving(parts === undefined ? own : { ...own, parts: readParts(parts) });
  } catch {
    return null;
  }
}

function readParts(parts: unknown): NonNullable<Derivable["parts"]> {
  return getList(parts).map((part) => {
    const [usage, prices] = [getField(part, "usage"), getField(part, "prices")];
    const counts = Object.entries(isObject(usage) ? usage : {}).map(([kind, count]) => [kind, Number(count)]);
    return { usage: Object.fromEntries(counts), prices: isObject(prices) ? readPrices(prices) : null };
  });
}

function readPrices(prices: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const kind in prices) texts[kind] = String(prices[kind]);
  return texts;
}
