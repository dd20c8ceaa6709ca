// The address of a channel's upstream, computed once for each channel.

import type { Channel } from "../../config/catalog.ts";
import { CHANNEL_ROWS } from "../../dialects/platforms.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field, Fields } from "../../lib/http/fields.ts";
import { type Deadlines, type Origin, originOf } from "../../lib/http/upstream.ts";

const known = new WeakMap<Channel, ReturnType<typeof resolveAddress>>();

export function addressOf(channel: Channel) {
  return known.getOrInsertComputed(channel, resolveAddress);
}

function resolveAddress({ platform, baseUrl, proxy, ca, timeouts }: Channel) {
  const origin: Origin = {
    ...originOf(baseUrl),
    ...(proxy === null ? {} : { proxy }),
    ...(ca === null ? {} : { ca }),
  };
  const deadlines: Deadlines = {
    connectMs: timeouts.connectMs || Infinity,
    firstByteMs: timeouts.firstByteMs || Infinity,
    idleMs: timeouts.idleMs || Infinity,
  };
  const basePath = baseUrl.pathname.replace(/\/+$/, "");
  // A Chat Completions base URL may end in a version such as `/v4`.
  const mayHave = CHANNEL_ROWS[platform].ownVersions === true;
  const isVersioned = mayHave && /\/v\d+\w*(?:\/openai)?$/.test(basePath);
  return { origin, basePath, isVersioned, deadlines };
}

export function joinPath(channel: Channel, path: string): string {
  const { basePath, isVersioned } = addressOf(channel);
  return basePath + (isVersioned ? path.replace(/^\/v1/, "") : path);
}

export function overrideFields(fields: Fields, { headers }: Channel): Fields {
  if (headers.length === 0) return fields;
  const own = headers.map(([name, value]): Field => [name.toLowerCase(), value]);
  return fields.without(new Set(own.map(([name]) => name))).addAll(own);
}

// A channel's base URL or proxy may lead back to this gateway:
// without TLS, a header finds the loop.

const HOP_HEADER = "x-gateway-hop";
/** Only this mark is refused: other gateways may pass a request on. */
const OWN_MARK = crypto.randomUUID().slice(0, 8);

export function markHop(fields: Fields, exchange: Exchange, channel: Channel): void {
  if (addressOf(channel).origin.tls) return;
  const before = exchange.field(HOP_HEADER);
  fields.push([HOP_HEADER, before === undefined ? OWN_MARK : `${before}, ${OWN_MARK}`]);
}

export function refuseOwnCall(exchange: Exchange): void {
  const hops = exchange.field(HOP_HEADER);
  if (hops?.split(",").some((hop) => hop.trim() === OWN_MARK) !== true) return;
  throw new GatewayError(
    "upstream_failed",
    "This request comes from this gateway itself: the base_url of one of its channels leads back to it.",
  );
}
