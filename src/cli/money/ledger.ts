// `gateway ledger verify`, `anchor` and `show`.

import { isLedgerHeld } from "../../billing/ledger/ledger.ts";
import { describeRequest, findRequest } from "../../billing/reports/request.ts";
import { findBeginning, findLast } from "../../billing/reports/requests.ts";
import type { Table } from "../../billing/store/open.ts";
import {
  type Finding,
  formatAnchor,
  parseAnchor,
  takeAnchor,
  type Verdict,
  verifyLedger,
} from "../../billing/verify/verify.ts";
import { findLedger, type LedgerFlags, openTable } from "../access/ledger-place.ts";
import { explainRequest } from "./explain.ts";
import { chooseOne, type Shown, showReport } from "./show.ts";
import {
  fail,
  paint,
  print,
  printJson,
  printLines,
  readRoom,
  refuseUsage,
  printNote,
} from "../terminal/terminal.ts";
import { formatCount, wrapWords } from "../terminal/text.ts";

interface JsonFlags extends LedgerFlags {
  readonly json?: true;
}

export interface ShowFlags extends JsonFlags {
  readonly key?: string;
}

export interface VerifyFlags extends JsonFlags {
  readonly partial?: true;
  readonly anchor?: string;
  readonly since?: string;
}

const MAX_FINDINGS_SHOWN = 100;

export function verify(flags: VerifyFlags): void {
  const path = findLedger(flags);
  const findings: Finding[] = [];
  const start = performance.now();
  const { partial = false, since } = flags;
  const wanted = flags.anchor === undefined ? null : parseAnchor(flags.anchor);
  if (flags.anchor !== undefined && wanted === null)
    refuseUsage("--anchor: expected what `gateway ledger anchor` prints, such as 12:9f86….");
  const options = {
    partial,
    since,
    running: isLedgerHeld(path),
    anchor: wanted,
  };
  const verdict = verifyLedger(path, options, (finding) => {
    if (findings.length < MAX_FINDINGS_SHOWN) findings.push(finding);
  });
  if (since !== undefined && verdict.unchecked === verdict.lines)
    fail(`--since: ${path} has no line with the id ${since}, and none of such a day or later.`);
  if (flags.json === true)
    printJson({
      ledger: path,
      right: verdict.findings === 0,
      ...verdict,
      problems: findings,
    });
  else printVerdict(verdict, findings, performance.now() - start);
  if (verdict.findings > 0) fail(`The ledger ${path} has ${formatCount(verdict.findings, "problem")}.`);
}

function printVerdict(verdict: Verdict, findings: readonly Finding[], ms: number): void {
  for (const { file, line, id, problem } of findings)
    print(`${file}:${line}${id === null ? "" : ` ${id}`}: ${problem}`);
  const more = verdict.findings - findings.length;
  if (more > 0) print(`and ${more} more`);
  const { lines, corrections, files, unchecked } = verdict;
  const corrected = corrections === 0 ? "no corrections" : formatCount(corrections, "correction");
  const checked = `${formatCount(lines - unchecked, "line")} verified in ${formatCount(files, "file")}`;
  const summary = `${checked}, ${corrected}, ${(ms / 1000).toFixed(1)} s`;
  if (verdict.findings === 0) printLines([`${paint("green", "OK")}: ${summary}`]);
  else printNote(summary);
  for (const note of verdict.notes) printNote(note);
  for (const advice of new Set(findings.map((finding) => finding.advice))) printNote(advice);
}

export function anchor(flags: JsonFlags): void {
  using table = openTable(findLedger(flags), flags);
  const taken = takeAnchor(table);
  if (flags.json === true) printJson({ ...taken, anchor: formatAnchor(taken) });
  else print(formatAnchor(taken));
}

const HANG = 4;

export function show(words: string, flags: ShowFlags): void {
  if (flags.key !== undefined && words !== "last") refuseUsage("--key needs `last` in place of an id.");
  const { key = null, ...others } = flags;
  findLedger(flags);
  showReport(others, ({ table }): Shown => {
    const id = words === "last" ? findLastId(table, key) : findId(table, words);
    const found = findRequest(table, id) ?? fail(`There is no request ${id} in ${table.path}.`);
    const wrap = (line: string): string[] => wrapWords(line, readRoom(), HANG);
    return { document: describeRequest(found), parts: () => explainRequest(found).flatMap(wrap) };
  });
}

function findLastId(table: Table, key: string | null): string {
  const whose = key === null ? "" : ` of the key "${key}"`;
  return findLast(table, "id", key) ?? fail(`There is no request${whose} in ${table.path} yet.`);
}

function findId(table: Table, start: string): string {
  const none = `There is no request ${start} in ${table.path}. A refused request has no line.`;
  return chooseOne(findBeginning(table, "id", start), start, ["requests", none]);
}
