// Which Host headers name this gateway. A web page can make its own name resolve to 127.0.0.1 (DNS rebinding).
// Its requests then carry that name as Host.

import type { Catalog } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";

/** `::1` (as bound) and `[::1]` (as in a URL) are the same. */
export function isLoopbackHost(host: string): boolean {
  return isLoopback(host === "::1" ? "[::1]" : host.toLowerCase());
}

/** A gateway on loopback accepts only loopback names and those in `allowed_hosts`. */
export function isOwnHost(hostField: string | undefined, catalog: Catalog, boundHost: string): boolean {
  if (hostField === undefined || !isLoopbackHost(boundHost)) return true;
  const name = hostField.toLowerCase().replace(/:\d+$/, "");
  return isLoopbackHost(name) || catalog.allowedHosts.includes(name);
}
