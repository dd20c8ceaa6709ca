// Finds the ledger lines of the table's rows.

import { readLines, type RawLine } from "../ledger/reader.ts";
import { holdLedgerFiles, nameOf } from "../ledger/rotation.ts";
import type { Parameters, Table, CellValue } from "./open.ts";

export interface FoundLine {
  readonly file: string;
  /** From 1, in this file. */
  readonly number: number;
  readonly text: string;
}

export type LineOfRow = FoundLine & Pick<RowPlace, "values">;

/** Reads this many rows at a time, so that a long ledger does not fill the memory. */
const PAGE_ROWS = 5000;

/** In the order of the ledger. `more`: further columns. `where`: the condition on requests. */
export function* listLines(
  table: Table,
  { more = [], where, values = {} }: { more?: readonly string[]; where: string; values?: Parameters },
): Generator<LineOfRow, void> {
  const sql = `SELECT ${["line", "place", ...more].join(", ")} FROM requests
    WHERE line > $after AND ${where} ORDER BY line LIMIT ${PAGE_ROWS}`;
  for (let after = 0; ;) {
    const rows = table.list(sql, { ...values, $after: after }).map(([line, place, ...rest]) => {
      return { line: Number(line), place: Number(place), values: rest };
    });
    yield* readPlaces(table, rows);
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE_ROWS) return;
    after = last.line;
  }
}

interface RowPlace {
  readonly line: number;
  readonly place: number;
  readonly values: readonly CellValue[];
}

/** In ascending order. Lines that left the ledger are skipped. */
export function* readPlaces(table: Table, places: Iterable<RowPlace>): Generator<LineOfRow, void> {
  const { files } = table.position;
  using held = holdLedgerFiles(table.path);
  let [file, at] = [-1, -1];
  let lines: Iterator<RawLine> | null = null;
  for (const { line, place, values } of places) {
    const index = files.findLastIndex(({ first }) => first <= line);
    const source = held.sources[index];
    if (source === undefined) continue;
    // Rows in sequence are read in one go.
    if (lines === null || index !== file || place !== at) {
      lines?.return?.();
      lines = readLines(source, place);
      file = index;
    }
    const { value } = lines.next();
    if (value === undefined || !value.whole) {
      lines = null;
      continue;
    }
    at = value.next;
    const number = line - (files[index]?.first ?? 1) + 1;
    yield { file: nameOf(source, table.path), number, text: value.text, values };
  }
}
