// The table engine: rows in aligned columns, printed all at once or one after the
// other. Where the terminal is narrow, columns are left out before a name is cut,
// and digits are never cut. Pure but for the widths that a table remembers.

import { escapeUnprintable } from "../../lib/text/printable.ts";
import { paint as paintText, printLines, readRoom } from "./terminal.ts";
import { alignText, measure } from "./text.ts";

/** How wide a column is. */
interface Layout {
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
  /** The titles and these rows. */
  draw(rows: readonly Row[], room: number): string[];
}

const GAP = 2;
const DEFAULT_LEAST = 8;

export function createTable<Row>(columns: ReadonlyArray<Column<Row>>): Table<Row> {
  const widths = columns.map(({ title, usual = "" }) => Math.max(measure(title), measure(usual)));
  let before: { readonly room: number; readonly fitted: readonly number[] } | null = null;
  const fit = (room: number): readonly number[] => {
    const same = before?.room === room ? fitShown(columns, widths, room, before.fitted) : null;
    before = { room, fitted: same ?? fitColumns(columns, widths, room) };
    return before.fitted;
  };
  const write = (cells: readonly string[], room: number, row: Row | null): string => {
    const fitted = fit(room);
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

/** A column of numbers, or of amounts. */
export function number<Row>(title: string, read: Column<Row>["read"], spare?: number): Column<Row> {
  return { title, read, align: "right", ...(spare !== undefined && { spare }) };
}

export function printTable<Row>(rows: readonly Row[], columns: ReadonlyArray<Column<Row>>): void {
  printLines(createTable(columns).draw(rows, readRoom()));
}

/** How wide each column would be, and at least. */
interface Needs {
  readonly full: readonly number[];
  readonly least: readonly number[];
  readonly isName: (index: number) => boolean;
  readonly isNumber: (index: number) => boolean;
}

function findNeeds(columns: readonly Layout[], widths: readonly number[]): Needs {
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
  return { full, least, isName, isNumber };
}

/** The columns that were shown before, in a log whose cells become wider: a name is cut rather than that another column
 *  takes the place of one. Null: they do not fit. */
function fitShown(
  columns: readonly Layout[],
  widths: readonly number[],
  room: number,
  before: readonly number[],
): number[] | null {
  const needs = findNeeds(columns, widths);
  const shown = (wanted: readonly number[]): number[] =>
    wanted.map((width, index) => (before[index] === 0 ? 0 : width));
  if (sumWidths(shown(needs.least)) > room) return null;
  return shrinkTexts(shown(needs.full), room, needs);
}

/** The width of each column; 0: it is left out. */
function fitColumns(columns: readonly Layout[], widths: readonly number[], room: number): number[] {
  if (room === Number.POSITIVE_INFINITY) return [...widths];
  const needs = findNeeds(columns, widths);
  const { full, least, isName } = needs;
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
  return shrinkTexts(fitted, room, needs);
}

function shrinkTexts(widths: number[], room: number, { least, isName, isNumber }: Needs): number[] {
  const isText = (index: number): boolean => !isNumber(index);
  shrink(widths, room, (index) => (isText(index) && !isName(index) ? (least[index] ?? 0) : null));
  shrink(widths, room, (index) => (isText(index) ? (least[index] ?? 0) : null));
  shrink(widths, room, (index) => (isText(index) ? 1 : null));
  return widths;
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
function orderSpared(columns: readonly Layout[]): number[] {
  const spared = columns.flatMap(({ spare }, index) => (spare === undefined ? [] : [{ spare, index }]));
  return spared.sort((a, b) => b.spare - a.spare).map(({ index }) => index);
}

/** The narrowest terminal shows the names alone. */
function orderLastResort(columns: readonly Layout[], isName: (index: number) => boolean): number[] {
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
