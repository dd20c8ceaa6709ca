// Sums what prompts missed in their caches, by session and model, and by cause. It only reads.

import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import type { Group } from "../index/groups.ts";
import { listMisses, type MissedRequest } from "../index/requests.ts";
import type { LedgerIndex } from "../index/ledger-index.ts";
import { type CacheMiss, cacheSchema } from "../ledger/line.ts";
import { hasNames, type ReportQuery, selectGroups } from "./report.ts";

export type Cause = Pick<CacheMiss, "because" | "at" | "part" | "detail" | "from">;

export interface MissTotals {
  misses: number;
  tokens: number;
  cost: Usd;
  /** Tokens whose cost is not known. */
  unpricedTokens: number;
}

export interface CauseRow {
  readonly cause: Cause;
  readonly totals: MissTotals;
}

/** The misses of one model in one session. */
export interface MissRow {
  /** Null: the lines name no session. */
  readonly session: string | null;
  readonly tool: string | null;
  readonly label: string | null;
  readonly model: string;
  readonly channel: string;
  readonly totals: MissTotals;
  /** The most expensive first. */
  readonly causes: readonly CauseRow[];
}

export interface MissReport {
  /** The most expensive first. */
  readonly rows: readonly MissRow[];
  readonly causes: readonly CauseRow[];
  readonly total: MissTotals;
  /** Requests in the period, with or without a miss. */
  readonly requests: number;
  /** Those of them whose lines name no session, as those of 0.1.0 do. No prompt of theirs was analysed. */
  readonly older: number;
  readonly unreadable: number;
}

/** A cause that comes this often in one session is not an accident. */
const PERSISTENT_MISSES = 3;

/** Causes that come again and again in a session. */
export function listPersistent({ rows }: MissReport): { readonly row: MissRow; readonly cause: CauseRow }[] {
  return rows.flatMap((row) =>
    row.causes.filter(({ totals }) => totals.misses >= PERSISTENT_MISSES).map((cause) => ({ row, cause })),
  );
}

type MissGroup = Omit<MissRow, "totals" | "causes"> & { readonly causes: Map<string, CauseRow> };

export function reportMisses(index: LedgerIndex, query: Omit<ReportQuery, "by">): MissReport {
  const { only = {} } = query;
  const selected = selectGroups(index, { ...query, by: ["model"] });
  const older = only.session === undefined ? { ...query, only: { ...only, session: "" } } : null;
  const models = [...new Set(selected.map(({ traits }) => traits.model))];
  const groups = Map.groupBy(listMisses(index, query), ({ traits }) => traits.model);
  const rows = models.flatMap((model) => sumMisses(groups.get(model) ?? [], query.only));
  const causes = mergeCauses(rows.flatMap((row) => row.causes));
  return {
    rows: rows.toSorted(byCost),
    causes,
    total: sumTotals(causes),
    requests: countRequests(selected),
    older: older === null ? 0 : countRequests(selectGroups(index, { ...older, by: ["model"] })),
    unreadable: index.progress.unreadable,
  };
}

function countRequests(groups: readonly Group[]): number {
  return groups.reduce((sum, { traits, requests }) => sum + (traits.type === "request" ? requests : 0), 0);
}

/** The misses of one model. */
function sumMisses(misses: readonly MissedRequest[], only: ReportQuery["only"]): MissRow[] {
  const groups = new Map<string, MissGroup>();
  for (const miss of misses) {
    const cache = cacheSchema.safeParse(miss.cache).data;
    if (cache === undefined || !hasNames(miss, only)) continue;
    const { channel, model, tool, label } = miss.traits;
    const session = miss.sender.session === "" ? null : miss.sender.session;
    const name = JSON.stringify([session, label, tool, channel, model]);
    const open = (): MissGroup => ({ session, tool, label, model, channel, causes: new Map() });
    const group = groups.getOrInsertComputed(name, open);
    addCause(group.causes, nameCause(cache), readTotals(cache));
  }
  return Array.from(groups.values(), ({ causes, ...group }) => {
    const sorted = [...causes.values()].toSorted(byCost);
    return { ...group, causes: sorted, totals: sumTotals(sorted) };
  });
}

function nameCause({ because, at, part, detail, from }: CacheMiss): Cause {
  // Each message is another one, and so is where it changed.
  const place = because === "messages_changed" ? {} : { ...(at !== undefined && { at }) };
  return {
    because,
    ...place,
    ...(part !== undefined && { part }),
    ...(detail !== undefined && { detail }),
    ...(from !== undefined && { from }),
  };
}

function readTotals({ missed, usd }: CacheMiss): MissTotals {
  const cost = usd === null ? ZERO_USD : parseUsd(usd);
  return { misses: 1, tokens: missed, cost, unpricedTokens: usd === null ? missed : 0 };
}

function addCause(causes: Map<string, CauseRow>, cause: Cause, more: MissTotals): void {
  const name = JSON.stringify(cause);
  const known = causes.get(name);
  causes.set(name, { cause, totals: known === undefined ? more : addTotals(known.totals, more) });
}

function addTotals(a: MissTotals, b: MissTotals): MissTotals {
  return {
    misses: a.misses + b.misses,
    tokens: add(a.tokens, b.tokens),
    cost: addUsd(a.cost, b.cost),
    unpricedTokens: add(a.unpricedTokens, b.unpricedTokens),
  };
}

function add(count: number, other: number): number {
  return count + other;
}

function sumTotals(rows: readonly Pick<CauseRow, "totals">[]): MissTotals {
  const none: MissTotals = { misses: 0, tokens: 0, cost: ZERO_USD, unpricedTokens: 0 };
  return rows.reduce((sum, { totals }) => addTotals(sum, totals), none);
}

function mergeCauses(rows: readonly CauseRow[]): CauseRow[] {
  const causes = new Map<string, CauseRow>();
  for (const { cause, totals } of rows) addCause(causes, cause, totals);
  return [...causes.values()].toSorted(byCost);
}

function byCost({ totals: a }: Pick<CauseRow, "totals">, { totals: b }: Pick<CauseRow, "totals">): number {
  if (a.cost !== b.cost) return a.cost > b.cost ? -1 : 1;
  return b.tokens - a.tokens;
}

/** For scripts: counts as numbers, amounts as exact decimals. */
export function describeMisses({
  misses,
  tokens,
  cost,
  unpricedTokens,
}: MissTotals): Record<string, unknown> {
  return { misses, missed_tokens: tokens, usd: formatUsd(cost), unpriced_tokens: unpricedTokens };
}
