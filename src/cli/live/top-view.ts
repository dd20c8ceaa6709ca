// Draws `gateway top` for a terminal of any size. Pure, except that it remembers column widths and rates.

import type { GatewayState } from "../../gateway/control/state.ts";
import { parseUsd } from "../../lib/money.ts";
import { appendBars } from "../money/usage/bars.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { createTable, number } from "../terminal/table.ts";
import { createRequestTable, describeProblem } from "./request-columns.ts";
import { type Frame, fitFrame, listFrame, type Section } from "./sections.ts";
import { paint } from "../terminal/terminal.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { cutText, formatAmount, formatCount, measure, shortenId, shortenSession } from "../terminal/text.ts";
import { createTraffic } from "../../lib/traffic.ts";
import { describeAllowances } from "./allowances.ts";
import { describeStatus } from "./traffic.ts";

export interface TopView {
  /** Takes the state of the gateway at `now`, in milliseconds. Null: it does not answer, and its last state stays. */
  see(state: GatewayState | null, now: number): void;
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
      lost = state === null;
      if (state === null) return;
      seen = { state, now };
      traffic.see(state.streams, now);
    },
    draw: (columns, rows) => {
      if (seen === null) return [];
      const { state, now } = seen;
      const open = state.streams.length;
      const status = { open, tokensPerSecond: traffic.tokensPerSecond(), today: state.spend.today_usd };
      const frame: Frame = {
        head: [
          describeGateway(state, now, columns),
          describeStatus(status, columns),
          ...describeAllowances(state.channels, new Date(now)).map((text) => cutText(text, columns)),
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

export function listProblems({ ledger, channels, recordings = [] }: GatewayState): string[] {
  const ill = channels.filter(({ state }) => !HEALTHY_STATES.has(state));
  return [
    ...recordings.map(({ name, key }) => `recording ${name}: ${key === null ? "a run" : `key ${key}`}`),
    ...(ledger.problem === null ? [] : [`ledger: ${ledger.problem}`]),
    ...ill.map(
      ({ name, state, reason }) => `channel ${name}: ${state}${reason === null ? "" : `, ${reason}`}`,
    ),
  ];
}

type Draw = (state: GatewayState, columns: number, now: number) => Section;

function createStreamSection(): Draw {
  type Stream = GatewayState["streams"][number] & { readonly now: number };
  const table = createTable<Stream>([
    { title: "KEY", name: true, spare: 2, firm: true, least: 6, most: 20, read: ({ key }) => key },
    {
      title: "MODEL",
      name: true,
      least: 9,
      most: 36,
      usual: "claude-sonnet-4-5",
      read: ({ model }) => model ?? "-",
    },
    { title: "CHANNEL", spare: 4, most: 24, read: ({ channel }) => channel },
    { title: "ID", spare: 5, least: 9, read: ({ id }) => shortenId(id) },
    { title: "LABEL", spare: 6, least: 8, most: 24, read: ({ client }) => client.label ?? "" },
    { title: "SESSION", spare: 7, least: 9, read: ({ client }) => shortenSession(client.session ?? "") },
    { ...number("AGE", ({ now, since }) => formatAge(now - since), 3), firm: true, usual: "10m 00s" },
    { ...number("TOKENS", ({ tokens }) => String(tokens), 1), firm: true, usual: "99999" },
  ]);
  return ({ streams, websockets = 0 }, columns, now) => {
    const sorted = streams.toSorted((a, b) => a.since - b.since);
    const isNone = sorted.length === 0;
    const sockets = websockets === 0 ? "" : `, ${websockets} open WebSocket${websockets === 1 ? "" : "s"}`;
    return {
      title: `${isNone ? "No open streams" : "Open streams"}${sockets}`,
      lines: isNone
        ? []
        : table.draw(
            sorted.map((stream) => ({ ...stream, now })),
            columns,
          ),
      counts: true,
    };
  };
}

function createSpendSection(): Draw {
  const table = createTable<readonly [key: string, usd: string]>([
    { title: "", name: true, read: ([key]) => key },
    { ...number("", ([, usd]) => `$${formatAmount(usd)}`, 1), firm: true },
  ]);
  return ({ spend }, columns) => {
    const spent = Object.entries(spend.by_key)
      .filter(([, usd]) => parseUsd(usd) > 0n)
      .sort(([, one], [, other]) => (parseUsd(one) < parseUsd(other) ? 1 : -1));
    const amounts = spent.map(([, usd]) => parseUsd(usd));
    const lines = appendBars(table.rows(spent, columns), amounts, columns);
    const plans = Object.entries(spend.by_plan ?? {})
      .filter(([, usd]) => parseUsd(usd) > 0n)
      .map(([key, usd]) => `${key}  $${formatAmount(usd)} paid by a plan`);
    const isNone = [...spent, ...plans].length === 0;
    const title = isNone ? "Nothing spent today" : "Spent today, by key";
    return { title, lines: [...lines, ...plans.map((line) => cutText(line, columns))], counts: true };
  };
}

const MIN_PROBLEM_CELLS = 16;

function createRecentSection(): Draw {
  const table = createRequestTable({ key: "", channel: "" }, false);
  return ({ recent }, columns) => {
    const newest = recent.toReversed();
    const [head = "", ...rows] = table.draw(
      newest.map((record) => ({ record, today: "" })),
      columns,
    );
    const lines = newest.map((record, index) => addProblem(rows[index] ?? "", record, columns));
    const isNone = newest.length === 0;
    return {
      title: isNone ? "No requests yet" : "Recent requests",
      lines: isNone ? [] : [head, ...lines],
      counts: false,
    };
  };
}

function addProblem(row: string, record: RequestRecord, columns: number): string {
  const trouble = describeProblem(record);
  const room = columns - measure(row) - 2;
  if (trouble === "" || room < MIN_PROBLEM_CELLS) return row;
  return `${row}  ${paint("yellow", cutText(trouble, room))}`;
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
