// `gateway ledger verify`, `anchor` and `show`.

import { multiplyExactly, REPORTED } from "../../billing/charge.ts";
import { isLedgerHeld } from "../../billing/ledger/ledger.ts";
import { hashLine, type Line } from "../../billing/ledger/line.ts";
import {
  describeRequest,
  findRequest,
  type FoundRequest,
  listPasses,
  type Money,
} from "../../billing/reports/request.ts";
import { findBeginning, findLast } from "../../billing/reports/requests.ts";
import { BASES, OUTCOMES, PAYERS } from "../../billing/reports/words.ts";
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
import { formatCount, groupDigits, wrapWords } from "../terminal/text.ts";

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
    fail(`--since: ${path} has no line with the id ${since}, and none of that day or later.`);
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

function explainRequest({ own, corrections }: FoundRequest): string[] {
  const { line, file, number, text } = own;
  return [
    ...explainRoute(line),
    "",
    ...explainMoney(line),
    "",
    "Attempts",
    ...line.attempts.map(({ channel, status, error }, index) => {
      const how = error ?? (status === undefined ? "no answer" : `status ${status}`);
      return `  ${index + 1}. ${channel}: ${how}`;
    }),
    "",
    ...corrections.flatMap((correction) => {
      const { id, time, was } = correction.line;
      const before = was.charge_usd === null ? "not known" : `$${was.charge_usd}`;
      const place = `${id}, ${correction.file}, line ${correction.number}`;
      return [
        `Corrected at ${time}: ${place}; the charge was ${before}`,
        ...explainMoney(correction.line).map((each) => `  ${each}`),
        "",
      ];
    }),
    "Place",
    `  ${file}, line ${number}`,
    `  sha256 ${hashLine(text)}`,
    `  after  ${line.prev}`,
  ];
}

function explainRoute(line: Line): string[] {
  const { upstream_model: answered, first_byte_ms: first, duration_ms: duration, status, suspect } = line;
  const facts = [
    OUTCOMES[line.outcome],
    ...(status === null ? [] : [`status ${status}`]),
    ...(first === null ? [] : [`first byte after ${first} ms`]),
    ...(duration === null ? [] : [`finished after ${duration} ms`]),
  ];
  const as = answered === null || answered === line.model ? "" : `, answered as ${answered}`;
  return [
    `Request ${line.id}`,
    `  ${line.time}, key ${line.key}, group ${line.group} (${line.platform}), channel ${line.channel}`,
    `  ${line.endpoint}, model ${line.model}${as}${line.stream ? ", streamed" : ""}`,
    `  ${facts.join(", ")}`,
    `  ${BASES[line.basis]}`,
    ...(suspect === undefined ? [] : [`  suspect: ${suspect}`]),
  ];
}

function explainMoney(money: Money): string[] {
  const { price_source: source, priced_as: as, tier } = money;
  const passes = listPasses(money, "");
  const usage = passes.flatMap(({ pass, model, tier: own, amounts, factors }) => {
    const all = Object.entries(factors).map(([name, value]) => ` × ${value} (${name})`);
    const head = pass === null ? [] : [`  ${pass} by ${model}, tier ${own ?? "unknown"}`];
    return [...head, ...amounts.map((each) => explainUsage(each, source, all.join("")))];
  });
  const charge = explainCharge(money);
  if (source === REPORTED) return ["Usage, whose price the seller has named", ...usage, ...charge];
  const requested = as === undefined ? "" : ` for ${as}, which was requested`;
  const how = source === null ? "" : ` (prices: ${source}${requested}; tier: ${tier ?? "unknown"})`;
  return [`Usage × price${how}`, ...(usage.length > 0 ? usage : ["  nothing"]), ...charge];
}

function explainUsage(
  amount: ReturnType<typeof listPasses>[number]["amounts"][number],
  source: string | null,
  factors: string,
): string {
  const { kind, count, per, price, usd } = amount;
  const label = `  ${kind.padEnd(18)} ${groupDigits(String(count)).padStart(12)}`;
  if (kind === "reasoning") return `${label} tokens, part of the output and not charged again`;
  if (count === 0 || source === REPORTED) return label;
  if (usd === null) return `${label}, no price`;
  const [total = "", unit = ""] = per.split(" ");
  return `${label} ${unit} × $${price} / ${total}${unit === "tokens" ? factors : ""} = $${usd}`;
}

function explainCharge(money: Money): string[] {
  const { official_usd: official, multiplier, charge_usd: charge, paid_by: payer } = money;
  const { at_least_usd: least, provider_usd: named } = money;
  const own = named === undefined ? [] : [`  the seller's own amount = $${named}`];
  if (official === null || charge === null) {
    const more = least === undefined ? "" : `; at least $${least}, for all that has a price`;
    const sentence = `  charge: not known; no sum includes it${more}`;
    return ["  official amount: not known", ...own, sentence];
  }
  const exact = multiplyExactly(official, multiplier);
  const rounding = exact === charge ? "not rounded" : `rounded once, half away from zero, from $${exact}`;
  return [
    `  official amount = $${official}`,
    ...own,
    `  charge = $${official} × ${multiplier} (the group's multiplier) = $${charge}, ${rounding}`,
    ...(payer === undefined ? [] : [`  ${PAYERS[payer]}: limits in USD count the official amount`]),
  ];
}
