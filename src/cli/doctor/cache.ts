// `gateway doctor` on prompt caches: causes of misses that came again and again in the last week.

import { existsSync } from "node:fs";
import { openIndex } from "../../billing/index/open.ts";
import { listPersistent, type MissTotals, reportMisses } from "../../billing/report/cache-misses.ts";
import type { Catalog } from "../../config/catalog.ts";
import { adviseOn, describeCause } from "../money/cache/cache-advice.ts";
import { formatUsd } from "../../lib/money.ts";
import { formatAmount, formatCount } from "../terminal/text.ts";
import { type Finding, note } from "./finding.ts";

const PERIOD_MS = 7 * 86_400_000;
const MAX_FINDINGS = 5;

export function checkCaches({ ledger }: Catalog, now: number): Finding[] {
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
    return [...found.values()].slice(0, MAX_FINDINGS).map(({ text, fix, totals }) => {
      const cost = `$${formatAmount(formatUsd(totals.cost))}`;
      return note("cache", `${text}, ${formatCount(totals.misses, "time")} in one session, for ${cost}`, fix);
    });
  } catch {
    // The check of the ledger reports it.
    return [];
  }
}
