// `gateway channels`: reads channel states from the running gateway, once or repeatedly.
// view.ts draws them.

import { Sums } from "../../billing/ledger/sums.ts";
import type { Catalog } from "../../config/catalog.ts";
import { type ChannelView, describeWithoutGateway } from "../../gateway/channels/view.ts";
import type { GatewayState } from "../../gateway/api/state.ts";
import { CHANNEL_COLUMNS, describeUnservedGroups } from "./view.ts";
import { askGateway, readDocument } from "../access/control.ts";
import { renew } from "../live/renew.ts";
import { describeAllowances } from "../live/top.ts";
import { createTable, printTable } from "../terminal/table.ts";
import { refuseUnknown } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { print, printJson, refuseUsage, printNote } from "../terminal/terminal.ts";
import { cutText } from "../terminal/text.ts";

export interface ChannelsFlags extends ConfigFlags {
  readonly watch?: true;
  readonly json?: true;
}

export async function showChannels(flags: ChannelsFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  if (flags.watch === true) {
    if (flags.json === true) refuseUsage("--watch and --json cannot be combined.");
    if (!process.stdout.isTTY || process.env["TERM"] === "dumb") refuseUsage("--watch needs a terminal.");
    await watchChannels(catalog);
    return;
  }
  const known = await readViews(catalog);
  const views = known ?? describeStopped(catalog);
  if (flags.json === true) printJson(views);
  else {
    printTable(views, CHANNEL_COLUMNS);
    describeAllowances(views, new Date()).forEach(print);
  }
  for (const problem of known === null ? [NOT_RUNNING] : describeUnservedGroups(views)) {
    printNote(problem);
    process.exitCode = 1;
  }
}

const NOT_RUNNING =
  "No gateway is running for this config, so all states are unknown. Start it with `gateway serve`.";

/** With the sums of the ledger. */
function describeStopped(catalog: Catalog): ChannelView[] {
  const { ledger, zone } = catalog;
  const now = Date.now();
  const sums = new Sums({ path: ledger.path, zone, now: () => now, report: () => {} });
  return describeWithoutGateway(catalog, (name) => sums.channelDay(name), now);
}

/** Returns null if no gateway is running. */
async function readViews({ ledger }: Catalog): Promise<ChannelView[] | null> {
  const call = { ledgerPath: ledger.path };
  const state = await readDocument<GatewayState>(call, "GET", "reports/state");
  return state && state.channels;
}

async function watchChannels(catalog: Catalog): Promise<void> {
  const table = createTable(CHANNEL_COLUMNS);
  let shown: readonly ChannelView[] = describeStopped(catalog);
  const look = (): Promise<ChannelView[] | null> => readViews(catalog);
  await renew(await look(), look, (views, columns) => {
    shown = views ?? shown;
    const problems =
      views === null ? ["No gateway is running for this config."] : describeUnservedGroups(shown);
    const left = describeAllowances(shown, new Date()).map((line) => cutText(line, columns));
    return [...table.draw(shown, columns), ...left, "", ...problems.map((line) => cutText(line, columns))];
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
