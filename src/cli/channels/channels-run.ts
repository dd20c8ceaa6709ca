// What `gateway channels` does: asks the running gateway, once or again and again.
// What it looks like is channels-view.ts.

import type { Catalog } from "../../config/catalog.ts";
import { describeUnasked } from "../../gateway/channels/view.ts";
import { type ChannelView, channelViewSchema, gatewayStateSchema } from "../../gateway/control/state.ts";
import { createChannelTable, listDeprived } from "./channels-view.ts";
import { askGateway, readTold, tryGateway } from "../control.ts";
import { openLiveScreen } from "../live/live-screen.ts";
import { type ConfigFlags, openConfig, refuseUnknown } from "../config-access.ts";
import { print, printJson, refuseUsage, tell } from "../terminal.ts";

export interface ChannelsFlags extends ConfigFlags {
  readonly watch?: true;
  readonly json?: true;
}

export async function showChannels(flags: ChannelsFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  if (flags.watch === true) {
    if (flags.json === true) refuseUsage("--watch and --json exclude each other.");
    if (!process.stdout.isTTY || process.env["TERM"] === "dumb") refuseUsage("--watch needs a terminal.");
    await watch(catalog);
    return;
  }
  const told = await look(catalog);
  const views = told ?? describeUnasked(catalog, Date.now());
  if (flags.json === true) printJson(views);
  else for (const line of drawOnce(views)) print(line);
  for (const problem of told === null ? [NONE_RUNS] : listDeprived(views)) {
    tell(problem);
    process.exitCode = 1;
  }
}

const NONE_RUNS = "No gateway is running for this config, so nothing is known: `gateway serve` starts one.";

function drawOnce(views: readonly ChannelView[]): string[] {
  const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
  return createChannelTable().draw(views, Date.now(), width);
}

/** Null when no gateway runs. */
async function look({ ledger }: Catalog, signal?: AbortSignal): Promise<ChannelView[] | null> {
  const told = await tryGateway({ ledgerPath: ledger.path, ...(signal && { signal }) }, "GET", "/state");
  return told === null ? null : readTold(gatewayStateSchema, told).channels;
}

const PERIOD_MS = 500;

async function watch(catalog: Catalog): Promise<void> {
  const table = createChannelTable();
  let seen: readonly ChannelView[] = describeUnasked(catalog, Date.now());
  let isRunning = false;
  const draw = (): void => {
    const lines = table.draw(seen, Date.now(), screen.columns());
    const problems = isRunning ? listDeprived(seen) : ["No gateway is running for this config."];
    screen.draw([...lines, "", ...problems, "q leaves"].slice(0, screen.rows()));
  };
  const screen = openLiveScreen(draw);
  const ended = new AbortController();
  const left = screen.left.then(() => ended.abort());
  try {
    while (!ended.signal.aborted) {
      const told = await Promise.race([left.then(() => null), look(catalog, ended.signal)]);
      if (ended.signal.aborted) break;
      isRunning = told !== null;
      seen = told ?? seen;
      draw();
      await screen.pause(PERIOD_MS);
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    screen.close();
  }
}

export type ChannelAct = "disable" | "enable" | "probe";

export interface ActFlags extends ConfigFlags {
  readonly json?: true;
}

export async function actOnChannel(act: ChannelAct, name: string, flags: ActFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  if (!catalog.channels.has(name)) refuseUnknown("channel", name, catalog.channels);
  const path = `/channels/${encodeURIComponent(name)}/${act}`;
  const view = readTold(channelViewSchema, await askGateway(catalog.ledger.path, "POST", path));
  if (flags.json === true) printJson(view);
  else tell(`The channel "${name}" is ${view.state}${view.reason === null ? "" : ` (${view.reason})`}.`);
  if (act === "probe" && view.state === "unavailable") process.exitCode = 1;
}
