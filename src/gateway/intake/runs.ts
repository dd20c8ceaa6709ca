// The runs of `gateway run`. Tools send the run in the key, behind the secret:
// so a restarted gateway still knows the budget.

import type { LineDraft } from "../../billing/ledger/line.ts";
import { describeCause } from "../../billing/reports/words.ts";
import { countTokens, PROMPT_KINDS, READ_KINDS } from "../../billing/usage.ts";
import { addUsd, formatUsd, parseUsd, subtractUsd, ZERO_USD } from "../../lib/money.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** `=` ends the secret, so masking finds a secret even with a run's name behind it. */
const RUN_KEY = /^(.+)=(run-[0-9a-f-]{36})(?:=usd-(\d{1,12}(?:\.\d{1,12})?))?$/;

export function nameRun(secret: string, id: string, budget: string | null): string {
  return `${secret}=${id}${budget === null ? "" : `=usd-${budget}`}`;
}

export function bareSecret(sent: string): string {
  return RUN_KEY.exec(sent)?.[1] ?? sent;
}

export type RunReport = ReturnType<Runs["find"]>;

export class ToolRun {
  readonly id: string;
  readonly budget: string | null;
  charged = ZERO_USD;
  /** The budget also counts estimates, and what a plan pays. */
  estimated = ZERO_USD;
  refused = 0;
  unpriced: string | null = null;
  #requests = 0;
  #unknown = 0;
  #prompt = 0;
  #cached = 0;
  #misses = { count: 0, usd: ZERO_USD, dearest: ZERO_USD, cause: "" };
  readonly #sessions = new Set<string>();

  constructor(id: string, budget: string | null) {
    this.id = id;
    this.budget = budget;
  }

  get isSpent(): boolean {
    return this.budget !== null && addUsd(this.charged, this.estimated) >= parseUsd(this.budget);
  }

  count({ charge_usd, limit_usd, usage, cache, client, basis, model }: LineDraft): void {
    const charge = charge_usd === null ? ZERO_USD : parseUsd(charge_usd);
    this.charged = addUsd(this.charged, charge);
    if (limit_usd !== undefined)
      this.estimated = addUsd(this.estimated, subtractUsd(parseUsd(limit_usd), charge));
    this.#requests += 1;
    if (charge_usd === null) this.#unknown += 1;
    if (basis === "unpriced") this.unpriced = model;
    this.#prompt += countTokens(usage, PROMPT_KINDS);
    this.#cached += countTokens(usage, READ_KINDS);
    if (client?.session !== undefined) this.#sessions.add(client.session);
    if (cache === undefined) return;
    const usd = parseUsd(cache.usd ?? "0");
    const { count, usd: before, dearest, cause } = this.#misses;
    const most = usd > dearest ? { dearest: usd, cause: describeCause(cache) } : { dearest, cause };
    this.#misses = { count: count + 1, usd: addUsd(before, usd), ...most };
  }

  report() {
    const { count, usd, cause } = this.#misses;
    return {
      requests: this.#requests,
      unknown: this.#unknown,
      refused: this.refused,
      unpriced: this.unpriced,
      is_spent: this.isSpent,
      charge_usd: formatUsd(this.charged),
      cache_hit_rate: this.#prompt === 0 ? null : this.#cached / this.#prompt,
      misses: { count, usd: formatUsd(usd), cause },
      sessions: [...this.#sessions],
    };
  }
}

const MAX_RUNS = 10_000;

export class Runs {
  readonly #runs = new BoundedMap<string, ToolRun>(MAX_RUNS);
  /** Reports name this time, because they lack what an earlier process counted. */
  readonly #since = new Date().toISOString();

  open(sent: string): ToolRun | null {
    const [, , id, budget = null] = RUN_KEY.exec(sent) ?? [];
    if (id === undefined) return null;
    const run = this.#runs.get(id) ?? new ToolRun(id, budget);
    this.#runs.set(id, run);
    return run;
  }

  find(id: string) {
    return { since: this.#since, ...(this.#runs.get(id) ?? new ToolRun(id, null)).report() };
  }
}
