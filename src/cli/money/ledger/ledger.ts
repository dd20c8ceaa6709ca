// `gateway ledger verify`, `show` and `tail`.

import type { LedgerIndex } from "../../../billing/index/ledger-index.ts";
import { followLedger, readLastLines } from "../../../billing/ledger/follow.ts";
import { isLedgerHeld } from "../../../billing/ledger/ledger.ts";
import { explainRequest, findRequest } from "../../../billing/report/explain.ts";
import { findLastRequestId, listRequestIds } from "../../../billing/report/find.ts";
import { type Anchor, formatAnchor, parseAnchor, takeAnchor } from "../../../billing/verify/anchor.ts";
import type { Finding } from "../../../billing/verify/finding.ts";
import { verifyLedger } from "../../../billing/verify/verify.ts";
import { getField, parseJson } from "../../../lib/json/json.ts";
import { escapeUnprintable } from "../../../lib/text/printable.ts";
import { findLedger, findLedgerOrEmpty, type LedgerFlags, openLedgerIndex } from "../ledger-place.ts";
import { type Column, createTable, number } from "../../terminal/table.ts";
import {
  fail,
  paint,
  print,
  printJson,
  printLines,
  readRoom,
  refuseUsage,
  printNote,
} from "../../terminal/terminal.ts";
import { formatAmount, formatCount, formatLocalSecond, shortenId, wrapWords } from "../../terminal/text.ts";

interface JsonFlags extends LedgerFlags {
  readonly json?: true;
}

export interface ShowFlags extends JsonFlags {
  readonly key?: string;
}

export interface VerifyFlags extends JsonFlags {
  readonly partial?: true;
  readonly anchor?: string;
}

export interface TailFlags extends JsonFlags {
  readonly lines: string;
  readonly follow?: boolean;
}

/** More findings than this usually have one cause. */
const MAX_FINDINGS_SHOWN = 100;

export function verify(flags: VerifyFlags): void {
  const path = findLedger(flags);
  const findings: Finding[] = [];
  const start = performance.now();
  const anchored = flags.anchor === undefined ? null : readAnchor(flags.anchor);
  const options = { partial: flags.partial === true, running: isLedgerHeld(path), anchor: anchored };
  const verdict = verifyLedger(path, options, (finding) => {
    if (findings.length < MAX_FINDINGS_SHOWN) findings.push(finding);
  });
  if (flags.json === true)
    printJson({ ledger: path, right: verdict.findings === 0, ...verdict, problems: findings });
  else {
    for (const { file, line, id, problem } of findings)
      print(`${file}:${line}${id === null ? "" : ` ${id}`}: ${problem}`);
    const more = verdict.findings - findings.length;
    if (more > 0) print(`and ${more} more`);
    const { lines, corrections, files } = verdict;
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const corrected = corrections === 0 ? "no corrections" : formatCount(corrections, "correction");
    const summary = `${formatCount(lines, "line")} verified in ${formatCount(files, "file")}, ${corrected}, ${seconds} s`;
    if (verdict.findings === 0) printLines([`${paint("green", "OK")}: ${summary}`]);
    else printNote(summary);
    for (const note of verdict.notes) printNote(note);
    for (const advice of new Set(findings.map((finding) => finding.advice))) printNote(advice);
  }
  if (verdict.findings > 0) fail(`The ledger ${path} has ${formatCount(verdict.findings, "problem")}.`);
}

function readAnchor(text: string): Anchor {
  return (
    parseAnchor(text) ??
    refuseUsage("--anchor: expected what `gateway ledger anchor` printed, such as 12:9f86….")
  );
}

export function anchor(flags: JsonFlags): void {
  const taken = takeAnchor(findLedger(flags));
  if (flags.json === true) printJson({ ...taken, anchor: formatAnchor(taken) });
  else print(formatAnchor(taken));
}

/** The continuation of a line is indented by this much. */
const HANG = 4;

export function show(words: string, flags: ShowFlags): void {
  if (flags.key !== undefined && words !== "last") refuseUsage("--key needs `last` in place of an id.");
  const path = findLedger(flags);
  const index = openLedgerIndex(path);
  const id = words === "last" ? findLast(path, flags.key) : findId(index, words);
  const found = findRequest(index, id);
  if (found === null) return fail(`There is no request ${id} in ${path}.`);
  if (flags.json === true) {
    const { own, corrections } = found;
    printJson({
      file: own.file,
      line_number: own.number,
      line: own.line,
      corrections: corrections.map(({ line }) => line),
    });
    return;
  }
  const lines = explainRequest(found).map(escapeUnprintable);
  printLines(lines.flatMap((line) => wrapWords(line, readRoom(), HANG)));
}

function findLast(path: string, key: string | undefined): string {
  const whose = key === undefined ? "" : ` of the key "${key}"`;
  return findLastRequestId(path, key ?? null) ?? fail(`There is no request${whose} in ${path} yet.`);
}

const MAX_CANDIDATES = 10;

function findId(index: LedgerIndex, start: string): string {
  const { path } = index;
  const [id, ...others] = listRequestIds(index, start, MAX_CANDIDATES);
  if (id === undefined)
    return fail(`There is no request ${start} in ${path}. A refused request has no line in the ledger.`);
  if (others.length === 0) return id;
  return fail(`Several requests begin with ${start}. Use more of the id:\n  ${[id, ...others].join("\n  ")}`);
}

export async function tail(flags: TailFlags): Promise<void> {
  if (!/^\d{1,7}$/.test(flags.lines)) refuseUsage("--lines: expected a whole number from 0 to 9999999.");
  const path = findLedgerOrEmpty(flags);
  const isTable = process.stdout.isTTY && flags.json !== true;
  const printLine = (text: string): void => print(flags.json === true ? text : formatLine(text));
  const { texts, next } = readLastLines(path, Number(flags.lines));
  const printAll = isTable ? createRowPrinter() : (all: readonly string[]): void => all.forEach(printLine);
  printAll(texts);
  if (flags.follow === false) return;
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  process.once("SIGTERM", () => stop.abort());
  for await (const text of followLedger(path, next, stop.signal)) printAll([text]);
}

const NOT_A_LINE = "(not a line of a ledger)";

type TailLine = NonNullable<ReturnType<typeof readTailLine>>;

/** Text with digits is there as a whole or not at all. */
const TAIL_COLUMNS: ReadonlyArray<Column<TailLine>> = [
  { title: "TIME", spare: 2, least: 19, read: ({ time }) => formatLocalSecond(new Date(time)) },
  { title: "ID", name: true, read: ({ id }) => shortenId(id) },
  { title: "KEY", read: ({ key }) => key },
  { title: "MODEL", spare: 1, least: 12, read: ({ model }) => model },
  { title: "CHANNEL", spare: 4, read: ({ channel }) => channel },
  { title: "STATUS", spare: 3, least: 12, read: ({ what }) => what },
  { title: "USAGE", spare: 5, least: 200, read: ({ usage }) => usage },
  number("CHARGE $", ({ charge, basis }) => (charge === "" ? basis : formatAmount(charge))),
];

/** Rows in columns that fit the terminal, below one line of titles. */
function createRowPrinter(): (texts: readonly string[]) => void {
  const table = createTable(TAIL_COLUMNS);
  let isFirst = true;
  return (texts) => {
    const lines = texts.map(readTailLine);
    const rows = table
      .rows(
        lines.filter((line) => line !== null),
        readRoom(),
      )
      .values();
    if (isFirst) printLines([table.head(readRoom())]);
    isFirst = false;
    for (const line of lines) print(line === null ? NOT_A_LINE : (rows.next().value ?? ""));
  };
}

function readTailLine(text: string) {
  const line = parseJson(text);
  if (line === undefined) return null;
  const textOf = (name: string): string => {
    const value = getField(line, name);
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
  const corrects = textOf("corrects");
  return {
    time: textOf("time"),
    id: textOf("id"),
    key: textOf("key"),
    model: textOf("model"),
    channel: textOf("channel"),
    what: (corrects === "" ? `${textOf("status")} ${textOf("outcome")}` : `corrects ${corrects}`).trim(),
    usage: formatCounts(getField(line, "usage")),
    charge: textOf("charge_usd"),
    basis: textOf("basis"),
  };
}

function formatLine(text: string): string {
  const line = readTailLine(text);
  if (line === null) return NOT_A_LINE;
  const { charge, basis, ...columns } = line;
  const amount = charge === "" ? basis : `$${charge}`;
  return [...Object.values(columns), amount].filter((column) => column !== "").join("  ");
}

function formatCounts(usage: unknown): string {
  const counts = Object.entries(typeof usage === "object" && usage !== null ? usage : {});
  return counts.flatMap(([kind, count]) => (count === 0 ? [] : [`${kind} ${count}`])).join(", ");
}
