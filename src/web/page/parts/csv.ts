// A table as a file of comma-separated values.

/** A program of tables would run a cell that begins with one of these. */
const FORMULA = /^[=+@\t\r]|^-(?!\d)/;

type Cell = string | number | null;
/** Of each: its title, and what a row has in it. */
export type Columns<Row> = readonly (readonly [title: string, read: (row: Row) => Cell])[];

export function writeCsv<Row>(columns: Columns<Row>, rows: readonly Row[]): string {
  const titles = columns.map(([title]) => title);
  const cells = rows.map((row) => columns.map(([, read]) => read(row)));
  return [titles, ...cells].map((row) => `${row.map(writeCell).join(",")}\r\n`).join("");
}

function writeCell(value: Cell): string {
  const text = value === null ? "" : `${value}`;
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveCsv(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
