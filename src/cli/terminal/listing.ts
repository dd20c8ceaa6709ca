// Rows as a table. If it is too wide, spare columns are cut, then left out.

import { isObject } from "../../lib/json/json.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { paint as paintText, printJson, printLines, printNote, readRoom } from "./terminal.ts";
import {
  alignText,
  arePlain,
  formatAgo,
  formatAmount,
  formatBytes,
  formatDay,
  formatLocalSecond,
  formatMs,
  groupDigits,
  measure,
} from "./text.ts";

interface Layout {
  /** For numbers, which are never cut. */
  readonly align?: "right";
  /** If room is short, columns with a higher number are left out first. */
  readonly spare?: number;
}

interface Column<Row> extends Layout {
  readonly title: string;
  readonly read: (rows: readonly Row[]) => string[];
  readonly paint?: (text: string, row: Row) => string;
}

export type Table<Row extends object> = ReturnType<typeof createTable<Row>>;

const UNITS = {
  text: (value) => (typeof value === "string" ? value : [value].flat().join(", ")),
  count: String,
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

export type ListColumn<Row> = readonly [
  title: string,
  read: (keyof Row & string) | ((row: Row) => unknown),
  unit?: keyof typeof UNITS,
  layout?: Layout & Pick<Column<Row>, "paint">,
];

export type Columns<Row> = ReadonlyArray<ListColumn<Row>>;

function readColumns<Row extends object>(rows: Columns<Row>): Column<Row>[] {
  return rows.map(([title, read, unit = "text", layout]) => {
    const find = typeof read === "function" ? read : (row: Row): unknown => row[read];
    const write = (row: Row): string => {
      const value = find(row);
      if (value === null || value === undefined) return "";
      return (unit === "usd" && describeUnpriced(row)) || UNITS[unit](value);
    };
    return {
      title,
      ...(NUMBERS.has(unit) && { align: "right" as const }),
      ...layout,
      read: (all) => (unit === "count" ? groupDigits(all.map(find).join("\n")).split("\n") : all.map(write)),
    };
  });
}

type Priced = Partial<Record<"unpriced" | "requests" | "compared", unknown>>;

function describeUnpriced({ unpriced = 0, requests, compared }: Priced): string {
  if (unpriced !== 0 && unpriced === requests) return "unpriced";
  return compared === 0 ? "-" : "";
}

const BETWEEN = "  ";
/** A cut cell is so wide that `plan inactive` fits. */
const CUT_CELLS = 13;
/** Spare columns are left out before other texts are cut below this width. */
const WHOLE_CELLS = 48;

interface Cells {
  readonly texts: readonly string[];
  readonly isPlain: boolean;
}

/** The blanks that fill a cell, by the length of its text. */
function listGaps(width: number): string[] {
  return Array.from({ length: width + 1 }, (_, length) => " ".repeat(width - length));
}

export function createTable<Row extends object>(listed: Columns<Row>) {
  const columns = readColumns(listed);
  const widths = columns.map(({ title }) => measure(title));
  /** Takes few steps for a cell, because it runs before the JIT compiles it. */
  const write = (cells: readonly Cells[], room: number, rows: readonly Row[]): string[] => {
    const fitted = fitColumns(columns, widths, room);
    const last = fitted.findLastIndex((width) => width > 0);
    const shown = columns.flatMap(({ align, paint }, index) => {
      const width = fitted[index] ?? 0;
      const own = cells[index];
      if (own === undefined || width === 0) return [];
      const painting = rows.length === 0 ? undefined : paint;
      const gaps = own.isPlain && painting === undefined ? listGaps(width) : [];
      const place = align === "right" ? 1 : 0;
      return [{ ...own, width, align, paint: painting, gaps, place, isLast: index === last }];
    });
    const pieces = shown.flatMap(() => ["", "", BETWEEN]).slice(0, -1);
    return (shown[0]?.texts ?? []).map((_, at) => {
      let piece = 0;
      for (const { texts, width, align, paint, gaps, place, isLast } of shown) {
        let text = texts[at] ?? "";
        const gap = gaps[text.length];
        if (gap === undefined) text = alignText(text, width, align);
        const row = rows[at];
        if (paint !== undefined && row !== undefined) text = paint(isLast ? text.trimEnd() : text, row);
        pieces[piece + place] = text;
        pieces[piece + 1 - place] = gap ?? "";
        piece += 3;
      }
      return pieces.join("").trimEnd();
    });
  };
  const titles = columns.map(({ title }) => ({ texts: [title], isPlain: true }));
  const head = (room: number): string => paintText("dim", write(titles, room, []).join(""));
  const writeRows = (rows: readonly Row[], room: number): string[] => {
    const cells = columns.map(({ read }, index) => {
      const all = read(rows);
      const isPlain = arePlain(all);
      const texts = isPlain ? all : all.map((text) => escapeText(text));
      let most = widths[index] ?? 0;
      for (const text of texts) if (!isPlain || text.length > most) most = Math.max(most, measure(text));
      widths[index] = most;
      return { texts, isPlain };
    });
    return write(cells, room, rows);
  };
  return {
    head,
    rows: writeRows,
    draw: (rows: readonly Row[], room: number): string[] => {
      const lines = writeRows(rows, room);
      return [head(room), ...lines];
    },
  };
}

export function drawRows<Row extends object>(rows: readonly Row[], columns: Columns<Row>): string[] {
  return rows.length === 0 ? [] : createTable(columns).draw(rows, readRoom());
}

function fitColumns(columns: readonly Layout[], widths: readonly number[], room: number): number[] {
  const fitted = [...widths];
  const isSpare = (index: number): boolean => columns[index]?.spare !== undefined;
  const least = (most: number) => (index: number) =>
    columns[index]?.align === "right" ? (widths[index] ?? 0) : Math.min(widths[index] ?? 0, most);
  const [cut, whole] = [least(CUT_CELLS), least(WHOLE_CELLS)];
  const rankOf = (index: number): number => columns[index]?.spare ?? -1;
  for (const at of [...columns.keys()].sort((a, b) => rankOf(b) - rankOf(a) || b - a)) {
    const shown = [...columns.keys()].filter((index) => (fitted[index] ?? 0) > 0);
    const needed = shown.map((index) => (isSpare(at) && !isSpare(index) ? whole(index) : cut(index)));
    if (shown.length > 1 && sumWidths(needed) > room) fitted[at] = 0;
  }
  shrink(fitted, room, (index) => (isSpare(index) ? cut(index) : Infinity));
  shrink(fitted, room, least(1));
  return fitted;
}

function shrink(widths: number[], room: number, floor: (index: number) => number): void {
  for (let excess = sumWidths(widths) - room; excess > 0; excess -= 1) {
    const loose = widths.map((width, index) => (width > floor(index) ? width : 0));
    const widest = Math.max(...loose);
    if (widest === 0) return;
    widths[loose.indexOf(widest)] = widest - 1;
  }
}

function sumWidths(widths: readonly number[]): number {
  const shown = widths.filter((width) => width > 0);
  return shown.reduce((sum, width) => sum + width, BETWEEN.length * (shown.length - 1));
}

export interface Found<Row> {
  readonly rows: readonly Row[];
  readonly document?: unknown;
  readonly empty?: string;
  readonly notes?: readonly string[];
  readonly exitStatus?: number;
}

type Report<Row> = (...given: never[]) => Found<Row> | Promise<Found<Row>>;

export function list<Module, Row extends object>(
  load: () => Promise<Module>,
  pick: (module: Module) => Report<Row>,
  columns: Columns<Row>,
): (...given: never[]) => Promise<number | undefined> {
  return async (...given) => {
    const { rows, document = rows, empty, notes = [], exitStatus } = await pick(await load())(...given);
    const flags: unknown = given.at(-1);
    if (isObject(flags) && flags["json"] === true) printJson(document);
    else if (rows.length > 0) {
      printLines(drawRows(rows, columns));
      for (const note of notes) printNote(note);
    } else if (empty !== undefined) printNote(empty);
    return exitStatus;
  };
}
