// Channels as rows of a table: state, record and a small picture of the last hour. Pure but for the
// memory that keeps the columns steady.

import type { ChannelView } from "../../gateway/control/state.ts";
import { createFlexTable, type FlexColumn } from "../table.ts";
import { formatMs } from "../live/request-columns.ts";
import { paint } from "../terminal.ts";

interface ChannelColumn extends FlexColumn {
  readonly read: (view: ChannelView, now: number) => string;
}

const COLUMNS: readonly ChannelColumn[] = [
  column("CHANNEL", 0, [8, 24], ({ name }) => name),
  column("PLATFORM", 8, [8, 9], ({ platform }) => platform),
  column("GROUPS", 9, [6, 24], ({ groups }) => groups.join(", ")),
  column("STATE", 1, [11, 11], ({ state }) => state),
  column("SINCE", 5, [5, 6], ({ since }, now) => formatSpan(since === null ? null : now - Date.parse(since))),
  column("LEFT", 4, [4, 6], ({ until }, now) => formatSpan(until === null ? null : Date.parse(until) - now)),
  right("OK", 6, [4, 5], ({ success_rate: rate }) => (rate === null ? "" : `${Math.floor(rate * 100)}%`)),
  right("FIRST", 7, [5, 8], ({ latency_ms: ms }) => (ms === null ? "" : formatMs(ms))),
  right("P95", 12, [5, 8], ({ latency_p95_ms: ms }) => (ms === null ? "" : formatMs(ms))),
  right("REQ/H", 10, [5, 8], ({ requests_hour: count }) => String(count)),
  right("ERR/H", 11, [5, 8], ({ errors_hour: count }) => String(count)),
  right("TODAY", 13, [8, 16], ({ charge_today_usd: usd }) => `$${usd}`),
  column("LAST HOUR", 3, [12, 12], drawHour),
  column("REASON", 2, [12, 400], ({ reason }) => reason ?? ""),
];

type Widths = readonly [least: number, most: number];

function column(
  title: string,
  rank: number,
  [least, most]: Widths,
  read: ChannelColumn["read"],
): ChannelColumn {
  return { title, rank, least, most, read };
}

function right(
  title: string,
  rank: number,
  [least, most]: Widths,
  read: ChannelColumn["read"],
): ChannelColumn {
  return { title, rank, least, most, read, align: "right" };
}

const HEIGHTS = "▁▂▃▄▅▆▇█";

/** A cell for five minutes, as high as there were requests; a blank where there were none. */
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
  const table = createFlexTable(COLUMNS);
  return {
    draw: (views, now, room) => {
      const rows = views.map((view) => ({ view, cells: COLUMNS.map(({ read }) => read(view, now)) }));
      // Twice: a column is as wide as its widest cell, which may come last.
      for (const { cells } of rows) table.row(cells, room);
      const lines = rows.map(({ view, cells }) =>
        table.row(cells, room, (each, text) => paintCell(each.title, text, view)),
      );
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
function formatSpan(ms: number | null): string {
  if (ms === null) return "";
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h${String(minutes % 60).padStart(2, "0")}` : `${Math.floor(hours / 24)}d`;
}

const USABLE = new Set(["available", "degraded", "unknown"]);

/** A sentence for each group none of whose channels can be used now. */
export function listDeprived(views: readonly ChannelView[]): string[] {
  const groups = new Set(views.flatMap((view) => view.groups));
  const served = new Set(views.filter(({ state }) => USABLE.has(state)).flatMap((view) => view.groups));
  return [...groups]
    .filter((group) => !served.has(group))
    .map((group) => `The group "${group}" has no available channel.`);
}
