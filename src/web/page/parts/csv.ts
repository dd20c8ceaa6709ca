// A table as a file of comma-separated values.

/** A program of tables would run a cell that begins with one of these. */
const FORMULA = /^[=+@\t\r]|^-(?!\d)/;

type Cell = string | number | null;

function writeCell(value: Cell): string {
  const text = value === null ? "" : `${value}`;
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveCsv(name: string, titles: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const text = [titles, ...rows].map((row) => `${row.map(writeCell).join(",")}\r\n`).join("");
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
