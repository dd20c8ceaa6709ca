// What `gateway top` shows of a running gateway, in as many lines and cells as there are. Pure but for
// the memory that keeps columns and rates steady.

import type { GatewayState } from "../../gateway/control/state.ts";
import { parseUsd } from "../../lib/money.ts";
import { drawBar } from "../money/bars.ts";
import { createFlexTable } from "../table.ts";
import { createRequestTable, describeTrouble } from "./request-columns.ts";
import { type Frame, fitFrame, listFrame, type Section } from "./sections.ts";
import { paint } from "../terminal.ts";
import { cutText, measure, stripControls, formatCount } from "../text.ts";
import { createTraffic, describeStatus } from "./traffic.ts";

export interface TopView {
  /** What the gateway says at `now`, in milliseconds. */
  see(state: GatewayState, now: number): void;
  /** Nobody answers: what was seen last stays. */
  lose(): void;
  /** Both may be infinite: nothing is cut then. */
  draw(columns: number, rows: number): string[];
}

export function createTopView(): TopView {
  const traffic = createTraffic();
  const drawStreams = createStreamSection();
  const drawSpend = createSpendSection();
  const drawRecent = createRecentSection();
  let seen: { readonly state: GatewayState; readonly now: number } | null = null;
  let lost = false;
  return {
    see: (state, now) => {
      seen = { state, now };
      lost = false;
      traffic.see(state.streams, now);
    },
    lose: () => (lost = true),
    draw: (columns, rows) => {
      if (seen === null) return [];
      const { state, now } = seen;
      const open = state.streams.length;
      const status = { open, tokensPerSecond: traffic.tokensPerSecond(), today: state.spend.today_usd };
      const frame: Frame = {
        head: [
          describeGateway(state, now, columns),
          describeStatus(status, columns),
          ...listTroubles(state).map((text) => paint("yellow", cutText(stripControls(text), columns))),
        ],
        sections: [
          drawStreams(state, columns, now),
          drawSpend(state, columns, now),
          drawRecent(state, columns, now),
        ],
        foot: lost ? "The gateway has ended. This goes on when it is back; q leaves." : "q leaves",
      };
      return rows === Number.POSITIVE_INFINITY ? listFrame(frame) : fitFrame(frame, rows, columns);
    },
  };
}

function describeGateway(state: GatewayState, now: number, columns: number): string {
  const { host, port } = state.address;
  const up = formatAge(now - Date.parse(state.since));
  const { requests, failed, refused } = state.totals;
  const counts = `${formatCount(requests, "request")}, ${failed} failed, ${refused} refused`;
  return cutText(`gateway on ${host}:${port} · up ${up} · ${counts}`, columns);
}

const WELL = new Set(["available", "unknown"]);

function listTroubles({ ledger, channels }: GatewayState): string[] {
  const ill = channels.filter(({ state }) => !WELL.has(state));
  return [
    ...(ledger.problem === null ? [] : [`ledger: ${ledger.problem}`]),
    ...ill.map(
      ({ name, state, reason }) => `channel ${name}: ${state}${reason === null ? "" : `, ${reason}`}`,
    ),
  ];
}

type Draw = (state: GatewayState, columns: number, now: number) => Section;

/** Each draws its rows once before it shows them: then the first stands as the last. */
function createStreamSection(): Draw {
  const table = createFlexTable(
    [
      { title: "KEY", rank: 2, least: 6, most: 20 },
      { title: "MODEL", rank: 0, least: 9, most: 36 },
      { title: "CHANNEL", rank: 4, least: 8, most: 24 },
      { title: "AGE", align: "right", rank: 3, least: 5, most: 8 },
      { title: "TOKENS", align: "right", rank: 1, least: 6, most: 9 },
    ],
    ["", "claude-sonnet-4-5", "", "10m 00s", "99999"],
  );
  return ({ streams }, columns, now) => {
    const cells = [...streams]
      .sort((a, b) => a.since - b.since)
      .map(({ key, model, channel, since, tokens }) => [
        key,
        model ?? "-",
        channel,
        formatAge(now - since),
        String(tokens),
      ]);
    for (const row of cells) table.row(row, columns);
    const rows = cells.map((row) => table.row(row, columns));
    const lines = rows.length === 0 ? [] : [paint("dim", table.head(columns)), ...rows];
    return { title: rows.length === 0 ? "No open streams" : "Open streams", lines, counts: true };
  };
}

const WIDEST_BAR = 40;

function createSpendSection(): Draw {
  const table = createFlexTable([
    { title: "", rank: 0, least: 8, most: 20 },
    { title: "", rank: 1, least: 9, most: 16 },
  ]);
  return ({ spend }, columns) => {
    const spent = Object.entries(spend.by_key)
      .map(([key, text]) => ({ key, text, amount: parseUsd(text) }))
      .filter(({ amount }) => amount > 0n)
      .sort((a, b) => (a.amount < b.amount ? 1 : -1));
    const most = spent[0]?.amount ?? 0n;
    const texts = spent.map(({ key, text }) => [key, `$${text}`]);
    for (const row of texts) table.row(row, columns);
    const rows = texts.map((row) => table.row(row, columns));
    const width = Math.max(0, ...rows.map(measure));
    const cells = Math.min(WIDEST_BAR, columns - width - 2);
    const lines = rows.map((row, index) => {
      const bar = drawBar(spent[index]?.amount ?? 0n, most, cells);
      return `${row}${" ".repeat(width - measure(row) + 2)}${paint("cyan", bar)}`;
    });
    return { title: spent.length === 0 ? "Nothing spent today" : "Spent today, by key", lines, counts: true };
  };
}

const LEAST_TROUBLE = 16;

function createRecentSection(): Draw {
  const table = createRequestTable({ key: "", channel: "" }, false);
  return ({ recent }, columns) => {
    for (const record of recent) table.row(record, "", columns);
    const rows = recent.toReversed().map((record) => {
      const row = table.row(record, "", columns);
      const trouble = stripControls(describeTrouble(record));
      const room = columns - measure(row) - 2;
      return trouble === "" || room < LEAST_TROUBLE
        ? row
        : `${row}  ${paint("yellow", cutText(trouble, room))}`;
    });
    const lines = rows.length === 0 ? [] : [paint("dim", table.head(columns)), ...rows];
    return { title: rows.length === 0 ? "No requests yet" : "Recent requests", lines, counts: false };
  };
}

/** `7s`, `2m 05s`, `3h 12m`, `2d 4h`. */
function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const two = (count: number): string => String(count).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours}h ${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}
