// Where another lifetime of caches would have been cheaper, in words.

import type { BetterLifetime } from "../../../billing/reports/lifetimes.ts";
import { formatUsd } from "../../../lib/money.ts";
import { formatAmount } from "../../terminal/text.ts";

type Settings = Readonly<Record<BetterLifetime["name"], string>>;

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
function nameLifetimeSetting(tool: string | null, lifetime: BetterLifetime["name"]): string | null {
  const settings = LIFETIME_SETTINGS[tool ?? ""];
  return settings === null ? null : (settings ?? LIFETIME_FIELDS)[lifetime];
}

const LIFETIME_WORDS = { five_minutes: "5 minutes", one_hour: "1 hour" };

/** How much cheaper another lifetime would have been, and the setting. */
export function adviseOnLifetime({ tool, label, name, saved, asItWas }: BetterLifetime): string {
  const who = [tool ?? "Requests without a tool", ...(label === null ? [] : [`(${label})`])].join(" ");
  const amounts = `$${formatAmount(formatUsd(saved))} of $${formatAmount(formatUsd(asItWas))}`;
  const setting = nameLifetimeSetting(tool, name);
  const help = setting === null ? `${tool} has no setting for it` : `Set ${setting}`;
  return `${who}: a cache of ${LIFETIME_WORDS[name]} would have saved ${amounts}. ${help}.`;
}
