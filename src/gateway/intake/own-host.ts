// Which Host headers are this gateway's. A page in a browser can make its own
// name point at 127.0.0.1 (DNS rebinding); its requests then bear that name.

import type { Catalog } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";

/** As bound, or as a URL writes it: `::1` and `[::1]` are the same. */
export function isLoopbackHost(host: string): boolean {
  return isLoopback(host === "::1" ? "[::1]" : host.toLowerCase());
}

/** While bound to loopback, only loopback names and those that the config allows are ours. */
export function isOwnHost(hostField: string | undefined, catalog: Catalog, boundHost: string): boolean {
  if (hostField === undefined || !isLoopbackHost(boundHost)) return true;
  const name = hostField.toLowerCase().replace(/:\d+$/, "");
  return isLoopbackHost(name) || catalog.allowedHosts.includes(name);
}
