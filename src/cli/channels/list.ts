// `gateway channels`.

import { openSums } from "../../billing/limits/spending.ts";
import type { Catalog } from "../../config/catalog.ts";
import { type ChannelView, describeWithoutGateway } from "../../gateway/channels/view.ts";
import type { GatewayState } from "../../gateway/api/state.ts";
import { askGateway, NOT_RUNNING, readDocument } from "../access/control.ts";
import { renew } from "../live/renew.ts";
import { describeAllowances } from "../live/top.ts";
import { type Columns, createTable, drawRows } from "../terminal/listing.ts";
import { refuseUnknown } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { type LedgerFlags, useLedger } from "../access/ledger-place.ts";
import { paint, print, printJson, printLines, refuseUsage, printNote } from "../terminal/terminal.ts";
import { cutText, formatAge, formatAmount } from "../terminal/text.ts";

const STATE_STYLES = {
  available: "green",
  degraded: "yellow",
  resting: "yellow",
  unavailable: "red",
  disabled: "dim",
  unknown: "dim",
} as const;

const CHANNEL_COLUMNS: Columns<ChannelView> = [
  ["CHANNEL", "name"],
  ["PLATFORM", "platform", "text", { spare: 8 }],
  ["GROUPS", "groups", "text", { spare: 9 }],
  ["STATE", "state", "text", { spare: 1, paint: (text, { state }) => paint(STATE_STYLES[state], text) }],
  ["SINCE", ({ since }) => formatSpan(since, (then) => Date.now() - then), "text", { spare: 5 }],
  ["LEFT", ({ until }) => formatSpan(until, (then) => then - Date.now()), "text", { spare: 4 }],
  ["FIRST", "latency_ms", "ms", { spare: 7 }],
  ["P95", "latency_p95_ms", "ms", { spare: 12 }],
  ["OK/H", formatSuccess, "exact", { spare: 6 }],
  ["REQ/H", "requests_hour", "exact", { spare: 10 }],
  ["ERR/H", "errors_hour", "exact", { spare: 11 }],
  ["TODAY", formatToday, "exact", { spare: 13 }],
  ["OPEN", formatConnections, "exact", { spare: 14 }],
  ["REASON", "reason", "text", { spare: 2, paint: (text) => paint("dim", text) }],
];

function formatSuccess({ requests_hour: requests, errors_hour: errors }: ChannelView): string {
  return requests === 0 ? "" : `${Math.floor((1 - Math.min(1, errors / requests)) * 100)}%`;
}

function formatConnections({ connections: { open, idle } }: ChannelView): string {
  return open === 0 ? "" : `${open} (${idle} idle)`;
}

function formatToday({ charge_today_usd: usd, paid_by_plan_today_usd: plan }: ChannelView): string {
  if (plan === undefined) return `$${formatAmount(usd)}`;
  return `${usd === "0" ? "" : `$${formatAmount(usd)} `}(plan $${formatAmount(plan)})`;
}

function formatSpan(moment: string | null, distance: (then: number) => number): string {
  return moment === null ? "" : formatAge(distance(Date.parse(moment)));
}

const USABLE_STATES = new Set(["available", "degraded", "unknown"]);

function describeUnservedGroups(views: readonly ChannelView[]): string[] {
  const groups = new Set(views.flatMap((view) => view.groups));
  const usable = views.filter(({ state }) => USABLE_STATES.has(state));
  const unserved = groups.difference(new Set(usable.flatMap((view) => view.groups)));
  return [...unserved].map((group) => `The group "${group}" has no available channel.`);
}

export interface ChannelsFlags extends LedgerFlags {
  readonly watch?: true;
  readonly json?: true;
}

export async function showChannels(flags: ChannelsFlags): Promise<void> {
  const { catalog, isCopy } = useLedger(openConfig(flags), flags);
  if (flags.watch === true) {
    if (flags.json === true) refuseUsage("--watch and --json cannot be combined.");
    if (!process.stdout.isTTY || process.env["TERM"] === "dumb") refuseUsage("--watch needs a terminal.");
    await watchChannels(catalog, isCopy);
    return;
  }
  const known = await readViews(catalog);
  const views = known ?? describeStopped(catalog, isCopy);
  if (flags.json === true) printJson(views);
  else {
    printLines(drawRows(views, CHANNEL_COLUMNS));
    describeAllowances(views, new Date()).forEach(print);
  }
  for (const problem of known === null ? [NOT_RUNNING] : describeUnservedGroups(views)) {
    printNote(problem);
    process.exitCode = 1;
  }
}

function describeStopped(catalog: Catalog, isCopy: boolean): ChannelView[] {
  const now = Date.now();
  const sums = openSums(catalog, now, isCopy);
  return describeWithoutGateway(catalog, (name) => sums.spentOf({ kind: "channel", name }, "day"), now);
}

async function readViews({ ledger }: Catalog): Promise<ChannelView[] | null> {
  const call = { ledgerPath: ledger.path };
  const state = await readDocument<GatewayState>(call, "GET", "reports/state");
  return state && state.channels;
}

async function watchChannels(catalog: Catalog, isCopy: boolean): Promise<void> {
  const table = createTable(CHANNEL_COLUMNS);
  let shown: readonly ChannelView[] = describeStopped(catalog, isCopy);
  const look = (): Promise<ChannelView[] | null> => readViews(catalog);
  await renew(await look(), look, (views, columns) => {
    shown = views ?? shown;
    const problems = views === null ? [NOT_RUNNING] : describeUnservedGroups(shown);
    const texts = [...describeAllowances(shown, new Date()), "", ...problems];
    return [...table.draw(shown, columns), ...texts.map((line) => cutText(line, columns))];
  });
}

export type ChannelAction = "disable" | "enable" | "probe";

export interface ActionFlags extends ConfigFlags {
  readonly json?: true;
}

export async function actOnChannel(act: ChannelAction, name: string, flags: ActionFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  if (!catalog.channels.has(name)) refuseUnknown("channel", name, catalog.channels);
  const call = { ledgerPath: catalog.ledger.path, body: { name, action: act } };
  const view = await askGateway<ChannelView>(call, "POST", "actions/change-channel");
  if (flags.json === true) printJson(view);
  else printNote(`The channel "${name}" is ${view.state}${view.reason === null ? "" : ` (${view.reason})`}.`);
  if (act === "probe" && view.state === "unavailable") process.exitCode = 1;
}
