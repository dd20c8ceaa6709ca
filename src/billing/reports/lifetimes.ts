// What the prompts of a ledger would have cost if their caches had another lifetime: five minutes, or an hour. It goes by
// the pauses that each agent really made, and only reads.

import { parseJson } from "../../lib/json/json.ts";
import { addUsd, isShareReached, parseUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { type Line, lineSchema } from "../ledger/line.ts";
import { listLines } from "../store/lines.ts";
import type { Table } from "../store/open.ts";
import { countTokens, type Usage } from "../usage.ts";
import { AS_IT_WAS, chargeLine, type CurrentPrices } from "./line-charge.ts";
import { describeScope, type Scope } from "./sums.ts";

const MINUTE_MS = 60_000;

interface Policy {
  readonly lifetimeMs: number;
  readonly writes: "cache_write_5m" | "cache_write_1h";
}

/** Only caches whose writes name one of these lifetimes can be compared: no other provider lets a client choose. */
const POLICIES = {
  five_minutes: { lifetimeMs: 5 * MINUTE_MS, writes: "cache_write_5m" },
  one_hour: { lifetimeMs: 60 * MINUTE_MS, writes: "cache_write_1h" },
} as const satisfies Readonly<Record<string, Policy>>;

type PolicyName = keyof typeof POLICIES;
const POLICY_NAMES: readonly PolicyName[] = ["five_minutes", "one_hour"];

interface LifetimeTotals extends Record<PolicyName, Usd> {
  requests: number;
  asItWas: Usd;
}

export interface LifetimeRow {
  readonly tool: string | null;
  readonly label: string | null;
  /** The lifetime that most of its written tokens had. */
  readonly had: "five_minutes" | "one_hour";
  readonly totals: LifetimeTotals;
}

/** One agent's conversation on one cache: what its last request left there. */
interface Chain {
  readonly at: number;
  readonly line: Line;
}

interface Group {
  readonly tool: string | null;
  readonly label: string | null;
  readonly totals: LifetimeTotals;
  written: Record<Policy["writes"], number>;
}

/** The most expensive come first. Requests without a price, of a plan, or with several passes are left out. */
export function compareLifetimes(table: Table, scope: Scope, prices: CurrentPrices): readonly LifetimeRow[] {
  const chains = new Map<string, Chain>();
  const groups = new Map<string, Group>();
  const { sql, values } = describeScope(scope);
  const where = `COALESCE(cache_read, 0) + COALESCE(cache_write_5m, 0) + COALESCE(cache_write_1h, 0) > 0 AND ${sql}`;
  for (const { text } of listLines(table, { where, values })) {
    const line = lineSchema.safeParse(parseJson(text)).data;
    if (line === undefined || line.paid_by !== undefined || (line.parts?.length ?? 1) > 1) continue;
    const { client, channel, model, usage } = line;
    const name = JSON.stringify([client?.session, client?.agent, channel, model]);
    const chain = chains.get(name);
    if (chain === undefined && !hasLifetime(usage)) continue;
    if (addTurn(openGroup(groups, line), { line, cached: countCached(usage), chain, prices }))
      chains.set(name, { at: Date.parse(line.time), line });
  }
  const shown = [...groups.values()].filter(({ totals }) => totals.requests > 0).map(describeGroup);
  return shown.toSorted((a, b) => (a.totals.asItWas > b.totals.asItWas ? -1 : 1));
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
  const { line, prices } = turn;
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
  return true;
}

/** How much of the prompt would have been read. What another change of the prompt cost is the same with every lifetime. */
function countRead({ line, cached, chain }: ComparedTurn, { lifetimeMs }: Policy): number {
  const read = line.usage["cache_read"] ?? 0;
  if (chain === undefined) return read;
  const isThere = Date.parse(line.time) - chain.at <= lifetimeMs;
  if (line.cache?.because === "lifetime_passed")
    return isThere ? Math.min(cached, read + line.cache.missed) : read;
  // A cache that really was there would have been there with a longer lifetime, too.
  return isThere || hadLifetime(line, chain) <= lifetimeMs ? read : 0;
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

function openTotals(): LifetimeTotals {
  return { requests: 0, five_minutes: ZERO_USD, one_hour: ZERO_USD, asItWas: ZERO_USD };
}

interface BetterLifetime {
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
