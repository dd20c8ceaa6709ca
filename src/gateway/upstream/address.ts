// Where a channel's upstream is, computed once for each channel of a catalog, and whether that is this gateway itself.

import { hostname, networkInterfaces } from "node:os";
import type { Catalog, Channel } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";
import { ConfigError } from "../../config/yaml/problems.ts";
import { CHANNEL_ROWS } from "../../dialects/platforms.ts";
import type { Field, Fields } from "../../lib/http/fields.ts";
import { type Deadlines, type Origin, originOf } from "../../lib/http/upstream.ts";

const known = new WeakMap<Channel, ReturnType<typeof resolveAddress>>();

export function addressOf(channel: Channel) {
  return known.getOrInsertComputed(channel, resolveAddress);
}

function resolveAddress({ baseUrl, proxy, ca, timeouts }: Channel) {
  const origin: Origin = {
    ...originOf(baseUrl),
    ...(proxy === null ? {} : { proxy }),
    ...(ca === null ? {} : { ca }),
  };
  // The config says 0s for no limit.
  const deadlines: Deadlines = {
    connectMs: timeouts.connectMs || Infinity,
    firstByteMs: timeouts.firstByteMs || Infinity,
    idleMs: timeouts.idleMs || Infinity,
  };
  // "" or "/relay".
  return { origin, basePath: baseUrl.pathname.replace(/\/+$/, ""), deadlines };
}

/** The path of a request, at the channel's address. Servers of Chat Completions have versions of their own: `/v4`. */
export function joinPath(channel: Channel, path: string): string {
  const { basePath } = addressOf(channel);
  const mayHave = CHANNEL_ROWS[channel.platform].ownVersions === true;
  const isVersioned = mayHave && /\/v\d+\w*(?:\/openai)?$/.test(basePath);
  return basePath + (isVersioned ? path.replace(/^\/v1/, "") : path);
}

/** A channel's own fields replace the client's fields of the same name. */
export function overrideFields(fields: Fields, { headers }: Channel): Fields {
  if (headers.length === 0) return fields;
  const own = headers.map(([name, value]): Field => [name.toLowerCase(), value]);
  return fields.without(new Set(own.map(([name]) => name))).addAll(own);
}

const EVERYWHERE = new Set(["0.0.0.0", "::", "[::]"]);

/** Its requests would go round and round. */
export function refuseSelfChannels({ listen, channels }: Catalog, port: number): void {
  const isOwn = (name: string): boolean =>
    name === listen.host.toLowerCase() ||
    name === `[${listen.host}]` ||
    (isLoopback(name) && isLoopback(listen.host)) ||
    (EVERYWHERE.has(listen.host) && isHere(name));
  for (const channel of channels.values()) {
    const { hostname: name, origin } = channel.baseUrl;
    if (addressOf(channel).origin.port !== port || !isOwn(name.toLowerCase())) continue;
    throw new ConfigError(
      `The base_url of the channel "${channel.name}" is the address of this gateway itself (${origin}): its requests would loop. Change the base_url.`,
    );
  }
}

function isHere(name: string): boolean {
  if (isLoopback(name) || EVERYWHERE.has(name) || name === hostname().toLowerCase()) return true;
  const plain = name.replaceAll(/[[\]]/g, "");
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === plain));
}
