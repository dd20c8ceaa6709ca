// Decides which requests reach the console, before sign-in. Other web pages can make
// a browser send requests here: the browser says where they come from.

import type { Catalog } from "../config/catalog.ts";
import { isConsoleHost } from "../gateway/intake/own-host.ts";
import type { Exchange } from "../lib/http/exchange.ts";
import type { Field } from "../lib/http/fields.ts";

/** Why the request is refused; null: it is not. */
export function refuseForeign(exchange: Exchange, catalog: Catalog, isShell: boolean): string | null {
  const host = exchange.field("host");
  if (!isConsoleHost(host, catalog)) return "The Host of this request is not a name of this gateway.";
  const origin = exchange.field("origin");
  const isOwn = origin === `http://${host}` || origin === `https://${host}`;
  if (origin !== undefined && !isOwn) return "Pages of another origin may not use the console.";
  // Browsers send an Origin with every POST.
  if (exchange.method !== "GET" && origin === undefined) return "The request does not say its Origin.";
  return refuseSite(exchange, isShell);
}

/** The shell has no data: other sites may link to it,
 *  but not show it in a frame. */
function refuseSite(exchange: Exchange, isShell: boolean): string | null {
  const site = exchange.field("sec-fetch-site") ?? "same-origin";
  const into = exchange.field("sec-fetch-dest") ?? "document";
  if (isShell) return into === "document" || into === "empty" ? null : "The console is not shown in frames.";
  return site === "same-origin" || site === "none" ? null : "Pages of another site may not use the console.";
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export const SAFE_FIELDS: readonly Field[] = [
  ["content-security-policy", POLICY],
  ["x-frame-options", "DENY"],
  ["x-content-type-options", "nosniff"],
  ["referrer-policy", "no-referrer"],
  ["cross-origin-opener-policy", "same-origin"],
  ["cross-origin-resource-policy", "same-origin"],
];

export const NOT_CACHED: Field = ["cache-control", "no-store"];

/** Pages on other ports of this host can set cookies with the same name as the gateway's.
 *  Browsers send cookies of longer paths first, so the gateway's is one of the last. */
const MAX_COOKIES = 16;

/** The last cookies of this name.
 *  The header is searched, not split: anybody can fill it. */
export function readCookies({ fields }: Pick<Exchange, "fields">, name: string): string[] {
  const begin = `${name}=`;
  const found: string[] = [];
  for (const value of fields.getAll("cookie")) {
    for (let at = value.indexOf(begin); at !== -1; at = value.indexOf(begin, at + begin.length)) {
      if (at > 0 && value[at - 1] !== ";" && value[at - 1] !== " ") continue;
      const end = value.indexOf(";", at);
      found.push(value.slice(at + begin.length, end === -1 ? value.length : end));
    }
  }
  return found.slice(-MAX_COOKIES);
}
