// Which upstreams get connections before they are needed. lib/http/pool.ts does the work. It sends nothing on them.

import { type PriceBook, readPrices, sellerOf } from "../../billing/prices.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import type { Upstream } from "../../lib/http/upstream.ts";
import { isLoopback } from "../../config/proxy.ts";
import { addressOf } from "../upstream/origin.ts";
import type { Channels } from "./channels.ts";
import type { ChannelView } from "./view.ts";

/** The parts of the gateway that this uses. */
interface WarmContext {
  readonly catalog: Catalog;
  readonly client: Upstream;
  readonly channels: Pick<Channels, "lastAnswer">;
  readonly prices: PriceBook;
  readonly now: () => number;
}

/** A channel that has answered since then is likely to be used again. */
const RECENT_MS = 7 * 24 * 3_600_000;
const MAX_EXPECTED_CHANNELS = 8;
/** By then the start is over and the new connections are open, so the work delays neither. */
const PREPARE_MS = 500;

export function keepChannelsWarm(context: WarmContext, occasion: "start" | "reload"): void {
  const { catalog, client } = context;
  const channels = catalog.warm ? [...catalog.channels.values()].filter(gains) : [];
  const expected = occasion === "start" ? guessNext(channels, context) : [];
  client.keepWarm(channels.map(originOf), expected.map(originOf));
  setTimeout(
    () => expected.forEach((channel) => readPrices(context.prices, sellerOf(channel))),
    PREPARE_MS,
  ).unref();
}

/** A dial to this machine without TLS takes 0.1 ms. */
function gains(channel: Channel): boolean {
  const { tls, host, proxy } = originOf(channel);
  if (channel.disabled) return false;
  return tls || proxy !== undefined || !isLoopback(host);
}

function originOf(channel: Channel) {
  return addressOf(channel).origin;
}

/** The channels that were used lately. If none was, those that the keys would use first. */
function guessNext(channels: readonly Channel[], { catalog, channels: memory, now }: WarmContext): Channel[] {
  const since = now() - RECENT_MS;
  const recent = channels
    .filter((channel) => memory.lastAnswer(channel) > since)
    .sort((a, b) => memory.lastAnswer(b) - memory.lastAnswer(a));
  const first = new Set([...catalog.keys.values()].map(({ group }) => group.channels[0]));
  const guessed = recent.length > 0 ? recent : channels.filter((channel) => first.has(channel));
  return guessed.slice(0, MAX_EXPECTED_CHANNELS);
}

/** Adds the connections that are open now. */
export function countConnections(
  views: readonly ChannelView[],
  { catalog, client }: Pick<WarmContext, "catalog" | "client">,
): ChannelView[] {
  return views.map((view) => {
    const channel = catalog.channels.get(view.name);
    if (channel === undefined) return view;
    const { open, idle } = client.statsOf(originOf(channel));
    return { ...view, connections: { open, idle } };
  });
}
