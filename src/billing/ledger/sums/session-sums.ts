// What each session has cost and how much of its input came from the cache, in bounded memory. Limits and the status
// line need it at once, however long the ledger is. Reports read the table.

import { isObject } from "../../../lib/json/json.ts";
import { addUsd, subtractUsd, type Usd, ZERO_USD } from "../../../lib/money.ts";
import { CACHE_READ_KINDS, PROMPT_KINDS } from "../../usage.ts";
import { BoundedMap } from "../../../lib/memory/bounded-map.ts";
import type { Entry } from "./entry.ts";

const PROMPT: ReadonlySet<string> = new Set(PROMPT_KINDS);
const CACHE_READ: ReadonlySet<string> = new Set(CACHE_READ_KINDS);
/** Sessions that were not used for longest are forgotten: if one continues, its sums begin again. */
const MAX_SESSIONS = 10_000;

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
  /** Of a plan, by name. */
  readonly windows: Readonly<Record<string, WindowRise>>;
}

/** A window of a plan while the session ran, in percent: after its first request, after its last one, and the sum of all
 *  rises in between. It falls when it begins anew. */
interface WindowRise {
  readonly first: number;
  readonly last: number;
  readonly rise: number;
}

/** Upstreams choose the names. */
const MAX_WINDOWS = 8;

export type MutableSum = { -readonly [name in keyof SessionSum]: SessionSum[name] };

function openSum(): MutableSum {
  return {
    charged: ZERO_USD,
    estimated: ZERO_USD,
    requests: 0,
    input: 0,
    cached: 0,
    key: "",
    model: "",
    lastUsed: "",
    windows: NO_WINDOWS,
  };
}

const NO_WINDOWS = {};

function addEntry(sum: MutableSum, entry: Entry): void {
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
  if (entry.windows !== undefined) sum.windows = addWindows(sum.windows, entry.windows);
  if (time < sum.lastUsed) return;
  sum.lastUsed = time;
  sum.key = key;
  sum.model = model;
}

export function addWindows(
  known: SessionSum["windows"],
  seen: Readonly<Record<string, number>>,
): SessionSum["windows"] {
  const next = Object.entries(seen).map(([name, used]): [string, WindowRise] => {
    const now = { first: used, last: used, rise: 0 };
    const before = Object.hasOwn(known, name) ? known[name] : undefined;
    return [name, before === undefined ? now : joinRises(before, now)];
  });
  return Object.fromEntries(Object.entries({ ...known, ...Object.fromEntries(next) }).slice(0, MAX_WINDOWS));
}

/** `later` follows. After a window began anew, it rose from nothing. */
function joinRises(earlier: WindowRise, later: WindowRise): WindowRise {
  const between = later.first - earlier.last;
  const rise = earlier.rise + (between < 0 ? later.first : between) + later.rise;
  return { first: earlier.first, last: later.last, rise: Math.round(rise * 100) / 100 };
}

/** Of a line, as JSON. */
export function readWindows(windows: unknown): Record<string, number> {
  const entries = Object.entries(isObject(windows) ? windows : {});
  return Object.fromEntries(entries.map(([name, used]) => [name, Number(used)]));
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
