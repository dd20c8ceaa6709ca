// Where another lifetime of caches would have been cheaper, in words.

import { findBetter, type LifetimeRow } from "../../../billing/reports/lifetimes.ts";
import { formatUsd } from "../../../lib/money.ts";
import { formatAmount } from "../../terminal/text.ts";

type Settings = Readonly<Record<LifetimeRow["had"], string>>;

/** Claude Code's settings were measured with 2.1.329, and pi documents its own. Null: a tool whose marks name no lifetime
 *  and that has no setting (opencode 1.18.33). */
const LIFETIME_SETTINGS: Readonly<Record<string, Settings | null>> = {
  "claude-code": { one_hour: "ENABLE_PROMPT_CACHING_1H=1", five_minutes: "FORCE_PROMPT_CACHING_5M=1" },
  pi: { one_hour: "PI_CACHE_RETENTION=long", five_minutes: "PI_CACHE_RETENTION=short" },
  opencode: null,
};

const LIFETIME_FIELDS: Settings = {
  one_hour: '`"ttl": "1h"` in its `cache_control`',
  five_minutes: '`"ttl": "5m"` in its `cache_control`',
};

/** The setting with which a tool asks for a lifetime. Null: it has none. */
function nameLifetimeSetting(tool: string | null, lifetime: LifetimeRow["had"]): string | null {
  const settings = LIFETIME_SETTINGS[tool ?? ""];
  return settings === null ? null : (settings ?? LIFETIME_FIELDS)[lifetime];
}

const LIFETIME_WORDS = { five_minutes: "5 minutes", one_hour: "1 hour" };

/** Where another lifetime would have been cheaper: how much, and the setting. */
export function adviseOnLifetimes(
  rows: readonly LifetimeRow[],
): { readonly text: string; readonly help: string }[] {
  return rows.flatMap((row) => {
    const better = findBetter(row);
    if (better === null) return [];
    const name = [
      row.tool ?? "Requests without a tool",
      ...(row.label === null ? [] : [`(${row.label})`]),
    ].join(" ");
    const saved = `$${formatAmount(formatUsd(better.saved))} of $${formatAmount(formatUsd(row.totals.asItWas))}`;
    const text = `${name}: a cache of ${LIFETIME_WORDS[better.name]} would have saved ${saved}.`;
    const setting = nameLifetimeSetting(row.tool, better.name);
    return [{ text, help: setting === null ? `${row.tool} has no setting for it` : `Set ${setting}` }];
  });
}
