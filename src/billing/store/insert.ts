// Puts a ledger's lines into the table.
// Each request is a row, which corrections change.

import { getField, getList, getText, parseJson, textIn } from "../../lib/json/json.ts";
import { type Decimal, formatDecimal, parseDecimal, subtractDecimals, toPico } from "../../lib/money.ts";
import { deriveAmounts } from "../charge.ts";
import { readLine } from "../ledger/check.ts";
import type { Column, Correction, Line } from "../ledger/line.ts";
import {
  AMOUNT_COLUMNS,
  FIELD_COLUMNS,
  type FieldColumn,
  KIND_COLUMNS,
  LINE_COLUMNS,
  NAME_COLUMNS,
  NAMES,
  type TableDatabase,
} from "./schema.ts";
import { weighRows } from "./weights.ts";

type Value = string | number | null;
type Values = Record<string, Value>;
type Amounts = Partial<Record<(typeof AMOUNT_COLUMNS)[number], Decimal | null>>;

const placeholders = (count: number): string => Array.from({ length: count }, () => "?").join(", ");
const FIND_NAMES = `SELECT who FROM names WHERE ${NAMES.map((name) => `${name} IS ?`).join(" AND ")}`;
const ADD_NAMES = `INSERT INTO names (${NAMES.join(", ")}) VALUES (${placeholders(NAMES.length)}) RETURNING who`;
const INSERT = `INSERT INTO lines VALUES (${placeholders(LINE_COLUMNS.length)})`;
const FIND = "SELECT line, exact, corrections FROM lines WHERE id = ? ORDER BY line LIMIT 1";
const CORRECT = `UPDATE lines SET official = ?, charge = ?, counted = ?, exact = ?, corrections = ? WHERE line = ?`;
/** Limits then count the charge, no longer an estimate. */
const FREE = `UPDATE lines SET counted = charge, exact = json_patch(exact, json_object('counted', exact ->> 'charge'))
  WHERE line = ?`;
const MAX_COUNT = 2 ** 31;

export interface Place {
  readonly line: number;
  readonly place: number;
}

export class Inserter {
  readonly #database: TableDatabase;
  readonly #before: number;
  /** Names of this transaction. Finding them in the database takes longer. */
  readonly #known = new Map<string, Value>();
  /** By how much the checksums of earlier rows changed (`weights.ts`). */
  weight = 0;
  paid = 0;

  constructor(database: TableDatabase, before: number) {
    this.#database = database;
    this.#before = before;
  }

  add(value: unknown, place: Place): void {
    const line = readLine(value);
    // The id is kept: a person may look for it.
    const id = textIn(value, "id") || null;
    if (line === null)
      return this.#run("INSERT INTO unreadable VALUES (?, ?, ?)", place.line, place.place, id);
    if ("corrects" in line) this.#correct(line, place);
    else if (!("mark" in line)) this.#addRequest(line, place);
    else if (line.accepts === undefined)
      this.#run("REPLACE INTO marks VALUES (?, ?)", line.id, JSON.stringify(line));
    else this.#run("DELETE FROM marks WHERE id = ?", line.accepts);
    // The cost of an earlier request is now known: limits stop counting the estimate.
    const replaced = "replaces" in line ? line.replaces : undefined;
    const [[number] = []] = replaced === undefined ? [] : this.#database.query(FIND).values(replaced.id);
    if (number !== undefined) this.#change(Number(number), FREE);
  }

  #run(sql: string, ...values: readonly Value[]): void {
    this.#database.query(sql).run(...values);
  }

  #addRequest(request: Line, { line, place }: Place): void {
    const { cache, usage, prices, parts, multiplier, provider_usd: named } = request;
    const amounts = readAmounts(request);
    const { official, charge } = amounts;
    const isFree = official === null || charge === null || charge.units === 0n || prices === null;
    const { columns, exact } = splitAmounts(
      {
        ...amounts,
        named: readUsd(named),
        missed: readUsd(cache?.usd),
        hour: isFree || (parts?.length ?? 1) > 1 ? null : deriveHour(usage, prices, multiplier),
      },
      request.paid_by,
    );
    const kinds = splitUsage(usage);
    // In the order of LINE_COLUMNS.
    this.#run(
      INSERT,
      line,
      this.#findNames(NAME_COLUMNS.map((column) => readColumn(request, column))),
      place,
      kinds["more"] ?? null,
      exact,
      null,
      ...KIND_COLUMNS.map((kind) => kinds[kind] ?? null),
      ...AMOUNT_COLUMNS.map((name) => columns[name] ?? null),
      ...FIELD_COLUMNS.map((column) => readColumn(request, column)),
    );
  }

  #findNames(names: readonly Value[]): Value {
    return this.#known.getOrInsertComputed(JSON.stringify(names), () => {
      const [[who] = []] = this.#database.query(FIND_NAMES).values(...names);
      return Number(who ?? this.#database.query(ADD_NAMES).values(...names)[0]?.[0]);
    });
  }

  #correct(correction: Correction, { line, place }: Place): void {
    const [found] = this.#database.query(FIND).values(correction.corrects);
    if (found === undefined) return;
    const [number, before, corrections] = found;
    const { columns, exact } = splitAmounts(readAmounts(correction), correction.paid_by, keepExact(before));
    const places = [...getList(parseJson(String(corrections))), [line, place]];
    const { official = null, charge = null, counted = null } = columns;
    this.#change(Number(number), CORRECT, official, charge, counted, exact, JSON.stringify(places));
  }

  #change(line: number, sql: string, ...values: readonly Value[]): void {
    const weigh = () => weighRows(this.#database, "lines WHERE line = $line", line);
    const before = weigh();
    this.#run(sql, ...values, line);
    const after = line > this.#before ? before : weigh();
    this.weight += after.weight - before.weight;
    this.paid += after.paid - before.paid;
  }
}

function readColumn(request: Line, { as, field, of }: FieldColumn): Value {
  return READ[as](getField(of === null ? request : request[of], field));
}

type Charged = Pick<Line, "official_usd" | "charge_usd" | "limit_usd">;

function readAmounts({ official_usd: official, charge_usd: charge, limit_usd: limit }: Charged) {
  return { official: readUsd(official), charge: readUsd(charge), counted: readUsd(limit ?? charge) };
}

function deriveHour(
  { cache_write_5m: count = 0 }: Line["usage"],
  prices: Line["prices"],
  multiplier: string,
): Decimal | null {
  if (count === 0) return null;
  const [short, long] = ["cache_write_5m", "cache_write_1h"].map((kind) =>
    readUsd(deriveAmounts({ usage: { [kind]: count }, prices, multiplier }).charge),
  );
  return short && long ? subtractDecimals(long, short) : null;
}

function readUsd(text: string | null | undefined): Decimal | null {
  return text === undefined || text === null ? null : parseDecimal(text);
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
  text: (value) => getText(value) || null,
  count: readCount,
  time: (value) => Date.parse(String(value)),
  json: (value) => (value === undefined ? null : JSON.stringify(value)),
  usd: () => null,
};

export function splitUsage(usage: Line["usage"]): Values {
  const columns: Values = {};
  const more: Record<string, number> = {};
  for (const [kind, count] of Object.entries(usage)) {
    const column = KIND_COLUMNS.find((each) => each === kind);
    if (column === undefined || readCount(count) === null) more[kind] = count;
    else columns[column] = count;
  }
  return { ...columns, more: Object.keys(more).length === 0 ? null : JSON.stringify(more) };
}

/** `kept`: exact amounts that a correction does not change. */
export function splitAmounts(amounts: Amounts, paidBy?: string, kept: object = {}) {
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

function keepExact(text: unknown): object {
  const before = parseJson(String(text));
  const kept = ["named", "missed", "hour"].map((name) => [name, getField(before, name)] as const);
  return Object.fromEntries(kept.filter(([, amount]) => amount !== undefined));
}
