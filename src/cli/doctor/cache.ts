// `gateway doctor` on prompt caches: causes of misses that came again and again in the last week.

import { existsSync } from "node:fs";
import { openIndex } from "../../billing/index/open.ts";
import { adviseOn, describeCause } from "../../billing/report/cache-causes.ts";
import { listPersistent, type MissTotals, reportMisses } from "../../billing/report/cache-misses.ts";
import { readRowsSince } from "../../billing/index/ledger-index.ts";
import { compareLifetimes } from "../../billing/report/lifetimes.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { adviseOnLifetimes } from "../money/cache/cache-advice.ts";
import { readCurrentPrices } from "../money/prices/in-use.ts";
import { formatUsd } from "../../lib/money.ts";
import { formatAmount, formatCount } from "../terminal/text.ts";
import { type Finding, note } from "./finding.ts";

const PERIOD_MS = 7 * 86_400_000;
const MAX_FINDINGS = 5;

export function checkCaches(loaded: Pick<LoadedConfig, "catalog" | "path">, now: number): Finding[] {
  const { ledger } = loaded.catalog;
  if (!existsSync(ledger.path)) return [];
  const since = new Date(now - PERIOD_MS).toISOString();
  try {
    using index = openIndex(ledger.path, () => {});
    const report = reportMisses(index, { since, until: null });
    // The same cause on the same channel is one finding, whatever the session.
    const found = new Map<string, { text: string; fix: string; totals: MissTotals }>();
    for (const { row, cause } of listPersistent(report)) {
      const fix = adviseOn(cause.cause);
      const name = `${row.channel}: ${describeCause(cause.cause)}`;
      if (fix === null || found.has(name)) continue;
      found.set(name, { text: name, fix, totals: cause.totals });
    }
    const misses = [...found.values()].map(({ text, fix, totals }) => {
      const cost = `$${formatAmount(formatUsd(totals.cost))}`;
      return note("cache", `${text}, ${formatCount(totals.misses, "time")} in one session, for ${cost}`, fix);
    });
    const lifetimes = compareLifetimes(readRowsSince(index, since), readCurrentPrices(loaded));
    const advice = adviseOnLifetimes(lifetimes).map(({ text, help }) => note("cache", text, help));
    return [...misses.slice(0, MAX_FINDINGS), ...advice.slice(0, MAX_FINDINGS)];
  } catch {
    // The check of the ledger reports it.
    return [];
  }
}
