// What is done for channels between requests: connections are opened before they are needed, and a channel is asked for its
// models to see whether it works. Neither costs anything.

import { type PriceBook, readPrices, sellerOf } from "../../billing/prices.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";
import { dialectOf } from "../../dialects/index.ts";
import { type Origin, type Upstream, UpstreamFault } from "../../lib/http/upstream.ts";
import { channelSecrets } from "../intake/secrets.ts";
import { type Observer, reportFault } from "../observe/observer.ts";
import { addressOf } from "../upstream/address.ts";
import { type Failure, failureOf, readFailure } from "../upstream/failures.ts";
import type { Channels } from "./channels.ts";
import { fetchListPage } from "./model-list.ts";

/** The parts of the gateway that this uses. */
interface Context {
  readonly catalog: Catalog;
  readonly client: Upstream;
  readonly channels: Channels;
  readonly prices: PriceBook;
  readonly observer: Observer;
  readonly now: () => number;
}

/** A channel that has answered since then is likely to be used again. */
const RECENT_MS = 7 * 24 * 3_600_000;
const MAX_EXPECTED_CHANNELS = 8;
/** By then the start is over and the new connections are open, so the work delays neither. */
const PREPARE_MS = 500;

/** At a start, those that will be used first get connections; the others when they are used. */
export function keepChannelsWarm(context: Context, occasion: "start" | "reload"): void {
  const { catalog, client, prices } = context;
  const channels = catalog.warm ? [...catalog.channels.values()].filter(gains) : [];
  const expected = occasion === "start" ? guessNext(channels, context) : [];
  client.keepWarm(channels.map(originOf), expected.map(originOf));
  setTimeout(() => expected.forEach((channel) => readPrices(prices, sellerOf(channel))), PREPARE_MS).unref();
}

function originOf(channel: Channel): Origin {
  return addressOf(channel).origin;
}

/** A dial to this machine without TLS takes 0.1 ms. */
function gains(channel: Channel): boolean {
  const { tls, host, proxy } = originOf(channel);
  return !channel.disabled && (tls || proxy !== undefined || !isLoopback(host));
}

/** The channels that were used lately. If none was, those that the keys would use first. */
function guessNext(among: readonly Channel[], { catalog, channels, now }: Context): Channel[] {
  const recent = among
    .filter((channel) => channels.lastAnswer(channel) > now() - RECENT_MS)
    .toSorted((a, b) => channels.lastAnswer(b) - channels.lastAnswer(a));
  const first = new Set([...catalog.keys.values()].map(({ group }) => group.channels[0]));
  const guessed = recent.length > 0 ? recent : among.filter((channel) => first.has(channel));
  return guessed.slice(0, MAX_EXPECTED_CHANNELS);
}

export async function probeChannel(channel: Channel, context: Context): Promise<void> {
  const failure = await probe(channel, context);
  if (failure?.fault !== "shortage") context.channels.reportProbe(channel, failure, context.now());
}

/** A response that only says that there is no such list comes from an upstream that works. */
async function probe(channel: Channel, { client, now }: Context): Promise<Failure | null> {
  const { name } = channel;
  try {
    const { status, body } = await fetchListPage(client, channel, "");
    const secrets = channelSecrets(channel);
    const about = { dialect: dialectOf(channel.platform), now: now() };
    const failure = readFailure(name, { status }, secrets.remove(body), about);
    return failure && secrets.removeIn(failure);
  } catch (fault) {
    if (fault instanceof UpstreamFault) return failureOf(name, fault);
    throw fault;
  }
}

/** Probes the channels of this catalog, where the config says so, until the returned function is called. */
export function startProbes({ channels }: Catalog, context: Context): () => void {
  const timers = [...channels.values()].flatMap((channel) => {
    const { probeMs, disabled } = channel;
    if (probeMs === null || disabled) return [];
    const look = (): void => {
      const age = context.now() - context.channels.lastAnswer(channel);
      // An answer of a time to come was before the clock was set back.
      const isKnown = age >= 0 && age < probeMs;
      if (!isKnown) probeChannel(channel, context).catch((error) => reportFault(error, context.observer));
    };
    look();
    return [setInterval(look, probeMs).unref()];
  });
  return () => timers.forEach(clearInterval);
}
