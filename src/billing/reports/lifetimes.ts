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

/** The requests of one tool and label: what they cost, and would have cost with each lifetime. */
interface Group extends Record<PolicyName | "asItWas", Usd> {
  readonly tool: string | null;
  readonly label: string | null;
  /** Written tokens, by the lifetime that they had. */
  readonly written: Record<Policy["writes"], number>;
}

/** Another lifetime that a client can choose. */
export interface BetterLifetime extends Pick<Group, "tool" | "label" | "asItWas"> {
  readonly name: PolicyName;
  readonly saved: Usd;
}

/** One agent's conversation on one cache: what its last request left there. */
interface Chain {
  readonly at: number;
  readonly line: Line;
}

/** Where another lifetime would have saved a cent and one percent; what cost most comes first. Requests without a price, of a
 *  plan, or with several passes are left out. */
export function findBetterLifetimes(table: Table, scope: Scope, prices: CurrentPrices): BetterLifetime[] {
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
    if (chain === undefined && countTokens(usage, WRITES) === 0) continue;
    if (addTurn(openGroup(groups, line), { line, cached: countCached(usage), chain, prices }))
      chains.set(name, { at: Date.parse(line.time), line });
  }
  const sorted = [...groups.values()].toSorted((a, b) => (a.asItWas > b.asItWas ? -1 : 1));
  return sorted.flatMap((group) => {
    const { tool, label, written, asItWas } = group;
    const name = written.cache_write_1h > written.cache_write_5m ? "five_minutes" : "one_hour";
    const saved = subtractUsd(asItWas, group[name]);
    const isWorth = saved >= WORTH && isShareReached(saved, asItWas, 1);
    return isWorth ? [{ tool, label, asItWas, name, saved }] : [];
  });
}

const WORTH = parseUsd("0.01");
const WRITES = ["cache_write_5m", "cache_write_1h"] as const;

function openGroup(groups: Map<string, Group>, { client }: Line): Group {
  const [tool, label] = [client?.tool ?? null, client?.label ?? null];
  return groups.getOrInsertComputed(JSON.stringify([tool, label]), () => ({
    tool,
    label,
    asItWas: ZERO_USD,
    five_minutes: ZERO_USD,
    one_hour: ZERO_USD,
    written: { cache_write_5m: 0, cache_write_1h: 0 },
  }));
}

/** What the prompt has read from the cache and written to it. */
function countCached(usage: Usage): number {
  return countTokens(usage, ["cache_read", ...WRITES]);
}

interface ComparedTurn {
  readonly line: Line;
  readonly cached: number;
  readonly chain: Chain | undefined;
  readonly prices: CurrentPrices;
}

/** False: it has no price with one of the lifetimes. */
function addTurn(group: Group, turn: ComparedTurn): boolean {
  const { line, prices } = turn;
  const amounts = ([null, "five_minutes", "one_hour"] as const).map((name) => {
    if (name === null) return price(line, prices, null);
    const read = countRead(turn, POLICIES[name]);
    return price(line, prices, (usage) => splitCached(usage, read, POLICIES[name].writes));
  });
  const [asItWas, short, long] = amounts;
  if (!asItWas || !short || !long) return false;
  group.asItWas = addUsd(group.asItWas, asItWas);
  group.five_minutes = addUsd(group.five_minutes, short);
  group.one_hour = addUsd(group.one_hour, long);
  for (const kind of WRITES) group.written[kind] += line.usage[kind] ?? 0;
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
