// Draws `gateway top` for a terminal of any size. Pure, except that it remembers column widths and rates.

import type { GatewayState } from "../../gateway/control/state.ts";
import { parseUsd } from "../../lib/money.ts";
import { appendBars } from "../money/usage/bars.ts";
import { createTable } from "../terminal/table.ts";
import { createRequestTable, describeProblem } from "./request-columns.ts";
import { type Frame, fitFrame, listFrame, type Section } from "./sections.ts";
import { paint } from "../terminal/terminal.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { cutText, formatAmount, formatCount, measure, shortenId, shortenSession } from "../terminal/text.ts";
import { createTraffic } from "../../lib/traffic.ts";
import { describeStatus } from "./traffic.ts";

export interface TopView {
  /** Takes the state of the gateway at `now`, in milliseconds. */
  see(state: GatewayState, now: number): void;
  /** The gateway does not answer. The last state stays on the screen. */
  lose(): void;
  /** Both may be infinite. Nothing is cut then. */
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
          ...listProblems(state).map((text) => paint("yellow", cutText(escapeUnprintable(text), columns))),
        ],
        sections: [
          drawStreams(state, columns, now),
          drawSpend(state, columns, now),
          drawRecent(state, columns, now),
        ],
        foot: lost ? "The gateway has stopped. Waiting for it to start again. q: quit" : "q: quit",
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

const HEALTHY_STATES = new Set(["available", "unknown"]);

function listProblems({ ledger, channels }: GatewayState): string[] {
  const ill = channels.filter(({ state }) => !HEALTHY_STATES.has(state));
  return [
    ...(ledger.problem === null ? [] : [`ledger: ${ledger.problem}`]),
    ...ill.map(
      ({ name, state, reason }) => `channel ${name}: ${state}${reason === null ? "" : `, ${reason}`}`,
    ),
  ];
}

type Draw = (state: GatewayState, columns: number, now: number) => Section;

function createStreamSection(): Draw {
  const table = createTable(
    [
      { title: "KEY", name: true, spare: 2, firm: true, least: 6, most: 20 },
      { title: "MODEL", name: true, least: 9, most: 36 },
      { title: "CHANNEL", spare: 4, most: 24 },
      { title: "ID", spare: 5, least: 9 },
      { title: "LABEL", spare: 6, least: 8, most: 24 },
      { title: "SESSION", spare: 7, least: 9 },
      { title: "AGE", align: "right", spare: 3, firm: true },
      { title: "TOKENS", align: "right", spare: 1, firm: true },
    ],
    ["", "claude-sonnet-4-5", "", "", "", "", "10m 00s", "99999"],
  );
  return ({ streams, websockets = 0 }, columns, now) => {
    const cells = [...streams]
      .sort((a, b) => a.since - b.since)
      .map(({ id, key, client, model, channel, since, tokens }) => [
        key,
        model ?? "-",
        channel,
        shortenId(id),
        client.label ?? "",
        shortenSession(client.session ?? ""),
        formatAge(now - since),
        String(tokens),
      ]);
    const rows = table.rows(cells, columns);
    const lines = rows.length === 0 ? [] : [paint("dim", table.head(columns)), ...rows];
    const sockets = websockets === 0 ? "" : `, ${websockets} open WebSocket${websockets === 1 ? "" : "s"}`;
    const title = `${rows.length === 0 ? "No open streams" : "Open streams"}${sockets}`;
    return { title, lines, counts: true };
  };
}

function createSpendSection(): Draw {
  const table = createTable([
    { title: "", name: true },
    { title: "", align: "right", spare: 1, firm: true },
  ]);
  return ({ spend }, columns) => {
    const spent = Object.entries(spend.by_key)
      .map(([key, text]) => ({ key, text, amount: parseUsd(text) }))
      .filter(({ amount }) => amount > 0n)
      .sort((a, b) => (a.amount < b.amount ? 1 : -1));
    const rows = table.rows(
      spent.map(({ key, text }) => [key, `$${formatAmount(text)}`]),
      columns,
    );
    const lines = appendBars(
      rows,
      spent.map(({ amount }) => amount),
      columns,
    );
    return { title: spent.length === 0 ? "Nothing spent today" : "Spent today, by key", lines, counts: true };
  };
}

const MIN_PROBLEM_CELLS = 16;

function createRecentSection(): Draw {
  const table = createRequestTable({ key: "", channel: "" }, false);
  return ({ recent }, columns) => {
    const newestFirst = recent.toReversed();
    const rows = table.rows(newestFirst, "", columns).map((row, index) => {
      const record = newestFirst[index];
      if (record === undefined) return row;
      const trouble = describeProblem(record);
      const room = columns - measure(row) - 2;
      return trouble === "" || room < MIN_PROBLEM_CELLS
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
