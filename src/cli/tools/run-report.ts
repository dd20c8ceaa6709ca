// What `gateway run` says at its end: what the run has cost, and whether its budget is spent.

import type { LoadedConfig } from "../../config/file/load.ts";
import type { RunReport } from "../../gateway/intake/runs.ts";
import { formatRounded, parseDecimal } from "../../lib/money.ts";
import { readDocument } from "../access/control.ts";
import { formatAmount, formatCount } from "../terminal/text.ts";

const TIMEOUT_MS = 2000;

/** Null: no gateway of this version runs on the ledger. */
export function readRun(id: string, { catalog }: LoadedConfig): Promise<RunReport | null> {
  const call = { ledgerPath: catalog.ledger.path, timeoutMs: TIMEOUT_MS };
  return readDocument<RunReport>(call, "GET", `reports/run?id=${id}`).catch(() => null);
}

/** Empty if it cost nothing. `started`: when the run did, in milliseconds since 1970. */
export function describeRun(report: RunReport, budget: string | null, started: number): string {
  const { requests, unknown, refused, is_spent, charge_usd: charge, misses, session } = report;
  const isPart = Date.parse(report.since) > started;
  if (parseDecimal(charge).units === 0n && !is_spent && unknown === 0 && !isPart) return "";
  const what = isPart ? "This run, since the gateway started again" : "This run";
  const known = unknown === 0 ? "" : ` without ${formatCount(unknown, "request")} of unknown cost`;
  const cost = unknown > 0 && unknown === requests ? "of unknown cost" : `${formatUsd(charge)}${known}`;
  const { cache_hit_rate: rate } = report;
  const cached = rate === null ? "" : `, ${Math.round(100 * rate)} % from the cache`;
  const missed = describeMisses(misses);
  const end = is_spent
    ? ` The budget of $${budget} is spent: ${formatCount(refused, "request")} refused.`
    : "";
  const more = session === null ? "" : ` gateway sessions show ${session}`;
  return `${what}: ${formatCount(requests, "request")}, ${cost}${cached}${missed}.${end}${more}`;
}

function describeMisses({ count, usd, because }: RunReport["misses"]): string {
  const cause = because.replaceAll("_", " ");
  if (cause === "") return "";
  return count === 1
    ? `; one miss cost ${formatUsd(usd)} (${cause})`
    : `; ${count} misses cost ${formatUsd(usd)} (mostly: ${cause})`;
}

/** Cents say enough of all but small amounts. */
function formatUsd(usd: string): string {
  const cents = formatRounded(parseDecimal(usd), 2);
  return `$${cents === "0.00" ? formatAmount(usd) : cents}`;
}
