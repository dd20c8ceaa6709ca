// What each session has cost and how much of its input came from the cache, in bounded memory. Limits and the status
// line need it at once, however long the ledger is. Reports read the ledger itself.

import { z } from "zod";

import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../../lib/money.ts";
import { CACHE_READ_KINDS, PROMPT_KINDS } from "../../usage.ts";
import { amountSchema } from "./checkpoint.ts";
import { BoundedMap } from "../../../lib/memory/bounded-map.ts";

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
}

type MutableSum = { -readonly [name in keyof SessionSum]: SessionSum[name] };

interface SessionRequest {
  readonly time: string;
  readonly key: string;
  readonly model: string;
}

export const sessionSchema = z.lazy(() =>
  z.tuple([
    z.string(),
    z.object({
      charged: amountSchema,
      estimated: amountSchema,
      requests: z.number(),
      input: z.number(),
      cached: z.number(),
      key: z.string(),
      model: z.string(),
      last_used: z.string(),
    }),
  ]),
);
type EncodedSession = z.infer<typeof sessionSchema>;

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

  /** For a checkpoint, in the order of the last use: an object's members would not keep it. */
  encode(): EncodedSession[] {
    return Array.from(this.#sessions, ([id, { charged, estimated, lastUsed, ...sum }]) => [
      id,
      { ...sum, charged: formatUsd(charged), estimated: formatUsd(estimated), last_used: lastUsed },
    ]);
  }

  decode(sessions: readonly EncodedSession[]): void {
    for (const [id, { charged, estimated, last_used: lastUsed, ...sum }] of sessions)
      this.#sessions.set(id, {
        ...sum,
        charged: parseUsd(charged),
        estimated: parseUsd(estimated),
        lastUsed,
      });
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
