// `gateway sessions diff A B`: two sessions side by side, from the ledger alone.

import type { LedgerIndex } from "../../../billing/index/ledger-index.ts";
import type { Row } from "../../../billing/ledger/row.ts";
import {
  type DescribedSession,
  describeSession,
  listSessionRows,
  type SessionTotals,
  sumSessions,
} from "../../../billing/report/sessions.ts";
import { CALL_KINDS, USAGE_KINDS } from "../../../billing/usage.ts";
import {
  addUsd,
  formatDecimal,
  formatUsd,
  parseDecimal,
  parseUsd,
  subtractDecimals,
  ZERO_USD,
} from "../../../lib/money.ts";
import { getCount, getField } from "../../../lib/json/json.ts";
import { number, printTable } from "../../terminal/table.ts";
import { print, printJson } from "../../terminal/terminal.ts";
import { formatAmount, formatMs, shortenSession } from "../../terminal/text.ts";
import { findSession, formatRate, readUsageQuery } from "../usage/usage.ts";
import type { ShowSessionFlags } from "./sessions.ts";

interface Side extends DescribedSession {
  /** Each model's requests, the first one used comes first. */
  readonly models: Readonly<Record<string, number>>;
  /** Requests that did not end well. */
  readonly failed: number;
  readonly cache_misses: number;
  readonly missed_usd: string;
  /** From the first request to the end of the last one. */
  readonly span_ms: number;
  /** Of all requests together: agents work at the same time. */
  readonly request_ms: number;
}

export function compareSessions(first: string, second: string, flags: Omit<ShowSessionFlags, "turns">): void {
  const index = readUsageQuery({ ...flags, by: "session" }).index();
  const [a, b] = [readSide(index, findSession(index, first)), readSide(index, findSession(index, second))];
  if (flags.json === true) printJson({ a, b });
  else printSides(a, b);
}

function readSide(index: LedgerIndex, id: string): Side {
  const { rows, total } = sumSessions(index, { since: null, until: null, only: { session: id } });
  const row = rows[0] ?? { names: [id], totals: total };
  return { ...describeSession(row), ...sumMisses(row.totals), ...sumRequests(listSessionRows(index, id)) };
}

function sumMisses({ agents }: SessionTotals): Pick<Side, "cache_misses" | "missed_usd"> {
  const misses = [...agents.values()].flatMap((agent) => agent.misses);
  const usd = misses.reduce((sum, miss) => addUsd(sum, parseUsd(miss.usd ?? "0")), ZERO_USD);
  return { cache_misses: misses.length, missed_usd: formatUsd(usd) };
}

function sumRequests(rows: Iterable<Row>): Pick<Side, "models" | "failed" | "span_ms" | "request_ms"> {
  const models: Record<string, number> = {};
  let [failed, requestMs, start, end] = [0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { model, time, was, line } of rows) {
    if (was !== null) continue;
    const tookMs = getCount(getField(line, "duration_ms")) ?? 0;
    models[model] = (models[model] ?? 0) + 1;
    if (line["outcome"] !== "complete") failed += 1;
    requestMs += tookMs;
    start = Math.min(start, Date.parse(time));
    end = Math.max(end, Date.parse(time) + tookMs);
  }
  return { models, failed, span_ms: Math.max(0, end - start), request_ms: requestMs };
}

interface Line {
  readonly what: string;
  readonly a: string;
  readonly b: string;
  readonly change: string;
}

function printSides(a: Side, b: Side): void {
  print(`A  ${describeSide(a)}`);
  print(`B  ${describeSide(b)}`);
  print("");
  const lines = listLines(a, b);
  printTable(lines, [
    { title: "", name: true, read: ({ what }) => what },
    number("A", (line) => line.a),
    number("B", (line) => line.b),
    number("CHANGE", ({ change }) => change),
  ]);
}

function describeSide({ session, tool, label, since }: Side): string {
  return [shortenSession(session, session.length), tool ?? "unknown tool", label ?? "", since]
    .filter((part) => part !== "")
    .join(", ");
}

function listLines(a: Side, b: Side): Line[] {
  const kinds = [...USAGE_KINDS, ...CALL_KINDS].filter((kind) => kind in a.usage || kind in b.usage);
  const models = [...new Set([...Object.keys(a.models), ...Object.keys(b.models)])];
  const count = (what: string, read: (side: Side) => number): Line => compareCounts(what, read(a), read(b));
  const amount = (what: string, read: (side: Side) => string): Line => compareAmounts(what, read(a), read(b));
  const planned = [a, b].some(({ paid_by_plan_usd: usd }) => usd !== undefined);
  return [
    count("turns", ({ requests }) => requests),
    count("of them failed", ({ failed }) => failed),
    count("agents", ({ agents }) => agents),
    ...models.map((model) => count(`turns on ${model}`, (side) => side.models[model] ?? 0)),
    ...kinds.map((kind) => count(kind.replaceAll("_", " "), ({ usage }) => usage[kind] ?? 0)),
    compareRates(a, b),
    count("cache misses", (side) => side.cache_misses),
    amount("missed $", (side) => side.missed_usd),
    amount("official $", (side) => side.official_usd),
    amount("charged $", (side) => side.charge_usd),
    ...(planned ? [amount("paid by a plan $", (side) => side.paid_by_plan_usd ?? "0")] : []),
    compareTimes("time from first to last", a.span_ms, b.span_ms),
    compareTimes("time in requests", a.request_ms, b.request_ms),
  ];
}

function compareCounts(what: string, a: number, b: number): Line {
  const change = a === b ? "" : `${b > a ? "+" : ""}${(b - a).toLocaleString("en-US")}${describeShare(a, b)}`;
  return { what, a: a.toLocaleString("en-US"), b: b.toLocaleString("en-US"), change };
}

/** ` (+12%)` */
function describeShare(a: number, b: number): string {
  if (a === 0) return "";
  const percent = Math.round(((b - a) / a) * 100);
  return ` (${percent > 0 ? "+" : ""}${percent}%)`;
}

function compareRates(a: Side, b: Side): Line {
  const [rateA, rateB] = [a.cache_hit_rate, b.cache_hit_rate].map(formatRate);
  return { what: "read from the cache", a: rateA ?? "", b: rateB ?? "", change: "" };
}

function compareAmounts(what: string, a: string, b: string): Line {
  const difference = subtractDecimals(parseDecimal(b), parseDecimal(a));
  const sign = difference.units > 0n ? "+" : "";
  const change =
    difference.units === 0n
      ? ""
      : `${sign}${formatAmount(formatDecimal(difference))}${describeShare(Number(a), Number(b))}`;
  return { what, a: formatAmount(a), b: formatAmount(b), change };
}

function compareTimes(what: string, a: number, b: number): Line {
  const change = a === b ? "" : `${b > a ? "+" : "-"}${formatMs(Math.abs(b - a))}${describeShare(a, b)}`;
  return { what, a: formatMs(a), b: formatMs(b), change };
}
