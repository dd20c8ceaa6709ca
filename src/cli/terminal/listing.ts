// A listing as data: columns of the documents of --json.

import { isObject } from "../../lib/json/json.ts";
import { type Column, createTable } from "./table.ts";
import { printJson, printLines, printNote, readRoom } from "./terminal.ts";
import { formatAgo, formatAmount, formatBytes, formatDay, formatLocalSecond, formatMs } from "./text.ts";

const UNITS = {
  text: (value) => [value].flat().join(", "),
  count: (value) => Number(value).toLocaleString("en-US"),
  exact: String,
  usd: (value) => formatAmount(String(value)),
  /** Rounded down: 100% means all of it. */
  rate: (value) => `${Math.floor(Number(value) * 100)}%`,
  bytes: (value) => formatBytes(Number(value)),
  ms: (value) => formatMs(Number(value)),
  ago: (value) => formatAgo(new Date(String(value)), new Date()),
  day: (value) => formatDay(String(value)),
  second: (value) => formatLocalSecond(new Date(String(value))),
} as const satisfies Record<string, (value: unknown) => string>;
const NUMBERS: ReadonlySet<string> = new Set(["count", "exact", "usd", "rate", "bytes", "ms"]);

/** Null shows nothing. */
export type ListColumn<Row> = readonly [
  title: string,
  read: (keyof Row & string) | ((row: Row) => unknown),
  unit?: keyof typeof UNITS,
  layout?: Omit<Partial<Column<Row>>, "title" | "read">,
];

export function createColumns<Row extends object>(rows: ReadonlyArray<ListColumn<Row>>): Column<Row>[] {
  return rows.map(([title, read, unit = "text", layout]) => ({
    title,
    ...(NUMBERS.has(unit) && { align: "right" as const }),
    ...layout,
    read: (row) => {
      const value: unknown = typeof read === "function" ? read(row) : row[read];
      if (value === null || value === undefined) return "";
      const isSum = unit === "usd" && "unpriced" in row && "requests" in row;
      if (isSum && row.unpriced !== 0 && row.unpriced === row.requests) return "unpriced";
      return UNITS[unit](value);
    },
  }));
}

export function drawRows<Row extends object>(
  rows: readonly Row[],
  columns: ReadonlyArray<ListColumn<Row>>,
): string[] {
  return rows.length === 0 ? [] : createTable(createColumns(columns)).draw(rows, readRoom());
}

export interface Found<Row> {
  readonly rows: readonly Row[];
  readonly document?: unknown;
  readonly empty?: string;
  readonly notes?: readonly string[];
  readonly exitStatus?: number;
}

type Report<Row> = (...given: never[]) => Found<Row> | Promise<Found<Row>>;

export function list<Row extends object>(
  load: () => Promise<Report<Row>>,
  columns: ReadonlyArray<ListColumn<Row>>,
): (...given: never[]) => Promise<number | undefined> {
  return async (...given) => {
    const { rows, document = rows, empty, notes = [], exitStatus } = await (await load())(...given);
    const flags: unknown = given.at(-1);
    if (isObject(flags) && flags["json"] === true) printJson(document);
    else if (rows.length > 0) {
      printLines(drawRows(rows, columns));
      for (const note of notes) printNote(note);
    } else if (empty !== undefined) printNote(empty);
    return exitStatus;
  };
}
