// Rows in aligned columns. Without room, spare columns are cut, then left out, before others are cut.

import { escapeUnprintable } from "../../lib/text/printable.ts";
import { paint as paintText, printLines, readRoom } from "./terminal.ts";
import { alignText, measure } from "./text.ts";

interface Layout {
  readonly title: string;
  /** Numbers, which are never cut: without room, the column is left out. */
  readonly align?: "right";
  /** May be left out without room: the highest number first. */
  readonly spare?: number;
}

export interface Column<Row> extends Layout {
  readonly read: (row: Row) => string;
  readonly paint?: (text: string, row: Row) => string;
}

export interface Table<Row> {
  head(room: number): string;
  /** Columns are as wide as the widest cell so far: later rows align with earlier ones. */
  rows(rows: readonly Row[], room: number): string[];
  draw(rows: readonly Row[], room: number): string[];
}

const GAP = 2;
/** `plan inactive` fits. */
const CUT_CELLS = 13;
/** A text's cells beyond this never cost a column. */
const WHOLE_CELLS = 48;

export function createTable<Row>(columns: ReadonlyArray<Column<Row>>): Table<Row> {
  const widths = columns.map(({ title }) => measure(title));
  const write = (cells: readonly string[], room: number, row: Row | null): string => {
    const fitted = fitColumns(columns, widths, room);
    const shown = columns.flatMap(({ align, paint }, index) => {
      const width = fitted[index] ?? 0;
      return width === 0 ? [] : [{ paint, text: alignText(cells[index] ?? "", width, align) }];
    });
    const painted = shown.map(({ paint, text }, at) => {
      const whole = at === shown.length - 1 ? text.trimEnd() : text;
      return row === null || paint === undefined ? whole : paint(whole, row);
    });
    return painted.join(" ".repeat(GAP)).trimEnd();
  };
  const titles = columns.map(({ title }) => title);
  const head = (room: number): string => paintText("dim", write(titles, room, null));
  const writeRows = (rows: readonly Row[], room: number): string[] => {
    const cells = rows.map((row) => columns.map(({ read }) => escapeUnprintable(read(row))));
    for (const each of cells)
      each.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, measure(cell))));
    return rows.map((row, at) => write(cells[at] ?? [], room, row));
  };
  return {
    head,
    rows: writeRows,
    draw: (rows, room) => {
      // Rows first: they widen the columns.
      const lines = writeRows(rows, room);
      return [head(room), ...lines];
    },
  };
}

export function printTable<Row>(rows: readonly Row[], columns: ReadonlyArray<Column<Row>>): void {
  printLines(createTable(columns).draw(rows, readRoom()));
}

/** Zero: left out. */
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
  shrink(fitted, room, (index) => (isSpare(index) ? cut(index) : Number.POSITIVE_INFINITY));
  shrink(fitted, room, least(1));
  return fitted;
}

/** Takes cells from the widest column above its floor. */
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
  return shown.reduce((sum, width) => sum + width, GAP * (shown.length - 1));
}
