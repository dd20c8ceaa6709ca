// Warms connections and probes channels between requests.

import { type PriceBook, readPrices, sellerOf } from "../../billing/prices.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";
import { type Origin, type Upstream, UpstreamFault } from "../../lib/http/upstream.ts";
import { channelSecrets } from "../intake/secrets.ts";
import { type Observer, reportFault } from "../observe/observer.ts";
import { addressOf } from "../upstream/address.ts";
import { type Failure, failureOf, readFailure } from "../upstream/failures.ts";
import type { Channels } from "./channels.ts";
import { fetchListPage } from "./model-list.ts";

interface Context {
  readonly catalog: Catalog;
  readonly client: Upstream;
  readonly channels: Channels;
  readonly prices: PriceBook;
  readonly observer: Observer;
  readonly now: () => number;
}

const MAX_EXPECTED_CHANNELS = 8;
/** The start must not wait while prices are read. */
const PREPARE_MS = 500;

export function keepChannelsWarm(context: Context, occasion: "start" | "reload"): void {
  const { catalog, client, prices } = context;
  const channels = catalog.warm ? [...catalog.channels.values()].filter(gains) : [];
  const first = new Set([...catalog.keys.values()].map(({ group }) => group.channels[0]));
  const likely = channels
    .filter((channel) => first.has(channel) || context.channels.of(channel).lastAnswer > 0)
    .toSorted((a, b) => context.channels.of(b).lastAnswer - context.channels.of(a).lastAnswer);
  const expected = occasion === "start" ? likely.slice(0, MAX_EXPECTED_CHANNELS) : [];
  client.keepWarm(channels.map(originOf), expected.map(originOf));
  setTimeout(() => expected.forEach((channel) => readPrices(prices, sellerOf(channel))), PREPARE_MS).unref();
}

function originOf(channel: Channel): Origin {
  return addressOf(channel).origin;
}

/** False for a local upstream without TLS: a dial takes 0.1 ms. */
function gains(channel: Channel): boolean {
  const { tls, host, proxy } = originOf(channel);
  return !channel.disabled && (tls || proxy !== undefined || !isLoopback(host));
}

export async function probeChannel(channel: Channel, context: Context): Promise<void> {
  const failure = await probe(channel, context);
  if (failure?.fault !== "shortage") context.channels.reportProbe(channel, failure, context.now());
}

/** If an upstream answers that it has no model list, it works. */
async function probe(channel: Channel, { client, now }: Context): Promise<Failure | null> {
  const { name } = channel;
  try {
    const { status, body } = await fetchListPage({ client, channel });
    const failure = readFailure(name, { status }, body, now());
    return failure && { ...failure, message: channelSecrets(channel).maskText(failure.message) };
  } catch (fault) {
    if (fault instanceof UpstreamFault) return failureOf(name, fault);
    throw fault;
  }
}

export function startProbes({ channels }: Catalog, context: Context): () => void {
  const timers = [...channels.values()].flatMap((channel) => {
    const { probeMs, disabled } = channel;
    if (probeMs === null || disabled) return [];
    const look = (): void => {
      const age = context.now() - context.channels.of(channel).lastAnswer;
      // A negative age: the clock was set back.
      const isKnown = age >= 0 && age < probeMs;
      if (!isKnown) probeChannel(channel, context).catch((error) => reportFault(error, context.observer));
    };
    look();
    return [setInterval(look, probeMs).unref()];
  });
  return () => timers.forEach(clearInterval);
}
