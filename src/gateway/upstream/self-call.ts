// A gateway that is its own upstream would ask itself for ever. A channel that
// says so in its base URL is refused; what comes back another way, through another
// gateway say, is known by a mark on the requests that go upstream. The platforms
// themselves are reached by TLS and never see one.

import type { Catalog } from "../../config/catalog.ts";
import { ConfigError } from "../../config/problems.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange, Field, Origin } from "../../lib/http1/types.ts";
import { isLoopbackHost } from "../intake/own-host.ts";
import { addressOf } from "./origin.ts";

const MARK = "x-gateway-hop";
/** One for each running gateway: what another one has marked may pass. */
const OWN = crypto.randomUUID().slice(0, 8);
const MOST_HOPS = 8;

/** The mark for a request that goes there: those that it came with, and this gateway's. */
export function markHop(exchange: Exchange, origin: Origin): Field[] {
  if (origin.tls) return [];
  const before = exchange.field(MARK);
  return [[MARK, before === undefined ? OWN : `${before}, ${OWN}`]];
}

export function refuseOwnCall(exchange: Exchange): void {
  const hops = exchange.field(MARK);
  if (hops === undefined) return;
  const passed = hops.split(",").map((hop) => hop.trim());
  if (!passed.includes(OWN) && passed.length < MOST_HOPS) return;
  throw new GatewayError(
    "upstream_failed",
    "This request has come from this gateway itself: the base_url of one of its channels leads back to it.",
  );
}

/** Throws where a channel's base URL is the address on which this gateway listens. */
export function refuseSelfChannels(catalog: Catalog, port: number): void {
  const { host } = catalog.listen;
  for (const channel of catalog.channels.values()) {
    if (addressOf(channel).origin.port !== port || !isOwn(channel.baseUrl.hostname, host)) continue;
    throw new ConfigError(
      `The base_url of the channel "${channel.name}" is the address of this gateway itself (${channel.baseUrl.origin}): its requests would go round in circles.`,
    );
  }
}

const EVERYWHERE = new Set(["0.0.0.0", "::", "[::]"]);

function isOwn(hostname: string, listenHost: string): boolean {
  const name = hostname.toLowerCase();
  if (name === listenHost.toLowerCase() || name === `[${listenHost}]`) return true;
  return isLoopbackHost(name) && (isLoopbackHost(listenHost) || EVERYWHERE.has(listenHost));
}
