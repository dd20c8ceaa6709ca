// The lines of `gateway top`: what runs, what needs attention, and one table of requests, those that are open first.

import type { GatewayState } from "../../gateway/api/state.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { paint, print, printJson, printLines, readSize } from "../terminal/terminal.ts";
import { cutText, formatAgo, formatAmount, formatCount, measure } from "../terminal/text.ts";
import { OPEN, createRequestTable, describeProblem, describeRecord } from "./request-log.ts";
import type { ChannelView } from "../../gateway/channels/view.ts";
import { writeAllowance } from "../../lib/text/allowance.ts";
import { askGateway, readDocument } from "../access/control.ts";
import { locateLedger, openTable, type LedgerFlags } from "../money/ledger-place.ts";
import { existsSync } from "node:fs";
import { readPeriodWord } from "../../billing/reports/period.ts";
import { sumRequests } from "../../billing/reports/sums.ts";
import { reportVersions } from "../../billing/reports/versions.ts";
import { describeChange } from "../../billing/reports/words.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { placeConfig } from "../../config/file/find.ts";
import { openConfig, type ConfigFlags } from "../access/config.ts";
import { formatBaseUrl } from "../access/running.ts";

/** Null: the gateway does not answer, and its last state stays. The columns keep their widths from one time to the next. */
type DrawTop = (state: GatewayState | null, columns: number, now: number) => string[];

export function createTopView(): DrawTop {
  const table = createRequestTable();
  let last: GatewayState | null = null;
  return (seen, columns, now) => {
    const state = seen ?? last;
    if (state === null) return [];
    last = state;
    const lost = seen === null ? ["The gateway has stopped. Waiting for it to start again."] : [];
    const records = [
      ...state.streams.toSorted((a, b) => a.since - b.since).map((stream) => describeOpen(stream, now)),
      // `gateway run` asks for the models itself, at each start.
      ...state.recent.filter(({ endpoint }) => !/\/models(?:\/\{id\})?$/.test(endpoint)).toReversed(),
    ];
    const [head = "", ...rows] = table.draw(records, columns);
    return [
      ...[describeGateway(state, now), ...describeAllowances(state.channels, new Date(now))].map((text) =>
        cutText(text, columns),
      ),
      ...[...lost, ...listProblems(state)].map((text) =>
        paint("yellow", cutText(escapeUnprintable(text), columns)),
      ),
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

export function listProblems({ ledger, channels, recordings }: GatewayState): string[] {
  const ill = channels.filter(({ state }) => !HEALTHY_STATES.has(state));
  return [
    ...recordings.map(({ name, key }) => `recording ${name}: ${key === null ? "a run" : `key ${key}`}`),
    ...(ledger.problem === null ? [] : [`ledger: ${ledger.problem}`]),
    ...ill.map(
      ({ name, state, reason }) => `channel ${name}: ${state}${reason === null ? "" : `, ${reason}`}`,
    ),
  ];
}

/** As a record of the log: what it took so far, and no status yet. */
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

/** With its age. */
export function describeAllowances(views: readonly ChannelView[], now: Date): string[] {
  return views.flatMap(({ name, allowance = [] }) => {
    const texts = allowance.map(({ resets, seen, ...each }) => {
      const ends = resets === null ? [] : [`resets ${formatAgo(new Date(resets), now)}`];
      const times = [...ends, `seen ${formatAgo(new Date(seen), now)}`];
      return `${writeAllowance({ ...each, resets, seen })} (${times.join(", ")})`;
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
    return printLines(draw(first, Number.POSITIVE_INFINITY, Date.now()));
  // A gateway that does not answer in time counts as stopped until it answers again.
  const look = () => readDocument<GatewayState>({ ledgerPath }, "GET", "reports/state").catch(() => null);
  await renew<GatewayState | null>(first, look, (state, columns) => draw(state, columns, Date.now()));
}

const REFRESH_MS = 500;
const CLEAR = "\u001B[2J";
const HOME = "\u001B[H";
const CLEAR_LINE = "\u001B[K";
const CLEAR_BELOW = "\u001B[J";
const FOOT = "Ctrl-C ends it.";

/** `draw` may write too many lines: those that do not fit are left out. */
export async function renew<T>(
  first: T,
  look: () => Promise<T>,
  draw: (seen: T, columns: number) => readonly string[],
): Promise<void> {
  const { stdout: out } = process;
  const end = (): never => process.exit(0);
  process.once("SIGINT", end);
  process.once("exit", () => out.write("\n"));
  out.write(CLEAR);
  for (let seen = first; !out.destroyed; seen = await look()) {
    const { columns, rows } = readSize();
    const lines = draw(seen, columns).slice(0, Math.max(0, rows - 1));
    // Erased first: after a line of the full width, the cursor is on its last character.
    const shown = [...lines, paint("dim", cutText(FOOT, columns))].map((line) => CLEAR_LINE + line);
    out.write(HOME + shown.join("\r\n") + CLEAR_BELOW);
    await Bun.sleep(REFRESH_MS);
  }
}

export async function showOverview(flags: ConfigFlags): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (!existsSync(path)) {
    print("There is no config yet. `gateway init` writes one, and `gateway serve --demo` needs none.");
    return printCommands();
  }
  const config = openConfig(flags);
  const { catalog } = config;
  const call = { ledgerPath: catalog.ledger.path };
  const state = await readDocument<GatewayState>(call, "GET", "reports/state");
  print(
    state === null
      ? "The gateway does not run. Start it: gateway serve"
      : `The gateway runs on ${formatBaseUrl(state.address)} (version ${state.version}).`,
  );
  print(`config: ${config.path}   ledger: ${catalog.ledger.path}`);
  const { amounts, matters } = readSpending(config);
  print(amounts.join("   "));
  const attention = [
    ...config.warnings,
    ...matters,
    ...describeGroups(config),
    ...(state === null ? [] : listProblems(state)),
  ];
  for (const text of attention) print(`attention: ${text}`);
  printCommands();
}

/** Of today and of this month, as `gateway usage` has them. */
function readSpending({ catalog }: LoadedConfig) {
  using table = openTable(catalog.ledger.path, {});
  const clock = { zone: catalog.zone, now: new Date() };
  const sum = (word: string): string => {
    const { totals } = sumRequests(table, { by: [], ...readPeriodWord(word, clock) }).total;
    return `$${formatAmount(totals.charge_usd)}`;
  };
  const count = table.unreadable;
  return {
    amounts: [`spent today: ${sum("today")}`, `this month: ${sum("month")}`],
    matters: [
      ...(count === 0
        ? []
        : [`${formatCount(count, "line")} of the ledger could not be read: gateway ledger verify`]),
      ...reportVersions(table, clock).map(describeChange),
    ],
  };
}

function describeGroups({ catalog: { keys, channels } }: LoadedConfig): string[] {
  return [
    ...(channels.size === 0 ? ["the config has no channel: gateway channels add"] : []),
    ...(keys.size === 0 ? ["there are no keys yet: gateway keys add"] : []),
  ];
}

const COMMANDS = [
  ["gateway run claude", "start a tool that uses the gateway"],
  ["gateway open", "the page: spending, live requests, keys, channels"],
  ["gateway usage today", "what was spent, by key"],
  ["gateway top", "what is running now"],
  ["gateway doctor", "check everything, and show how to fix it"],
] as const;

function printCommands(): void {
  print("");
  const width = Math.max(...COMMANDS.map(([line]) => line.length));
  for (const [line, about] of COMMANDS) print(`  ${line.padEnd(width)}  ${about}`);
  print("");
  print("All commands: gateway --help");
}
