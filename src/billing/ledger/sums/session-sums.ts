// What each session has cost and how much of its input came from the cache, in bounded memory. Limits and the status
// line need it at once, however long the ledger is. Reports read the ledger itself.

import { addUsd, type Usd, ZERO_USD } from "../../../lib/money.ts";
import { CACHE_READ_KINDS, PROMPT_KINDS } from "../../usage.ts";
import { BoundedMap } from "../../../lib/memory/bounded-map.ts";

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

type MutableSum = { -readonly [name in keyof SessionSum]: SessionSum[name] };

interface SessionRequest {
  readonly time: string;
  readonly key: string;
  readonly model: string;
}

export class SessionSums {
  /** By the session's id, the least recently used first. */
  readonly #sessions = new BoundedMap<string, MutableSum>(MAX_SESSIONS);

  get(id: string): SessionSum | null {
    return this.#sessions.get(id) ?? null;
  }

  /** Adds to a session that has a request. A correction of a forgotten one changes nothing. */
  add(id: string, amount: Usd): void {
    const sum = this.#sessions.get(id);
    if (sum !== undefined) sum.charged = addUsd(sum.charged, amount);
  }

  addEstimate(id: string, amount: Usd): void {
    const sum = this.#sessions.get(id);
    if (sum !== undefined) sum.estimated = addUsd(sum.estimated, amount);
  }

  /** Counts a request and its tokens. To be called before its amounts are added. */
  addRequest(id: string, request: SessionRequest, usage: Readonly<Record<string, number>>): void {
    const sum = this.#open(id, request);
    sum.requests += 1;
    for (const kind in usage) {
      const count = usage[kind] ?? 0;
      if (PROMPT.has(kind)) sum.input += count;
      if (CACHE_READ.has(kind)) sum.cached += count;
    }
    if (request.time < sum.lastUsed) return;
    sum.lastUsed = request.time;
    sum.key = request.key;
    sum.model = request.model;
  }

  /** In the order of their last use. */
  load(sessions: ReadonlyMap<string, SessionSum>): void {
    for (const [id, sum] of sessions) this.#sessions.set(id, { ...sum });
  }

  #open(id: string, { key, model, time }: SessionRequest): MutableSum {
    const sum = this.#sessions.get(id) ?? {
      charged: ZERO_USD,
      estimated: ZERO_USD,
      requests: 0,
      input: 0,
      cached: 0,
      key,
      model,
      lastUsed: time,
    };
    this.#sessions.set(id, sum);
    return sum;
  }
}
