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
  /** It comes only where nothing has to be cut for it. */
  readonly extra?: true;
}

/** Draws a cell's text, which is cut and aligned by then. */
type PaintCell = (column: FlexColumn, text: string) => string;

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
    const last = fitted.findLastIndex((width) => width > 0);
    const shown = columns.flatMap((column, index) => {
      const width = fitted[index] ?? 0;
      if (width === 0) return [];
      const text = alignText(cells[index] ?? "", width, column.align);
      return [paint(column, index === last ? text.trimEnd() : text)];
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
  const wanted = columns.map(({ least, most }, index) => Math.min(most, Math.max(least, widths[index] ?? 0)));
  const kept = keepColumns(columns, wanted, room);
  const fitted = wanted.map((width, index) => (kept.has(index) ? width : 0));
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
function keepColumns(columns: readonly FlexColumn[], wanted: readonly number[], room: number): Set<number> {
  const kept = new Set<number>();
  let least = -GAP;
  let whole = -GAP;
  const byRank = [...columns.entries()].sort(([, a], [, b]) => a.rank - b.rank);
  for (const [index, column] of byRank) {
    least += GAP + column.least;
    whole += GAP + (wanted[index] ?? 0);
    const isOver = (column.extra === true ? whole : least) > room;
    if (isOver && kept.size > 0) break;
    kept.add(index);
  }
  return kept;
}
