// What each session has cost and how much of its input came from the cache, in bounded memory. Limits and the status
// line need it at once, however long the ledger is. Reports read the index.

import { addUsd, subtractUsd, type Usd, ZERO_USD } from "../../../lib/money.ts";
import { CACHE_READ_KINDS, PROMPT_KINDS } from "../../usage.ts";
import { BoundedMap } from "../../../lib/memory/bounded-map.ts";
import type { Entry } from "./entry.ts";

const PROMPT: ReadonlySet<string> = new Set(PROMPT_KINDS);
const CACHE_READ: ReadonlySet<string> = new Set(CACHE_READ_KINDS);
/** Sessions that were not used for longest are forgotten: if one continues, its sums begin again. */
export const MAX_SESSIONS = 10_000;

export interface SessionSum {
  readonly charged: Usd;
  /** What limits count in addition: estimates of requests whose cost is not known. */
  readonly estimated: Usd;
  readonly requests: number;
  /** Input tokens of all kinds, and those of them that were read from the cache. */
  readonly input: number;
  readonly cached: number;
  /** Of its last request. */
  readonly key: string;
  readonly model: string;
  readonly lastUsed: string;
}

export type MutableSum = { -readonly [name in keyof SessionSum]: SessionSum[name] };

export function openSum(): MutableSum {
  return {
    charged: ZERO_USD,
    estimated: ZERO_USD,
    requests: 0,
    input: 0,
    cached: 0,
    key: "",
    model: "",
    lastUsed: "",
  };
}

export function addEntry(sum: MutableSum, entry: Entry): void {
  const { charged, estimated, replaced, usage, time, key, model } = entry;
  sum.charged = addUsd(sum.charged, charged);
  sum.estimated = addUsd(sum.estimated, estimated);
  if (replaced !== null) sum.estimated = subtractUsd(sum.estimated, replaced.estimated);
  if (usage === null) return;
  sum.requests += 1;
  for (const kind in usage) {
    const count = usage[kind] ?? 0;
    if (PROMPT.has(kind)) sum.input += count;
    if (CACHE_READ.has(kind)) sum.cached += count;
  }
  if (time < sum.lastUsed) return;
  sum.lastUsed = time;
  sum.key = key;
  sum.model = model;
}

export class SessionSums {
  /** By the session's id, the least recently used first. */
  readonly #sessions = new BoundedMap<string, MutableSum>(MAX_SESSIONS);

  get(id: string): SessionSum | null {
    return this.#sessions.get(id) ?? null;
  }

  /** A correction of a forgotten session changes nothing. */
  add(id: string, entry: Entry): void {
    const known = this.#sessions.get(id);
    if (known === undefined && entry.usage === null) return;
    const sum = known ?? openSum();
    addEntry(sum, entry);
    if (entry.usage !== null) this.#sessions.set(id, sum);
  }

  /** In the order of their last use. */
  load(sessions: Iterable<readonly [id: string, sum: MutableSum]>): void {
    for (const [id, sum] of sessions) this.#sessions.set(id, sum);
  }
}
