// Where another lifetime of caches would have been cheaper, in words.

import { findBetter, type LifetimeReport, type LifetimeRow } from "../../../billing/report/lifetimes.ts";
import { formatUsd } from "../../../lib/money.ts";
import { formatAmount } from "../../terminal/text.ts";

/** Claude Code's settings were measured with 2.1.329. */
const LIFETIME_SETTINGS: Readonly<Record<string, Readonly<Record<LifetimeRow["had"], string>>>> = {
  "claude-code": { one_hour: "ENABLE_PROMPT_CACHING_1H=1", five_minutes: "FORCE_PROMPT_CACHING_5M=1" },
};

const LIFETIME_FIELDS = {
  one_hour: '`"ttl": "1h"` in its `cache_control`',
  five_minutes: '`"ttl": "5m"` in its `cache_control`',
};

/** The setting with which a tool asks for a lifetime. */
export function nameLifetimeSetting(tool: string | null, lifetime: LifetimeRow["had"]): string {
  return LIFETIME_SETTINGS[tool ?? ""]?.[lifetime] ?? LIFETIME_FIELDS[lifetime];
}

const LIFETIME_WORDS = { five_minutes: "5 minutes", one_hour: "1 hour" };

/** Where another lifetime would have been cheaper: how much, and the setting. */
export function adviseOnLifetimes({
  rows,
}: LifetimeReport): { readonly text: string; readonly help: string }[] {
  return rows.flatMap((row) => {
    const better = findBetter(row);
    if (better === null) return [];
    const name = [
      row.tool ?? "Requests without a tool",
      ...(row.label === null ? [] : [`(${row.label})`]),
    ].join(" ");
    const saved = `$${formatAmount(formatUsd(better.saved))} of $${formatAmount(formatUsd(row.totals.asItWas))}`;
    const text = `${name}: a cache of ${LIFETIME_WORDS[better.name]} would have saved ${saved}.`;
    return [{ text, help: `Set ${nameLifetimeSetting(row.tool, better.name)}` }];
  });
}
