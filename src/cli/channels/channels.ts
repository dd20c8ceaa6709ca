// `gateway channels`: reads channel states from the running gateway, once or repeatedly.
// view.ts draws them.

import type { Catalog } from "../../config/catalog.ts";
import { type ChannelView, channelViewSchema, describeWithoutGateway } from "../../gateway/channels/view.ts";
import { gatewayStateSchema } from "../../gateway/control/state.ts";
import { createChannelTable, describeUnservedGroups } from "./view.ts";
import { askGateway, readReply, tryGateway } from "../access/control.ts";
import { openLiveScreen } from "../live/live-screen.ts";
import { refuseUnknown } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { printJson, printLines, readRoom, refuseUsage, printNote } from "../terminal/terminal.ts";

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
  const views = known ?? describeWithoutGateway(catalog, Date.now());
  if (flags.json === true) printJson(views);
  else printLines(drawOnce(views));
  for (const problem of known === null ? [NOT_RUNNING] : describeUnservedGroups(views)) {
    printNote(problem);
    process.exitCode = 1;
  }
}

const NOT_RUNNING =
  "No gateway is running for this config, so all states are unknown. Start it with `gateway serve`.";

function drawOnce(views: readonly ChannelView[]): string[] {
  return createChannelTable().draw(views, Date.now(), readRoom());
}

/** Returns null if no gateway is running. */
async function readViews({ ledger }: Catalog, signal?: AbortSignal): Promise<ChannelView[] | null> {
  const reply = await tryGateway({ ledgerPath: ledger.path, ...(signal && { signal }) }, "GET", "/state");
  return reply === null ? null : readReply(gatewayStateSchema, reply).channels;
}

const REFRESH_MS = 500;

async function watchChannels(catalog: Catalog): Promise<void> {
  const table = createChannelTable();
  let seen: readonly ChannelView[] = describeWithoutGateway(catalog, Date.now());
  let isRunning = false;
  const draw = (): void => {
    const lines = table.draw(seen, Date.now(), screen.columns());
    const problems = isRunning ? describeUnservedGroups(seen) : ["No gateway is running for this config."];
    screen.draw([...lines, "", ...problems, "q: quit"].slice(0, screen.rows()));
  };
  const screen = openLiveScreen(draw);
  const ended = new AbortController();
  const left = screen.left.then(() => ended.abort());
  try {
    while (!ended.signal.aborted) {
      const next = await Promise.race([left.then(() => null), readViews(catalog, ended.signal)]);
      if (ended.signal.aborted) break;
      isRunning = next !== null;
      seen = next ?? seen;
      draw();
      await screen.pause(REFRESH_MS);
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    screen.close();
  }
}

export type ChannelAction = "disable" | "enable" | "probe";

export interface ActionFlags extends ConfigFlags {
  readonly json?: true;
}

export async function actOnChannel(act: ChannelAction, name: string, flags: ActionFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  if (!catalog.channels.has(name)) refuseUnknown("channel", name, catalog.channels);
  const path = `/channels/${encodeURIComponent(name)}/${act}`;
  const view = readReply(channelViewSchema, await askGateway(catalog.ledger.path, "POST", path));
  if (flags.json === true) printJson(view);
  else printNote(`The channel "${name}" is ${view.state}${view.reason === null ? "" : ` (${view.reason})`}.`);
  if (act === "probe" && view.state === "unavailable") process.exitCode = 1;
}
