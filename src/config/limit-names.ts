// This file imports nothing, because the browser's page uses it, too.

export const USD_LIMITS = ["usd_per_day", "usd_per_month", "usd_total", "usd_per_session"] as const;
export const COUNT_LIMITS = [
  "requests_per_minute",
  "requests_per_minute_per_session",
  "concurrent_requests",
  "same_call",
] as const;

/** What a limit in USD does with a model without a price.
 *  The first is the default. */
export const UNPRICED = ["refuse", "allow"] as const;

export type NumberLimit = (typeof USD_LIMITS)[number] | (typeof COUNT_LIMITS)[number];
