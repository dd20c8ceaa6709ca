// Checks Host headers, because the name of a web page may resolve to 127.0.0.1.

import type { Catalog } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";

const IP_LITERAL = /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])$/;

/** The console also accepts numeric addresses,
 *  which no web page can give itself. */
export function isConsoleHost(hostField: string | undefined, catalog: Catalog): boolean {
  const name = readHostName(hostField ?? "");
  return isLoopback(name) || catalog.allowedHosts.includes(name) || IP_LITERAL.test(name);
}

function readHostName(hostField: string): string {
  return hostField.toLowerCase().replace(/:\d+$/, "");
}

export function describeBaseUrl(host: string, port: number): string {
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `http://${shown}:${port}`;
}

export function acceptsHost(
  hostField: string | undefined,
  boundHost: string,
  { allowedHosts }: Pick<Catalog, "allowedHosts">,
): boolean {
  if (hostField === undefined || !isLoopback(boundHost)) return true;
  const name = readHostName(hostField);
  return isLoopback(name) || allowedHosts.includes(name);
}
