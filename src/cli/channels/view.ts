// The table of channels: state, counts, and a small chart of the last hour.

import type { ChannelView } from "../../gateway/channels/view.ts";
import { createColumns } from "../terminal/listing.ts";
import { paint } from "../terminal/terminal.ts";
import { formatAmount } from "../terminal/text.ts";

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
  ["LAST HOUR", drawHour, "text", { spare: 3, least: 12, paint: paintHour }],
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

const HEIGHTS = "▁▂▃▄▅▆▇█";

/** One cell for each five minutes. Its height shows the number of requests, a dot means none. */
function drawHour({ hour }: ChannelView): string {
  const most = Math.max(...hour.map(({ requests }) => requests));
  return hour
    .map(({ requests }) => {
      if (requests === 0) return "·";
      return HEIGHTS[Math.ceil((requests / most) * HEIGHTS.length) - 1] ?? "";
    })
    .join("");
}

/** Red where more than half failed, yellow where some did. */
function paintHour(text: string, { hour }: ChannelView): string {
  const cells = Array.from(text, (cell, index) => {
    const { requests = 0, errors = 0 } = hour[index] ?? {};
    if (errors === 0) return requests === 0 ? paint("dim", cell) : paint("green", cell);
    return paint(errors * 2 > requests ? "red" : "yellow", cell);
  });
  return cells.join("");
}

/** `45s`, `12m`, `3h05`, `2d`. */
function formatSpan(moment: string | null, distance: (then: number) => number): string {
  if (moment === null) return "";
  const seconds = Math.max(0, Math.round(distance(Date.parse(moment)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h${String(minutes % 60).padStart(2, "0")}` : `${Math.floor(hours / 24)}d`;
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
