// Prevents endless loops. A channel whose base URL is the gateway itself is refused. If a request comes back another way
// (through another gateway, for example), a header on upstream requests shows it. Only upstreams whose address belongs to
// this machine get the header, because only those can be this gateway.

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";

import type { Catalog } from "../../config/catalog.ts";
import { ConfigError } from "../../config/yaml/problems.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import type { Origin } from "../../lib/http/upstream.ts";
import { isLoopback } from "../../config/proxy.ts";
import { addressOf } from "./origin.ts";

const HOP_HEADER = "x-gateway-hop";
/** Identifies this running gateway. Requests that only other gateways have marked may pass. */
const OWN_MARK = crypto.randomUUID().slice(0, 8);
const MAX_HOPS = 8;

/** The header for an upstream request: the marks that the request came with, and this gateway's own. */
export function markHop(exchange: Exchange, origin: Origin): Field[] {
  if (!leadsHere(origin)) return [];
  const before = exchange.field(HOP_HEADER);
  return [[HOP_HEADER, before === undefined ? OWN_MARK : `${before}, ${OWN_MARK}`]];
}

interface Locality {
  isHere: boolean;
  checkedAt: number;
}

/** Addresses change, for example with a VPN. */
const LOCALITY_TTL_MS = 60_000;
const localities = new WeakMap<Origin, Locality>();

/** True if the upstream's address belongs to this machine. A name is looked up in the background: until its addresses are
 *  known, only names of this machine count. A loop comes by again. */
function leadsHere(origin: Origin): boolean {
  const known = localities.get(origin);
  const now = performance.now();
  if (known !== undefined && now - known.checkedAt < LOCALITY_TTL_MS) return known.isHere;
  const host = origin.host.replace(/^\[|\]$/g, "").toLowerCase();
  const isLiteral = isIP(host) !== 0;
  const isNamed = isLoopback(host) || EVERYWHERE.has(host) || host === hostname().toLowerCase();
  const locality = {
    isHere: isNamed || (isLiteral ? isOwnAddress(host) : known?.isHere === true),
    checkedAt: now,
  };
  localities.set(origin, locality);
  // Behind a proxy, the proxy looks names up.
  if (!isNamed && !isLiteral && origin.proxy === undefined) void resolveLocality(host, locality);
  return locality.isHere;
}

async function resolveLocality(host: string, locality: Locality): Promise<void> {
  try {
    const addresses = await lookup(host, { all: true });
    locality.isHere = addresses.some(({ address }) => isOwnAddress(address));
  } catch {
    // The request itself reports a name that cannot be resolved.
  }
}

/** Link-local addresses may carry a zone: `fe80::1%eth0`. */
function isOwnAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, "");
  if (isLoopback(plain) || EVERYWHERE.has(plain)) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((each) => each.address === plain));
}

export function refuseOwnCall(exchange: Exchange): void {
  const hops = exchange.field(HOP_HEADER);
  if (hops === undefined) return;
  const passed = hops.split(",").map((hop) => hop.trim());
  if (!passed.includes(OWN_MARK) && passed.length < MAX_HOPS) return;
  throw new GatewayError(
    "upstream_failed",
    "This request comes from this gateway itself: the base_url of one of its channels leads back to it.",
  );
}

/** Throws if a channel's base URL is the address on which this gateway listens. */
export function refuseSelfChannels(catalog: Catalog, port: number): void {
  const { host } = catalog.listen;
  for (const channel of catalog.channels.values()) {
    if (addressOf(channel).origin.port !== port || !isOwn(channel.baseUrl.hostname, host)) continue;
    throw new ConfigError(
      `The base_url of the channel "${channel.name}" is the address of this gateway itself (${channel.baseUrl.origin}): its requests would loop. Change the base_url.`,
    );
  }
}

const EVERYWHERE = new Set(["0.0.0.0", "::", "[::]"]);

function isOwn(hostname: string, listenHost: string): boolean {
  const name = hostname.toLowerCase();
  if (name === listenHost.toLowerCase() || name === `[${listenHost}]`) return true;
  return isLoopback(name) && (isLoopback(listenHost) || EVERYWHERE.has(listenHost));
}
