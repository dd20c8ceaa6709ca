// What `gateway ledger verify`, `show` and `tail` do.

import { followLedger, readLastLines } from "../../billing/ledger/follow.ts";
import { isLedgerHeld } from "../../billing/ledger/ledger.ts";
import { explainRequest, findRequest } from "../../billing/report/explain.ts";
import { type Anchor, formatAnchor, parseAnchor, takeAnchor } from "../../billing/verify/anchor.ts";
import type { Finding } from "../../billing/verify/finding.ts";
import { verifyLedger } from "../../billing/verify/verify.ts";
import { fieldOf, parseJson } from "../../lib/json/json.ts";
import { findLedger, findReported, type LedgerFlags } from "./ledger-place.ts";
import { fail, paint, print, printJson, refuseUsage, tell } from "../terminal.ts";
import { formatCount } from "../text.ts";

export interface ShowFlags extends LedgerFlags {
  readonly json?: true;
}

export interface VerifyFlags extends ShowFlags {
  readonly partial?: true;
  readonly anchor?: string;
}

export interface TailFlags extends ShowFlags {
  readonly lines: string;
  readonly follow?: boolean;
}

/** Whoever has more has them all for one reason. */
const FINDINGS_SHOWN = 100;

export function verify(flags: VerifyFlags): void {
  const path = findLedger(flags);
  const findings: Finding[] = [];
  const start = performance.now();
  const anchored = flags.anchor === undefined ? null : readAnchor(flags.anchor);
  const options = { partial: flags.partial === true, running: isLedgerHeld(path), anchor: anchored };
  const verdict = verifyLedger(path, options, (finding) => {
    if (findings.length < FINDINGS_SHOWN) findings.push(finding);
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
    const told = `${formatCount(lines, "line")} in ${formatCount(files, "file")}, ${corrections} of them corrections, in ${seconds} s`;
    if (verdict.findings === 0) print(`${paint("green", "right")}: ${told}`);
    else tell(told);
    for (const advice of new Set(findings.map((finding) => finding.advice))) tell(advice);
  }
  if (verdict.findings > 0)
    fail(`The ledger ${path} is not right: ${formatCount(verdict.findings, "problem")}.`);
}

function readAnchor(text: string): Anchor {
  return (
    parseAnchor(text) ??
    refuseUsage("--anchor: expected what `gateway ledger anchor` printed, such as 12:9f86….")
  );
}

export function anchor(flags: ShowFlags): void {
  const taken = takeAnchor(findLedger(flags));
  if (flags.json === true) printJson({ ...taken, anchor: formatAnchor(taken) });
  else print(formatAnchor(taken));
}

export function show(id: string, flags: ShowFlags): void {
  const path = findLedger(flags);
  const found = findRequest(path, id);
  if (found === null) return fail(`No line in ${path} is of ${id}.`);
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
  for (const line of explainRequest(found)) print(line);
}

export async function tail(flags: TailFlags): Promise<void> {
  if (!/^\d{1,7}$/.test(flags.lines)) refuseUsage("--lines: expected a whole number up to 9999999.");
  const path = findReported(flags);
  const tellLine = (text: string): void => print(flags.json === true ? text : formatLine(text));
  const { texts, next } = readLastLines(path, Number(flags.lines));
  for (const text of texts) tellLine(text);
  if (flags.follow === false) return;
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  process.once("SIGTERM", () => stop.abort());
  for await (const text of followLedger(path, next, stop.signal)) tellLine(text);
}

function formatLine(text: string): string {
  const line = parseJson(text);
  if (line === undefined) return "(no line of a ledger)";
  const textOf = (name: string): string => {
    const value = fieldOf(line, name);
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
  const charge = textOf("charge_usd");
  const what =
    textOf("corrects") === "" ? `${textOf("status")} ${textOf("outcome")}` : `corrects ${textOf("corrects")}`;
  return [
    textOf("time"),
    textOf("id"),
    textOf("key"),
    textOf("model"),
    textOf("channel"),
    what.trim(),
    formatCounts(fieldOf(line, "usage")),
    charge === "" ? textOf("basis") : `$${charge}`,
  ]
    .filter((column) => column !== "")
    .join("  ");
}

function formatCounts(usage: unknown): string {
  const counts = Object.entries(typeof usage === "object" && usage !== null ? usage : {});
  return counts.flatMap(([kind, count]) => (count === 0 ? [] : [`${kind} ${count}`])).join(", ");
}
