// The table of channels: state, counts, and a small chart of the last hour. Pure, except that the table
// remembers its column widths.

import type { ChannelView } from "../../gateway/channels/view.ts";
import { type Column, createTable } from "../terminal/table.ts";
import { formatMs } from "../live/request-columns.ts";
import { paint } from "../terminal/terminal.ts";
import { formatAmount } from "../terminal/text.ts";

interface ChannelColumn extends Column {
  readonly read: (view: ChannelView, now: number) => string;
}

const COLUMNS: readonly ChannelColumn[] = [
  { title: "CHANNEL", name: true, read: ({ name }) => name },
  { title: "PLATFORM", spare: 8, read: ({ platform }) => platform },
  { title: "GROUPS", spare: 9, most: 24, read: ({ groups }) => groups.join(", ") },
  { title: "STATE", spare: 1, least: 11, read: ({ state }) => state },
  { title: "SINCE", spare: 5, read: ({ since }, now) => formatSpan(since, (then) => now - then) },
  { title: "LEFT", spare: 4, read: ({ until }, now) => formatSpan(until, (then) => then - now) },
  number("FIRST", 7, ({ latency_ms: ms }) => (ms === null ? "" : formatMs(ms))),
  number("P95", 12, ({ latency_p95_ms: ms }) => (ms === null ? "" : formatMs(ms))),
  number("OK/H", 6, formatSuccess),
  number("REQ/H", 10, ({ requests_hour: count }) => String(count)),
  number("ERR/H", 11, ({ errors_hour: count }) => String(count)),
  number("TODAY", 13, ({ charge_today_usd: usd }) => `$${formatAmount(usd)}`),
  number("OPEN", 14, formatConnections),
  { title: "LAST HOUR", spare: 3, least: 12, read: drawHour },
  { title: "REASON", spare: 2, least: 12, read: ({ reason }) => reason ?? "" },
];

function number(title: string, spare: number, read: ChannelColumn["read"]): ChannelColumn {
  return { title, spare, align: "right", read };
}

/** For the same hour as the counts beside it. */
function formatSuccess({ requests_hour: requests, errors_hour: errors }: ChannelView): string {
  return requests === 0 ? "" : `${Math.floor((1 - Math.min(1, errors / requests)) * 100)}%`;
}

/** Open connections, and how many of them wait for a request. */
function formatConnections({ connections: { open, idle } }: ChannelView): string {
  return open === 0 ? "" : `${open} (${idle} idle)`;
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

const STATE_STYLES = {
  available: "green",
  degraded: "yellow",
  resting: "yellow",
  unavailable: "red",
  disabled: "dim",
  unknown: "dim",
} as const;

export interface ChannelTable {
  draw(views: readonly ChannelView[], now: number, room: number): string[];
}

export function createChannelTable(): ChannelTable {
  const table = createTable(COLUMNS);
  return {
    draw: (views, now, room) => {
      const cells = views.map((view) => COLUMNS.map(({ read }) => read(view, now)));
      const lines = table.rows(cells, room, (title, text, row) => {
        const view = views[row];
        return view === undefined ? text : paintCell(title, text, view);
      });
      return [paint("dim", table.head(room)), ...lines];
    },
  };
}

function paintCell(title: string, text: string, view: ChannelView): string {
  if (title === "STATE") return paint(STATE_STYLES[view.state], text);
  if (title === "REASON") return paint("dim", text);
  return title === "LAST HOUR" ? paintHour(text, view) : text;
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
