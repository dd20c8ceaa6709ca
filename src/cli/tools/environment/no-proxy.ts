// NO_PROXY for the gateway's own address. Tools send even requests to 127.0.0.1 to the proxy of HTTPS_PROXY or
// HTTP_PROXY, and a proxy can read the key in a plain HTTP request.

import type { Environment } from "../../../config/yaml/expand.ts";

/** Some tools read only one spelling. Those that read both disagree which has precedence. */
export const NO_PROXY_NAMES = ["NO_PROXY", "no_proxy"] as const;

/** What a tool that ignores NO_PROXY must not see. */
export const PROXY_NAMES = [
  "HTTPS_PROXY",
  "HTTP_PROXY",
  "ALL_PROXY",
  "https_proxy",
  "http_proxy",
  "all_proxy",
];

const LOOPBACK = ["localhost", "127.0.0.1", "::1"];

/**
 * `bracketed`: adds an IPv6 address also in brackets, as in URLs. Gemini CLI and opencode read only that form;
 * Python's httpx fails on it.
 */
export function exemptGateway(base: string, env: Environment, bracketed: boolean): Record<string, string> {
  const hosts = [...new Set([...LOOPBACK, ...listHostNames(base, bracketed)])];
  const [capital, small] = NO_PROXY_NAMES;
  return {
    [capital]: addEntries(capital, env[capital] || env[small] || "", hosts),
    [small]: addEntries(small, env[small] || env[capital] || "", hosts),
  };
}

/** None for HTTPS: a proxy cannot read those requests, and may be the only way to that gateway. */
function listHostNames(base: string, bracketed: boolean): string[] {
  const { protocol, hostname } = new URL(base);
  if (protocol === "https:") return [];
  if (!hostname.startsWith("[")) return [hostname];
  const bare = hostname.slice(1, -1);
  return bracketed ? [bare, hostname] : [bare];
}

/** Keeps the user's own entries as they are. */
export function addEntries(name: string, list: string, entries: readonly string[]): string {
  // Codex reads NO_PROXY and needs the address next to a `*`. The others accept a `*` only when it is alone.
  if (name === "no_proxy" && list.trim() === "*") return list;
  const present = new Set(splitList(list));
  const missing = entries.filter((entry) => !present.has(entry.toLowerCase()));
  const own = list.replace(/[\s,]+$/, "");
  return [...(own === "" ? [] : [own]), ...missing].join(",");
}

export function splitList(list: string): string[] {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== "");
}
