// Rows that come one after the other and still stand in columns: a column grows
// with what it has shown, and on a narrow terminal the least important give way. Pure but for that memory.

import { alignText, measure, stripControls } from "./text.ts";

export interface FlexColumn {
  readonly title: string;
  readonly align?: "right";
  /** The lowest stays longest when there is no room for all. */
  readonly rank: number;
  /** Cells that it needs to say anything, and the most that it may take where room has an end. */
  readonly least: number;
  readonly most: number;
}

/** Draws a cell's text, which is cut and aligned by then. */
export type PaintCell = (column: FlexColumn, text: string) => string;

export interface FlexTable {
  /** `room` is the width of a terminal, or infinite. */
  head(room: number): string;
  row(cells: readonly string[], room: number, paint?: PaintCell): string;
}

const GAP = 2;

/** `expected`: a cell for each column, as wide as cells will usually be. */
export function createFlexTable(columns: readonly FlexColumn[], expected: readonly string[] = []): FlexTable {
  const widths = columns.map(({ title }, index) => Math.max(measure(title), measure(expected[index] ?? "")));
  const write = (cells: readonly string[], room: number, paint: PaintCell): string => {
    const fitted = fitColumns(columns, widths, room);
    const shown = columns.flatMap((column, index) => {
      const width = fitted[index] ?? 0;
      return width === 0 ? [] : [paint(column, alignText(cells[index] ?? "", width, column.align))];
    });
    return shown.join(" ".repeat(GAP)).trimEnd();
  };
  return {
    head: (room) =>
      write(
        columns.map(({ title }) => title),
        room,
        (_, text) => text,
      ),
    row: (cells, room, paint = (_, text) => text) => {
      const clean = cells.map(stripControls);
      clean.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, measure(cell))));
      return write(clean, room, paint);
    },
  };
}

/** The width of each column; 0: it is left out. */
function fitColumns(columns: readonly FlexColumn[], widths: readonly number[], room: number): number[] {
  if (room === Number.POSITIVE_INFINITY) return [...widths];
  const kept = keepColumns(columns, room);
  const fitted = columns.map((column, index) =>
    kept.has(column) ? Math.min(column.most, Math.max(column.least, widths[index] ?? 0)) : 0,
  );
  let excess = fitted.reduce((sum, width) => sum + width, GAP * (kept.size - 1)) - room;
  while (excess > 0) {
    const slack = fitted.map((width, index) => width - (columns[index]?.least ?? 0));
    const loosest = slack.indexOf(Math.max(...slack));
    if ((slack[loosest] ?? 0) <= 0) break;
    fitted[loosest] = (fitted[loosest] ?? 0) - 1;
    excess -= 1;
  }
  return fitted;
}

/** By rank, as many as have room. */
function keepColumns(columns: readonly FlexColumn[], room: number): Set<FlexColumn> {
  const kept = new Set<FlexColumn>();
  let width = -GAP;
  for (const column of [...columns].sort((a, b) => a.rank - b.rank)) {
    width += GAP + column.least;
    if (width > room && kept.size > 0) break;
    kept.add(column);
  }
  return kept;
}
