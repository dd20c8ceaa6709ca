// The table engine: rows in aligned columns, printed all at once or one after the
// other. Where the terminal is narrow, columns are left out before a name is cut,
// and digits are never cut. Pure but for the widths that a table remembers.

import { escapeUnprintable } from "../../lib/text/printable.ts";
import { paint as paintText, printLines, readRoom } from "./terminal.ts";
import { alignText, measure } from "./text.ts";

export interface Column {
  readonly title: string;
  /** Numbers are aligned on the right and never cut: without room for all digits, the column is left out. */
  readonly align?: "right";
  /** This column identifies a row, so it is cut last. Without any such column, the first one is the name. */
  readonly name?: true;
  /** May be left out where there is no room: of these columns, the highest number goes first. */
  readonly spare?: number;
  /** Stays even if a name must be cut for it. */
  readonly firm?: true;
  /** Cells below which text is not cut while anything else can give way. */
  readonly least?: number;
  /** Text is cut to this on a terminal. */
  readonly most?: number;
}

/** Adds colour to a cell's text, which is already cut and aligned. `row` counts from 0. */
type PaintCell = (title: string, text: string, row: number) => string;

export interface Table {
  /** `room` is the width of a terminal, or infinite. */
  head(room: number): string;
  /** Columns become as wide as the widest cell so far, so that later rows align with earlier ones. */
  rows(rows: ReadonlyArray<readonly string[]>, room: number, paint?: PaintCell): string[];
}

const GAP = 2;
const DEFAULT_LEAST = 8;

/** `expected`: a cell for each column, as wide as cells will usually be. */
export function createTable(columns: readonly Column[], expected: readonly string[] = []): Table {
  const widths = columns.map(({ title }, index) => Math.max(measure(title), measure(expected[index] ?? "")));
  const write = (cells: readonly string[], room: number, paint: (title: string, text: string) => string) => {
    const fitted = fitColumns(columns, widths, room);
    const shown = columns.flatMap(({ title, align }, index) => {
      const width = fitted[index] ?? 0;
      return width === 0 ? [] : [{ title, text: alignText(cells[index] ?? "", width, align) }];
    });
    const last = shown.length - 1;
    const painted = shown.map(({ title, text }, at) => paint(title, at === last ? text.trimEnd() : text));
    return painted.join(" ".repeat(GAP)).trimEnd();
  };
  return {
    head: (room) =>
      write(
        columns.map(({ title }) => title),
        room,
        (_, text) => text,
      ),
    rows: (rows, room, paint = (_, text) => text) => {
      const clean = rows.map((row) => columns.map((_, index) => escapeUnprintable(row[index] ?? "")));
      for (const row of clean)
        row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, measure(cell))));
      return clean.map((row, at) => write(row, room, (title, text) => paint(title, text, at)));
    },
  };
}

/** The titles and all rows at once. */
export function formatTable(
  columns: readonly Column[],
  rows: ReadonlyArray<readonly string[]>,
  room = readRoom(),
): string[] {
  const table = createTable(columns);
  const lines = table.rows(rows, room);
  return [paintText("dim", table.head(room)), ...lines];
}

export function printTable(columns: readonly Column[], rows: ReadonlyArray<readonly string[]>): void {
  printLines(formatTable(columns, rows));
}

/** The width of each column; 0: it is left out. */
function fitColumns(columns: readonly Column[], widths: readonly number[], room: number): number[] {
  if (room === Number.POSITIVE_INFINITY) return [...widths];
  const hasNames = columns.some(({ name }) => name === true);
  const isName = (index: number): boolean => (hasNames ? columns[index]?.name === true : index === 0);
  const isNumber = (index: number): boolean => columns[index]?.align === "right";
  const full = columns.map(({ most = Number.POSITIVE_INFINITY }, index) =>
    isNumber(index) ? (widths[index] ?? 0) : Math.min(most, widths[index] ?? 0),
  );
  const least = columns.map((column, index) => {
    const whole = full[index] ?? 0;
    const room = column.least ?? Math.max(DEFAULT_LEAST, measure(column.title));
    return isNumber(index) ? whole : Math.min(whole, room);
  });
  const fitted = [...full];
  const leaveOut = (order: readonly number[], needed: (index: number) => number): void => {
    for (const index of order) {
      const needs = fitted.map((width, each) => (width === 0 ? 0 : needed(each)));
      if (sumWidths(needs) <= room || countShown(fitted) === 1) return;
      fitted[index] = 0;
    }
  };
  const spared = orderSpared(columns);
  leaveOut(
    spared.filter((index) => columns[index]?.firm !== true),
    (index) => (isName(index) ? full : least)[index] ?? 0,
  );
  leaveOut([...spared, ...orderLastResort(columns, isName)], (index) => least[index] ?? 0);
  restore(
    fitted,
    spared.toReversed(),
    full,
    (widths) =>
      sumWidths(
        widths.map((width, index) => (width === 0 ? 0 : ((isName(index) ? full : least)[index] ?? 0))),
      ) <= room,
  );
  const isText = (index: number): boolean => !isNumber(index);
  shrink(fitted, room, (index) => (isText(index) && !isName(index) ? (least[index] ?? 0) : null));
  shrink(fitted, room, (index) => (isText(index) ? (least[index] ?? 0) : null));
  shrink(fitted, room, (index) => (isText(index) ? 1 : null));
  return fitted;
}

/** A wide column may have made others go before it went itself: those that fit come back. */
function restore(
  fitted: number[],
  order: readonly number[],
  full: readonly number[],
  fits: (widths: readonly number[]) => boolean,
): void {
  for (const index of order) {
    if (fitted[index] !== 0) continue;
    fitted[index] = full[index] ?? 0;
    if (!fits(fitted)) fitted[index] = 0;
  }
}

/** The highest first. */
function orderSpared(columns: readonly Column[]): number[] {
  const spared = columns.flatMap(({ spare }, index) => (spare === undefined ? [] : [{ spare, index }]));
  return spared.sort((a, b) => b.spare - a.spare).map(({ index }) => index);
}

/** The narrowest terminal shows the names alone. */
function orderLastResort(columns: readonly Column[], isName: (index: number) => boolean): number[] {
  const others = columns.map((_, index) => index).toReversed();
  return [...others.filter((index) => !isName(index)), ...others.filter(isName)];
}

/** Takes from the widest column of which `floor` is not null, down to that. */
function shrink(widths: number[], room: number, floor: (index: number) => number | null): void {
  let excess = sumWidths(widths) - room;
  while (excess > 0) {
    const loose = widths.map((width, index) => {
      const least = floor(index);
      return least !== null && width > least ? width : 0;
    });
    const widest = Math.max(...loose);
    if (widest === 0) return;
    widths[loose.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
}

function sumWidths(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP * (countShown(widths) - 1));
}

function countShown(widths: readonly number[]): number {
  return widths.filter((width) => width > 0).length;
}
