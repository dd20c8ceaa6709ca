// NO_PROXY for the gateway's own address. Tools send even a request to 127.0.0.1 to the proxy that HTTPS_PROXY or
// HTTP_PROXY names, and a proxy reads the key of a plain HTTP request.

import type { Environment } from "../../config/expand.ts";

/** Some tools read one spelling only, and those that read both do not agree which comes first. */
export const NO_PROXY_NAMES = ["NO_PROXY", "no_proxy"] as const;

const LOOPBACK = ["localhost", "127.0.0.1", "::1"];

/**
 * `bracketed`: an IPv6 gateway's address also as URLs write it. Gemini CLI and opencode read it in that way only,
 * and Python's httpx fails on it.
 */
export function exemptGateway(base: string, env: Environment, bracketed: boolean): Record<string, string> {
  const hosts = [...new Set([...LOOPBACK, ...listOwnNames(base, bracketed)])];
  const [capital, small] = NO_PROXY_NAMES;
  return {
    [capital]: addEntries(capital, env[capital] || env[small] || "", hosts),
    [small]: addEntries(small, env[small] || env[capital] || "", hosts),
  };
}

/** A proxy cannot read what goes to an HTTPS gateway, and may be the only way there. */
function listOwnNames(base: string, bracketed: boolean): string[] {
  const { protocol, hostname } = new URL(base);
  if (protocol === "https:") return [];
  if (!hostname.startsWith("[")) return [hostname];
  const bare = hostname.slice(1, -1);
  return bracketed ? [bare, hostname] : [bare];
}

/** The user's own entries stay as they are. */
export function addEntries(name: string, list: string, entries: readonly string[]): string {
  // Codex needs the address beside a `*`, and reads the capitals; the others take a `*` only where it stands alone,
  // in either spelling.
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
