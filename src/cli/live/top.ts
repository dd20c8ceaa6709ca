// `gateway top`: what runs, and the requests, open ones first.

import type { GatewayState } from "../../gateway/api/state.ts";
import type { ChannelView } from "../../gateway/channels/view.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { writeAllowance } from "../../lib/text/allowance.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { askGateway, readDocument } from "../access/control.ts";
import { locateLedger, type LedgerFlags } from "../access/ledger-place.ts";
import { paint, printJson, printLines } from "../terminal/terminal.ts";
import { cutText, formatAge, formatAgo, formatAmount, formatCount, measure } from "../terminal/text.ts";
import { renew } from "./renew.ts";
import { OPEN, createRequestTable, describeProblem, describeRecord } from "./request-log.ts";

/** If `state` is null, no gateway answered, and the last state is drawn. */
type DrawTop = (state: GatewayState | null, columns: number, now: number) => string[];

export function createTopView(): DrawTop {
  const table = createRequestTable();
  let last: GatewayState | null = null;
  return (seen, columns, now) => {
    const state = seen ?? last;
    if (state === null) return [];
    last = state;
    const lost = seen === null ? ["The gateway has stopped."] : [];
    const records = [
      ...state.streams.toSorted((a, b) => a.since - b.since).map((stream) => describeOpen(stream, now)),
      ...state.recent.toReversed(),
    ];
    const [head = "", ...rows] = table.draw(records, columns);
    const facts = [describeGateway(state, now), ...describeAllowances(state.channels, new Date(now))];
    const problems = [...lost, ...listProblems(state)].map(escapeText);
    return [
      ...facts.map((text) => cutText(text, columns)),
      ...problems.map((text) => paint("yellow", cutText(text, columns))),
      "",
      records.length === 0 ? "No requests yet" : head,
      ...records.map((record, index) => addProblem(rows[index] ?? "", record, columns)),
    ];
  };
}

function describeGateway(state: GatewayState, now: number): string {
  const { address, since, totals, streams, websockets, spend } = state;
  return [
    `gateway on ${address.host}:${address.port}`,
    `up ${formatAge(now - Date.parse(since))}`,
    `${formatCount(totals.requests, "request")}, ${totals.failed} failed, ${totals.refused} refused`,
    formatCount(streams.length, "open stream"),
    ...(websockets === 0 ? [] : [formatCount(websockets, "open WebSocket")]),
    `$${formatAmount(spend.today_usd)} today`,
  ].join(" · ");
}

const HEALTHY_STATES = new Set(["available", "unknown"]);

export function listProblems(state: GatewayState): string[] {
  const { ledger, channels, recordings, config_problem: problem } = state;
  const ill = channels.filter(({ state }) => !HEALTHY_STATES.has(state));
  return [
    ...recordings.map(({ name, key }) => `recording ${name}: ${key === null ? "a run" : `key ${key}`}`),
    ...(problem === null ? [] : [`the changed config is not in force: ${problem}`]),
    ...(ledger.problem === null ? [] : [`ledger: ${ledger.problem}`]),
    ...ill.map(
      ({ name, state, reason }) => `channel ${name}: ${state}${reason === null ? "" : `, ${reason}`}`,
    ),
  ];
}

function describeOpen(
  { since, tokens, ...stream }: GatewayState["streams"][number],
  now: number,
): RequestRecord {
  return {
    ...stream,
    time: since,
    group: null,
    endpoint: "",
    status: OPEN,
    outcome: "complete",
    firstByteMs: null,
    durationMs: now - since,
    usage: { output: tokens },
    chargeUsd: null,
    problem: null,
  };
}

const MIN_PROBLEM_CELLS = 16;

function addProblem(row: string, record: RequestRecord, columns: number): string {
  const trouble = describeProblem(record);
  const room = columns - measure(row) - 2;
  if (trouble === "" || room < MIN_PROBLEM_CELLS) return row;
  return `${row}  ${paint("yellow", cutText(trouble, room))}`;
}

export function describeAllowances(views: readonly ChannelView[], now: Date): string[] {
  return views.flatMap(({ name, allowance = [] }) => {
    const texts = allowance.map(({ resets, seen, ...each }) => {
      const ends = resets === null ? [] : [`resets ${formatAgo(new Date(resets), now)}`];
      const times = [...ends, `seen ${formatAgo(new Date(seen), now)}`];
      const left = writeAllowance({ ...each, resets, seen });
      return `${left} (${times.join(", ")})`;
    });
    return texts.length === 0 ? [] : [`${name}: ${texts.join("; ")}`];
  });
}

export interface TopFlags extends LedgerFlags {
  readonly json?: true;
}

export async function showTop(flags: TopFlags): Promise<void> {
  const ledgerPath = locateLedger(flags);
  const { ledger } = flags;
  const absent = ledger === undefined ? undefined : `No gateway is running on the ledger ${ledgerPath}.`;
  const first = await askGateway<GatewayState>({ ledgerPath }, "GET", "reports/state", absent);
  if (flags.json === true) return printJson({ ...first, recent: first.recent.map(describeRecord) });
  const draw = createTopView();
  if (!process.stdout.isTTY || process.env["TERM"] === "dumb")
    return printLines(draw(first, Infinity, Date.now()));
  const look = () => readDocument<GatewayState>({ ledgerPath }, "GET", "reports/state").catch(() => null);
  await renew<GatewayState | null>(first, look, (state, columns) => draw(state, columns, Date.now()));
}
