// What the prompts of a ledger would have cost if their caches had another lifetime: five minutes, an hour, or five minutes
// and a request before they end. It goes by the pauses that each agent really made, and only reads.

import {
  addUsd,
  formatUsd,
  isShareReached,
  parseUsd,
  subtractUsd,
  type Usd,
  ZERO_USD,
} from "../../lib/money.ts";
import { type Line, lineSchema } from "../ledger/line.ts";
import type { Row } from "../ledger/row.ts";
import { countTokens, type Usage } from "../usage.ts";
import { AS_IT_WAS, chargeLine, type CurrentPrices } from "./line-charge.ts";

const MINUTE_MS = 60_000;

interface Policy {
  readonly lifetimeMs: number;
  readonly writes: "cache_write_5m" | "cache_write_1h";
  /** How often, and at most how many times in a pause, a request keeps the cache alive; null: never. */
  readonly ping: { readonly everyMs: number; readonly most: number } | null;
}

/** Only caches whose writes name one of these lifetimes can be compared: no other provider lets a client choose. */
const POLICIES = {
  five_minutes: { lifetimeMs: 5 * MINUTE_MS, writes: "cache_write_5m", ping: null },
  one_hour: { lifetimeMs: 60 * MINUTE_MS, writes: "cache_write_1h", ping: null },
  kept_alive: { lifetimeMs: 5 * MINUTE_MS, writes: "cache_write_5m", ping: { everyMs: 280_000, most: 2 } },
} as const satisfies Readonly<Record<string, Policy>>;

type PolicyName = keyof typeof POLICIES;
const POLICY_NAMES: readonly PolicyName[] = ["five_minutes", "one_hour", "kept_alive"];

/** A shorter prompt costs more to keep alive than to write again. */
const MIN_KEPT_TOKENS = 20_000;

export interface LifetimeTotals extends Record<PolicyName, Usd> {
  requests: number;
  /** Requests after a pause of more than five minutes, and of more than an hour. */
  pauses: number;
  longPauses: number;
  /** The requests that keep caches alive. */
  pings: number;
  asItWas: Usd;
}

export interface LifetimeRow {
  readonly tool: string | null;
  readonly label: string | null;
  /** The lifetime that most of its written tokens had. */
  readonly had: "five_minutes" | "one_hour";
  readonly totals: LifetimeTotals;
}

export interface LifetimeReport {
  /** The most expensive first. */
  readonly rows: readonly LifetimeRow[];
  readonly total: LifetimeTotals;
  /** Requests with such a cache that could not be compared: without a price, of a plan, or with several passes. */
  readonly leftOut: number;
}

/** One agent's conversation on one cache: what its last request left there. */
interface Chain {
  at: number;
  line: Line;
  cached: number;
}

interface Group {
  readonly tool: string | null;
  readonly label: string | null;
  readonly totals: LifetimeTotals;
  written: Record<Policy["writes"], number>;
}

/** `rows`: in the order of the ledger. */
export function compareLifetimes(rows: Iterable<Row>, prices: CurrentPrices): LifetimeReport {
  const chains = new Map<string, Chain>();
  const groups = new Map<string, Group>();
  let leftOut = 0;
  for (const row of rows) {
    const name = JSON.stringify([row.client?.session, row.client?.agent, row.channel, row.model]);
    const chain = chains.get(name);
    const cached = countCached(row.usage);
    if (row.was !== null || cached === 0 || (chain === undefined && !hasLifetime(row.usage))) continue;
    const line = readComparable(row);
    if (line !== null && addTurn(openGroup(groups, line), { line, cached, chain, prices }))
      chains.set(name, { at: Date.parse(line.time), line, cached });
    else leftOut += 1;
  }
  // Nobody knew that nothing would come after the last request of each.
  for (const chain of chains.values())
    addPings(openGroup(groups, chain.line).totals, chain, Number.POSITIVE_INFINITY, prices);
  const shown = [...groups.values()].filter(({ totals }) => totals.requests > 0).map(describeGroup);
  const total = shown.reduce((sum, { totals }) => addTotals(sum, totals), openTotals());
  return { rows: shown.toSorted((a, b) => (a.totals.asItWas > b.totals.asItWas ? -1 : 1)), total, leftOut };
}

/** Null: a plan paid it, it has several passes, or it cannot be read. */
function readComparable({ line: text }: Row): Line | null {
  const line = lineSchema.safeParse(text).data;
  return line === undefined || line.paid_by !== undefined || (line.parts?.length ?? 1) > 1 ? null : line;
}

function openGroup(groups: Map<string, Group>, { client }: Line): Group {
  const [tool, label] = [client?.tool ?? null, client?.label ?? null];
  const name = JSON.stringify([tool, label]);
  const written = { cache_write_5m: 0, cache_write_1h: 0 };
  return groups.getOrInsertComputed(name, () => ({ tool, label, totals: openTotals(), written }));
}

function describeGroup({ written, ...group }: Group): LifetimeRow {
  return { ...group, had: written.cache_write_1h > written.cache_write_5m ? "one_hour" : "five_minutes" };
}

function hasLifetime({ cache_write_5m: short = 0, cache_write_1h: long = 0 }: Usage): boolean {
  return short + long > 0;
}

/** What the prompt has read from the cache and written to it. */
function countCached(usage: Usage): number {
  return countTokens(usage, ["cache_read", "cache_write_5m", "cache_write_1h"]);
}

interface ComparedTurn {
  readonly line: Line;
  readonly cached: number;
  readonly chain: Chain | undefined;
  readonly prices: CurrentPrices;
}

/** False: it has no price with one of the lifetimes. */
function addTurn({ totals, written }: Group, turn: ComparedTurn): boolean {
  const { line, chain, prices } = turn;
  const asItWas = price(line, prices, null);
  const amounts = POLICY_NAMES.map((name) => {
    const read = countRead(turn, POLICIES[name]);
    return price(line, prices, (usage) => splitCached(usage, read, POLICIES[name].writes));
  });
  if (asItWas === null || amounts.includes(null)) return false;
  for (const [index, name] of POLICY_NAMES.entries())
    totals[name] = addUsd(totals[name], amounts[index] ?? ZERO_USD);
  totals.asItWas = addUsd(totals.asItWas, asItWas);
  totals.requests += 1;
  for (const kind of ["cache_write_5m", "cache_write_1h"] as const) written[kind] += line.usage[kind] ?? 0;
  if (chain !== undefined) addPause(totals, chain, Date.parse(line.time) - chain.at, prices);
  return true;
}

function addPause(totals: LifetimeTotals, chain: Chain, pauseMs: number, prices: CurrentPrices): void {
  if (pauseMs > POLICIES.five_minutes.lifetimeMs) totals.pauses += 1;
  if (pauseMs > POLICIES.one_hour.lifetimeMs) totals.longPauses += 1;
  addPings(totals, chain, pauseMs, prices);
}

/** How much of the prompt would have been read. What another change of the prompt cost is the same with every lifetime. */
function countRead({ line, cached, chain }: ComparedTurn, policy: Policy): number {
  const read = line.usage["cache_read"] ?? 0;
  if (chain === undefined) return read;
  const lifetimeMs = measureLifetime(policy, chain.cached);
  const isThere = Date.parse(line.time) - chain.at <= lifetimeMs;
  if (line.cache?.because === "lifetime_passed")
    return isThere ? Math.min(cached, read + line.cache.missed) : read;
  // A cache that really was there would have been there with a longer lifetime, too.
  return isThere || hadLifetime(line, chain) <= lifetimeMs ? read : 0;
}

function measureLifetime({ lifetimeMs, ping }: Policy, cached: number): number {
  return ping === null || cached < MIN_KEPT_TOKENS ? lifetimeMs : lifetimeMs + ping.everyMs * ping.most;
}

function hadLifetime(line: Line, chain: Chain): number {
  const hasHour = [line, chain.line].some(({ usage }) => (usage["cache_write_1h"] ?? 0) > 0);
  return POLICIES[hasHour ? "one_hour" : "five_minutes"].lifetimeMs;
}

function splitCached(usage: Usage, read: number, writes: Policy["writes"]): Usage {
  const { cache_write_5m: _short, cache_write_1h: _long, ...rest } = usage;
  return { ...rest, cache_read: read, [writes]: countCached(usage) - read };
}

/** Null: it has no price. */
function price(line: Line, prices: CurrentPrices, recount: ((usage: Usage) => Usage) | null): Usd | null {
  const charge = chargeLine(line, prices, { ...AS_IT_WAS, recount })?.charge ?? null;
  return charge === null ? null : parseUsd(charge);
}

/** Each reads the cached prompt once. */
function addPings(totals: LifetimeTotals, chain: Chain, pauseMs: number, prices: CurrentPrices): void {
  const { everyMs, most } = POLICIES.kept_alive.ping;
  const pings = Math.min(most, Math.floor(pauseMs / everyMs));
  if (chain.cached < MIN_KEPT_TOKENS || pings <= 0) return;
  const each = price(chain.line, prices, () => ({ cache_read: chain.cached })) ?? ZERO_USD;
  for (let made = 0; made < pings; made += 1) totals.kept_alive = addUsd(totals.kept_alive, each);
  totals.pings += pings;
}

function openTotals(): LifetimeTotals {
  const amounts = { five_minutes: ZERO_USD, one_hour: ZERO_USD, kept_alive: ZERO_USD, asItWas: ZERO_USD };
  return { requests: 0, pauses: 0, longPauses: 0, pings: 0, ...amounts };
}

function addTotals(sum: LifetimeTotals, more: LifetimeTotals): LifetimeTotals {
  for (const name of [...POLICY_NAMES, "asItWas"] as const) sum[name] = addUsd(sum[name], more[name]);
  for (const name of ["requests", "pauses", "longPauses", "pings"] as const) sum[name] += more[name];
  return sum;
}

export interface BetterLifetime {
  readonly name: LifetimeRow["had"];
  readonly saved: Usd;
}

/** The other lifetime that a client can choose, if it would have saved a cent and one percent. */
export function findBetter({ had, totals }: LifetimeRow): BetterLifetime | null {
  const name = had === "one_hour" ? "five_minutes" : "one_hour";
  const saved = subtractUsd(totals.asItWas, totals[name]);
  return saved >= WORTH && isShareReached(saved, totals.asItWas, 1) ? { name, saved } : null;
}

const WORTH = parseUsd("0.01");

/** For scripts: counts as numbers, amounts as exact decimals. */
export function describeLifetimes(totals: LifetimeTotals): Record<string, unknown> {
  return {
    requests: totals.requests,
    pauses_over_5m: totals.pauses,
    pauses_over_1h: totals.longPauses,
    charge_usd: formatUsd(totals.asItWas),
    five_minutes_usd: formatUsd(totals.five_minutes),
    one_hour_usd: formatUsd(totals.one_hour),
    kept_alive_usd: formatUsd(totals.kept_alive),
    pings: totals.pings,
  };
}
