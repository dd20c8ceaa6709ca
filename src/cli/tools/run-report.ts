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

/** Empty if it cost nothing. */
export function describeRun(report: RunReport, budget: string | null): string {
  const { requests, refused, is_spent, charge_usd: charge, cache_hit_rate: rate, miss, session } = report;
  if (parseDecimal(charge).units === 0n && !is_spent) return "";
  const cached = rate === null ? "" : `, ${Math.round(100 * rate)} % from the cache`;
  const cause = miss.because.replaceAll("_", " ");
  const missed = cause === "" ? "" : `; one miss cost ${formatUsd(miss.usd)} (${cause})`;
  const end = is_spent
    ? ` The budget of $${budget} is spent: ${formatCount(refused, "request")} refused.`
    : "";
  const more = session === null ? "" : ` gateway sessions show ${session}`;
  return `This run: ${formatCount(requests, "request")}, ${formatUsd(charge)}${cached}${missed}.${end}${more}`;
}

/** Cents say enough of all but small amounts. */
function formatUsd(usd: string): string {
  const cents = formatRounded(parseDecimal(usd), 2);
  return `$${cents === "0.00" ? formatAmount(usd) : cents}`;
}
