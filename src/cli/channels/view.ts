// The table of channels: state and counts.

import type { ChannelView } from "../../gateway/channels/view.ts";
import { createColumns } from "../terminal/listing.ts";
import { paint } from "../terminal/terminal.ts";
import { formatAge, formatAmount } from "../terminal/text.ts";

const STATE_STYLES = {
  available: "green",
  degraded: "yellow",
  resting: "yellow",
  unavailable: "red",
  disabled: "dim",
  unknown: "dim",
} as const;

export const CHANNEL_COLUMNS = createColumns<ChannelView>([
  ["CHANNEL", "name", "text", { name: true }],
  ["PLATFORM", "platform", "text", { spare: 8 }],
  ["GROUPS", "groups", "text", { spare: 9, most: 24 }],
  [
    "STATE",
    "state",
    "text",
    { spare: 1, least: 11, paint: (text, { state }) => paint(STATE_STYLES[state], text) },
  ],
  ["SINCE", ({ since }) => formatSpan(since, (then) => Date.now() - then), "text", { spare: 5 }],
  ["LEFT", ({ until }) => formatSpan(until, (then) => then - Date.now()), "text", { spare: 4 }],
  ["FIRST", "latency_ms", "ms", { spare: 7 }],
  ["P95", "latency_p95_ms", "ms", { spare: 12 }],
  ["OK/H", formatSuccess, "exact", { spare: 6 }],
  ["REQ/H", "requests_hour", "exact", { spare: 10 }],
  ["ERR/H", "errors_hour", "exact", { spare: 11 }],
  ["TODAY", formatToday, "exact", { spare: 13 }],
  // Open connections, and how many of them wait for a request.
  [
    "OPEN",
    ({ connections: { open, idle } }) => (open === 0 ? "" : `${open} (${idle} idle)`),
    "exact",
    { spare: 14 },
  ],
  ["REASON", "reason", "text", { spare: 2, least: 12, paint: (text) => paint("dim", text) }],
]);

/** For the same hour as the counts next to it. */
function formatSuccess({ requests_hour: requests, errors_hour: errors }: ChannelView): string {
  return requests === 0 ? "" : `${Math.floor((1 - Math.min(1, errors / requests)) * 100)}%`;
}

/** What a plan paid is not a charge: it has a sign of its own. */
function formatToday({ charge_today_usd: usd, paid_by_plan_today_usd: plan }: ChannelView): string {
  if (plan === undefined) return `$${formatAmount(usd)}`;
  return `${usd === "0" ? "" : `$${formatAmount(usd)} `}(plan $${formatAmount(plan)})`;
}

function formatSpan(moment: string | null, distance: (then: number) => number): string {
  return moment === null ? "" : formatAge(distance(Date.parse(moment)));
}

const USABLE_STATES = new Set(["available", "degraded", "unknown"]);

/** One sentence for each group without a usable channel. */
export function describeUnservedGroups(views: readonly ChannelView[]): string[] {
  const groups = new Set(views.flatMap((view) => view.groups));
  const served = new Set(
    views.filter(({ state }) => USABLE_STATES.has(state)).flatMap((view) => view.groups),
  );
  return [...groups]
    .filter((group) => !served.has(group))
    .map((group) => `The group "${group}" has no available channel.`);
}
