// What lines add to the spending of key, group, channel and session.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { addUsd, parseUsd, roundUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { addSum, ALL, sumRequests } from "../reports/sums.ts";
import type { Table } from "../store/open.ts";
import { countTokens, PROMPT_KINDS, READ_KINDS } from "../usage.ts";
import type { AnyLine, Line } from "./line.ts";

export interface Amounts {
  readonly charged: Usd;
  /** Limits count this besides the charge: estimates, and what plans pay. */
  readonly estimated: Usd;
  /** What plans pay. The charge does not include it. */
  readonly byPlan: Usd;
}

export type MutableAmounts = { -readonly [name in keyof Amounts]: Amounts[name] };

export const NOTHING: Amounts = { charged: ZERO_USD, estimated: ZERO_USD, byPlan: ZERO_USD };

/** What a line adds to sums: two shares if it replaces an estimate. */
export function listShares(line: AnyLine) {
  const at = Date.parse("request_time" in line ? line.request_time : line.time);
  const payer = "paid_by" in line ? line.paid_by : undefined;
  const now = "mark" in line ? { charge_usd: null, official_usd: null, limit_usd: line.limit_usd } : line;
  const amounts: MutableAmounts = readAmounts(now, payer);
  if ("was" in line) {
    const { charged, estimated, byPlan } = readAmounts(line.was, payer);
    amounts.charged = subtractUsd(amounts.charged, charged);
    amounts.estimated = subtractUsd(amounts.estimated, estimated);
    amounts.byPlan = subtractUsd(amounts.byPlan, byPlan);
  }
  const shares = [{ at, amounts }];
  const replaced = "replaces" in line ? line.replaces : undefined;
  if (replaced === undefined) return shares;
  const estimated = subtractUsd(ZERO_USD, parseUsd(replaced.limit_usd));
  return [...shares, { at: Date.parse(replaced.time), amounts: { ...NOTHING, estimated } }];
}

type AmountFields = Pick<Line, "charge_usd" | "official_usd" | "limit_usd">;

function readAmounts(
  { charge_usd: charge, official_usd: official, limit_usd: limit }: AmountFields,
  payer?: string,
): Amounts {
  const charged = charge === null ? ZERO_USD : parseUsd(charge);
  return {
    charged,
    estimated: limit === undefined ? ZERO_USD : subtractUsd(parseUsd(limit), charged),
    byPlan: payer === "plan" && official !== null ? parseUsd(official) : ZERO_USD,
  };
}

export function addAmounts(sum: MutableAmounts, { charged, estimated, byPlan }: Amounts): void {
  if (charged !== 0n) sum.charged = addUsd(sum.charged, charged);
  if (estimated !== 0n) sum.estimated = addUsd(sum.estimated, estimated);
  if (byPlan !== 0n) sum.byPlan = addUsd(sum.byPlan, byPlan);
}

export type SessionSum = ReturnType<typeof readSession>;

/** How much a plan's windows rose, in percent. */
export type WindowRises = Readonly<Record<string, { readonly last: number; readonly rise: number }>>;

/** Upstreams could send any number of names. */
const MAX_WINDOWS = 8;

export function readSession(table: Table, id: string) {
  const { rows, total } = sumRequests(table, {
    ...ALL,
    only: { session: id },
    by: [],
    sums: { counted: "SUM(counted)" },
    // With MAX, key and model are from the last request.
    values: ["key", "model", "MAX(last)"],
  });
  const { totals } = total;
  const [key, model, at] = rows[0]?.values ?? [];
  const charged = parseUsd(totals.charge_usd);
  return {
    charged,
    estimated: subtractUsd(roundUsd(addSum(total, "counted")), charged),
    byPlan: parseUsd(totals.paid_by_plan_usd ?? "0"),
    requests: totals.requests,
    input: countTokens(totals.usage, PROMPT_KINDS),
    cached: countTokens(totals.usage, READ_KINDS),
    key: String(key ?? ""),
    model: String(model ?? ""),
    lastUsed: new Date(Number(at)).toISOString(),
    windows: readRises(table, id),
  };
}

export function readRises(table: Table, session: string): WindowRises {
  const seen = table.list(
    "SELECT windows FROM requests WHERE session = $session AND windows IS NOT NULL ORDER BY line",
    { $session: session },
  );
  return seen.reduce<WindowRises>((rises, [text]) => addWindows(rises, parseJson(String(text))), {});
}

/** The oldest session comes first. `place` has the group, the model and,
 *  if the tool named the session, the channel that answered. */
export function listSessions(table: Table, since: number) {
  const sql = `SELECT last_at, inferred, key, IFNULL(tool, ''), IFNULL(label, ''), session, group_name, model, IIF(inferred IS NULL
    AND (outcome = 'complete' OR answered IS NOT NULL), channel, '') FROM names WHERE last_at >= $since AND session IS NOT NULL ORDER BY last_at`;
  return table.list(sql, { $since: since }).map(([at, inferred, ...texts]) => {
    const [key = "", tool = "", label = "", session = "", ...place] = texts.map(String);
    return { at: Number(at), isInferred: inferred !== null, key, client: { tool, label }, session, place };
  });
}

/** A correction or a mark is not a request. */
export function addToSession(sum: SessionSum, line: AnyLine): void {
  for (const { amounts } of listShares(line)) addAmounts(sum, amounts);
  if (!("status" in line)) return;
  const { time, key, model, usage } = line;
  sum.requests += 1;
  sum.input += countTokens(usage, PROMPT_KINDS);
  sum.cached += countTokens(usage, READ_KINDS);
  sum.windows = addWindows(sum.windows, line.windows);
  if (time >= sum.lastUsed) Object.assign(sum, { lastUsed: time, key, model });
}

function addWindows(known: WindowRises, seen: unknown): WindowRises {
  const next = { ...known };
  for (const [name, value] of Object.entries(isObject(seen) ? seen : {})) {
    const used = Number(value);
    const { last, rise } = (Object.hasOwn(known, name) ? known[name] : undefined) ?? { last: used, rise: 0 };
    // A window that began anew rose from 0.
    next[name] = { last: used, rise: Math.round((rise + used - (used < last ? 0 : last)) * 100) / 100 };
  }
  return Object.fromEntries(Object.entries(next).slice(0, MAX_WINDOWS));
}
