// Shows a report of the ledger as JSON, CSV, or lines and notes.

import { type Clock, type PeriodFlags, readPeriod } from "../../billing/reports/period.ts";
import { findBeginning, findLast, reportNames } from "../../billing/reports/requests.ts";
import { ALL, type Filter, type Scope } from "../../billing/reports/sums.ts";
import type { Table } from "../../billing/store/open.ts";
import { refuseUnknown } from "../../config/changes/names.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { getField } from "../../lib/json/json.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { createZone } from "../../lib/text/zone.ts";
import { openConfigUnless } from "../access/config.ts";
import { fail, print, printJson, printLines, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatCount, lengthenSession } from "../terminal/text.ts";
import { findLedgerOrEmpty, type LedgerFlags, openTable } from "../access/ledger-place.ts";

export interface ReportFlags extends LedgerFlags, PeriodFlags, Omit<Filter, "version" | "agent" | "outcome"> {
  readonly csv?: true;
  readonly json?: true;
}

export interface Query<Flags> {
  readonly table: Table;
  readonly scope: Scope & { readonly only: Filter };
  readonly clock: Clock;
  readonly flags: Flags;
  /** Null: the ledger is read without a config. */
  readonly loaded: LoadedConfig | null;
}

type Part = string | readonly string[];

export interface Shown {
  readonly document: object;
  readonly csv?: () => readonly string[];
  readonly parts: () => readonly Part[];
  readonly notes?: () => readonly (string | false)[];
}

export function showReport<Flags extends ReportFlags>(
  flags: Flags,
  ask: (query: Query<Flags>) => Shown,
): void {
  const loaded = openConfigUnless(flags.ledger !== undefined, flags);
  const path = findLedgerOrEmpty(loaded, flags);
  const clock = { zone: loaded?.catalog.zone ?? createZone("system"), now: new Date() };
  const period = readPeriod(flags, clock);
  using table = openTable(path, flags);
  // A report has few rows, so functions are compiled later than elsewhere:
  // decision 0030.
  Bun.unsafe.setJITPolicy(60);
  const scope = { ...period, only: readFilter(flags, table) };
  refuseUnknownNames(scope.only, table, loaded);
  printShown(flags, ask({ table, scope, clock, flags, loaded }));
  const lost = formatCount(table.unreadable, "line");
  if (flags.json !== true && table.unreadable > 0)
    printNote(`${lost} could not be read. \`gateway ledger verify\` shows why.`);
}

export function printShown(
  { csv: isCsv, json }: Pick<ReportFlags, "csv" | "json">,
  { document, csv, parts, notes = () => [] }: Shown,
): void {
  if (isCsv === true && json === true) refuseUsage("--csv and --json cannot be combined.");
  if (json === true) return printJson(document);
  if (isCsv === true && csv) printLines(csv());
  else printParts(parts());
  for (const note of notes()) if (note !== false) printNote(note);
}

function printParts(parts: readonly Part[]): void {
  for (const [index, part] of parts.entries())
    if (typeof part === "string") print(part);
    else if (part.length > 0) printLines(index === 0 ? part : ["", ...part]);
}

function readFilter(flags: ReportFlags, table: Table): Filter {
  const { key, group, model, channel, tool, label } = flags;
  const session = flags.session === undefined ? undefined : findSession(table, flags.session);
  const names = Object.entries({ key, group, model, channel, tool, session, label });
  return Object.fromEntries(names.filter(([, name]) => name !== undefined));
}

/** A mistyped name would seem to spend nothing. */
function refuseUnknownNames(only: Filter, table: Table, loaded: LoadedConfig | null): void {
  for (const name of ["key", "group", "channel"] as const) {
    const [wanted, own] = [only[name], loaded?.catalog[`${name}s`]];
    if (wanted === undefined || own?.has(wanted) === true) continue;
    const seen = reportNames(table, ALL)[name] ?? [];
    const known = [...seen, ...(own?.keys() ?? [])].map((each) => [each, null] as const);
    if (!seen.includes(wanted)) refuseUnknown(name, wanted, new Map(known));
  }
}

export function findSession(table: Table, words: string): string {
  const { path } = table;
  if (words === "last") return findLast(table, "session") ?? fail(`No request in ${path} has a session yet.`);
  const found = findBeginning(table, "session", lengthenSession(words));
  const none = `There is no session ${words} in ${path}. \`gateway sessions\` lists them.`;
  return chooseOne(found, words, ["sessions", none]);
}

export function chooseOne(
  [first, ...others]: readonly string[],
  words: string,
  [what, none]: readonly [what: string, none: string],
): string {
  if (first === undefined) return fail(none);
  if (others.length === 0) return first;
  const all = [first, ...others].join("\n  ");
  return fail(`Several ${what} begin with ${words}. Use more of the id:\n  ${all}`);
}

export function writeCsv(
  by: readonly string[],
  columns: readonly string[],
  rows: readonly object[],
): string[] {
  const lines = rows.map((row) => {
    const read = (name: string): string => {
      const value = getField(row, name);
      return typeof value === "string" || typeof value === "number" ? String(value) : "";
    };
    return [...by.map((name) => quote(read(name))), ...columns.map(read)].join(",");
  });
  return [[...by, ...columns].join(","), ...lines];
}

/** Spreadsheets run cells that begin with these. A cell may begin after a semicolon. */
const FORMULA = /(?<=^|;)(?= *[=+\-@＝＋－＠])/g;

function quote(text: string): string {
  const cell = escapeText(text.replaceAll(FORMULA, "'"));
  return /^'|[",;]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
