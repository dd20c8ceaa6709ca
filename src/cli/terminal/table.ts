// The table engine: rows in aligned columns, printed all at once or one after the
// other. Where the terminal is narrow, columns are left out before a name is cut,
// and digits are never cut. Pure but for the widths that a table remembers.

import { escapeUnprintable } from "../../lib/text/printable.ts";
import { paint as paintText, printLines, readRoom } from "./terminal.ts";
import { alignText, measure } from "./text.ts";

interface Layout {
  readonly title: string;
  /** Numbers are aligned on the right and never cut: without room for all digits, the column is left out. */
  readonly align?: "right";
  /** This column identifies a row, so it is cut last. Without any such column, the first one is the name. */
  readonly name?: true;
  /** May be left out where there is no room: of these columns, the highest number goes first. */
  readonly spare?: number;
  /** Cells below which text is not cut while anything else can give way. */
  readonly least?: number;
  /** Text is cut to this on a terminal. */
  readonly most?: number;
  /** A cell as wide as cells will usually be. */
  readonly usual?: string;
}

export interface Column<Row> extends Layout {
  readonly read: (row: Row) => string;
  /** Adds colour to a cell's text, which is already cut and aligned. */
  readonly paint?: (text: string, row: Row) => string;
}

export interface Table<Row> {
  /** `room` is the width of a terminal, or infinite. */
  head(room: number): string;
  /** Columns become as wide as the widest cell so far, so that later rows align with earlier ones. */
  rows(rows: readonly Row[], room: number): string[];
  draw(rows: readonly Row[], room: number): string[];
}

const GAP = 2;
const DEFAULT_LEAST = 8;

export function createTable<Row>(columns: ReadonlyArray<Column<Row>>): Table<Row> {
  const widths = columns.map(({ title, usual = "" }) => Math.max(measure(title), measure(usual)));
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
      // First the rows: they widen the columns.
      const lines = writeRows(rows, room);
      return [head(room), ...lines];
    },
  };
}

export function printTable<Row>(rows: readonly Row[], columns: ReadonlyArray<Column<Row>>): void {
  printLines(createTable(columns).draw(rows, readRoom()));
}

/** The width of each column; 0: it is left out. */
function fitColumns(columns: readonly Layout[], widths: readonly number[], room: number): number[] {
  if (room === Number.POSITIVE_INFINITY) return [...widths];
  const hasNames = columns.some(({ name }) => name === true);
  const isName = (index: number): boolean => (hasNames ? columns[index]?.name === true : index === 0);
  const isText = (index: number): boolean => columns[index]?.align !== "right";
  const fitted = columns.map(({ most = room }, index) =>
    Math.min(isText(index) ? most : room, widths[index] ?? 0),
  );
  const least = columns.map(({ title, least: few = Math.max(DEFAULT_LEAST, measure(title)) }, index) =>
    Math.min(isText(index) ? few : room, fitted[index] ?? 0),
  );
  // Spare columns go before a name is cut; then the others, from the right, and names last.
  const rankOf = (index: number): number => columns[index]?.spare ?? -1 - Number(isName(index));
  for (const at of [...columns.keys()].sort((a, b) => rankOf(b) - rankOf(a) || b - a)) {
    const needed = fitted.flatMap((width, index) => {
      if (width === 0) return [];
      return rankOf(at) >= 0 && isName(index) ? width : (least[index] ?? 0);
    });
    if (needed.length > 1 && sumWidths(needed) > room) fitted[at] = 0;
  }
  shrink(fitted, room, (index) => (isText(index) && !isName(index) ? (least[index] ?? 0) : null));
  shrink(fitted, room, (index) => (isText(index) ? 1 : null));
  return fitted;
}

/** Takes from the widest column of which `floor` is not null, down to that. */
function shrink(widths: number[], room: number, floor: (index: number) => number | null): void {
  for (let excess = sumWidths(widths) - room; excess > 0; excess -= 1) {
    const loose = widths.map((width, index) => (width > (floor(index) ?? width) ? width : 0));
    const widest = Math.max(...loose);
    if (widest === 0) return;
    widths[loose.indexOf(widest)] = widest - 1;
  }
}

function sumWidths(widths: readonly number[]): number {
  const shown = widths.filter((width) => width > 0);
  return shown.reduce((sum, width) => sum + width, GAP * (shown.length - 1));
}
