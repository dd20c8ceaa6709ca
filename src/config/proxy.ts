// The proxy for a target, from HTTPS_PROXY and the like. Loopback never uses one.

import type { Environment } from "./yaml/expand.ts";

export function findProxy(target: URL, env: Environment): URL | null {
  const read = (name: string) => env[name.toLowerCase()] || env[name] || "";
  const own = target.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const address = read(own) || read("ALL_PROXY");
  if (address === "" || isLoopback(target.hostname)) return null;
  if (isExempt(target, read("NO_PROXY"))) return null;
  const proxy = URL.parse(address.includes("://") ? address : `http://${address}`);
  return proxy !== null && /^https?:$/.test(proxy.protocol) ? proxy : null;
}

/** An IPv6 host may have brackets, as in a URL. */
export function isLoopback(host: string): boolean {
  return /^(?:(?:.*\.)?localhost|\[::1\]|::1|127(?:\.\d+){3})$/i.test(host);
}

function isExempt(target: URL, list: string): boolean {
  const usual = target.protocol === "https:" ? "443" : "80";
  const port = target.port || usual;
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === "") return false;
    if (entry === "*") return true;
    const [, host = "", entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    const suffix = host.replace(/^\*?\./, "");
    const isHost = target.hostname === suffix || target.hostname.endsWith(`.${suffix}`);
    return isHost && (entryPort === undefined || entryPort === port);
  });
}
