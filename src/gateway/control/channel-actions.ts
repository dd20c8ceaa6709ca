// Disables, enables and probes a channel, for `gateway channels` and for the console's page.

import { suggestNearest } from "../../config/nearest.ts";
import { probeChannel } from "../channels/probe.ts";
import type { ChannelView } from "../channels/view.ts";
import type { Gateway } from "../gateway.ts";
import { viewChannels } from "./state.ts";

export class ActionRefused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns the channel's new state. */
export async function actOnChannel(
  name: string,
  action: string,
  gateway: Gateway,
): Promise<ChannelView | null> {
  const { catalog, channels } = gateway;
  const channel = catalog.channels.get(name);
  if (channel === undefined)
    throw new ActionRefused(
      404,
      `There is no channel "${name}"${suggestNearest(name, catalog.channels.keys())}.`,
    );
  if (action === "probe") await probeChannel(channel, gateway);
  else if (action === "disable" || action === "enable") {
    if (channel.disabled)
      throw new ActionRefused(409, `The channel "${name}" is disabled in the config file: change it there.`);
    channels.setDisabled(channel, action === "disable", gateway.now());
  } else throw new ActionRefused(404, "A channel can be disabled, enabled and probed.");
  return viewChannels(gateway).find((each) => each.name === name) ?? null;
}
