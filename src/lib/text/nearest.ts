// "Did you mean …?": the known name nearest to a typed one.

import { escapeText } from "./printable.ts";

/** Comparing takes quadratic time, and nobody types longer names. */
const MAX_TYPED_LENGTH = 128;

export function didYouMean(typed: string, known: Iterable<string>): string {
  let best = "";
  // Two changes of a word of four letters make another word: `tcsh` is not `bash`.
  let least = (typed.length < 5 ? 1 : Math.max(2, Math.floor(typed.length / 3))) + 1;
  for (const name of typed.length > MAX_TYPED_LENGTH ? [] : known) {
    const distance = countEdits(typed.toLowerCase(), name.toLowerCase());
    if (distance < least) [best, least] = [name, distance];
  }
  return best === "" ? "" : ` (did you mean "${escapeText(best)}"?)`;
}

function countEdits(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const read = (row: number, column: number) => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= a.length; row += 1) {
    rows.push([row]);
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = read(row - 1, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const isSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwap ? read(row - 2, column - 2) + 1 : Infinity;
      rows[row]?.push(Math.min(read(row - 1, column) + 1, read(row, column - 1) + 1, replaced, swapped));
    }
  }
  return read(a.length, b.length);
}
