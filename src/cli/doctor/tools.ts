// `gateway doctor` on this shell: variables that make a tool bypass the gateway or send its key to a proxy, and settings of
// tools that make their requests worse.

import type { Catalog } from "../../config/catalog.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { isExempt } from "../../config/proxy.ts";
import { formatBaseUrl } from "../access/running.ts";
import type { RunningGateway } from "../access/running.ts";
import { type Finding, note } from "./finding.ts";
import { describeMisleading, isMisleading } from "../tools/environment/misleading.ts";
import { NO_PROXY_NAMES, PROXY_NAMES, splitList } from "../tools/environment/no-proxy.ts";
import { findLosses } from "./losses.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { TOOLS } from "../tools/programs/tools.ts";

export function checkTools({ listen }: Catalog, running: RunningGateway | null, env: Environment): Finding[] {
  const { host, port } = running?.address ?? listen;
  // Port 0 becomes a real port only when the gateway starts. NO_PROXY needs only the host.
  const base = new URL(formatBaseUrl({ host, port: port === 0 ? 1 : port }));
  return [...checkProxies(base, env), ...checkVariables(env), ...findLosses(env)];
}

function checkVariables(env: Environment): Finding[] {
  return [...TOOLS.values()].flatMap(({ name, title, misleading, program }) => {
    const detail = describeMisleading(title, misleading, env);
    if (detail === null) return [];
    const command = program === null ? `gateway run ${name} -- …` : `gateway run ${name}`;
    const lines = `eval "$(gateway env ${name})"`;
    const fix = ENV_TOOLS.has(name) ? `${lines} removes it` : `${command}, or ${lines}: both remove it`;
    return [note(`tool ${name}`, detail, fix)];
  });
}

/** The names alone, for one line: what `checkTools` explains. */
export function listMisleading(address: { host: string; port: number }, env: Environment): string[] {
  const names = [...TOOLS.values()].flatMap(({ misleading }) =>
    misleading.filter((name) => isMisleading(name, env[name])),
  );
  return [...new Set([...names, ...findProxies(new URL(formatBaseUrl(address)), env)])];
}

/** Proxies of which NO_PROXY does not exempt the gateway. */
function findProxies(base: URL, env: Environment): string[] {
  // On Windows each spelling reads the one variable that is there.
  const there = new Set(Object.keys(env));
  const proxies = PROXY_NAMES.filter((name) => there.has(name) && (env[name] ?? "") !== "");
  const lists = NO_PROXY_NAMES.map((name) => env[name] ?? "").filter((list) => list !== "");
  return lists.length > 0 && lists.every((list) => covers(list, base)) ? [] : proxies;
}

/** Some tools use HTTPS_PROXY for plain HTTP too. Values may contain passwords, so only names are shown. */
function checkProxies(base: URL, env: Environment): Finding[] {
  const proxies = findProxies(base, env);
  if (proxies.length === 0) return [];
  const detail =
    `${proxies.join(", ")} ${proxies.length === 1 ? "is" : "are"} set, and NO_PROXY does not name ` +
    `${base.hostname}: a tool started here may send its requests and its key to a proxy`;
  return [note("proxy", detail, "start tools with `gateway run` or `gateway env`: both add it to NO_PROXY")];
}

/** Codex does not accept `*` for an address. */
function covers(list: string, base: URL): boolean {
  const named = splitList(list).filter((entry) => entry !== "*");
  return isExempt(base, named.join(",")) || named.includes(base.hostname.replace(/^\[(.*)\]$/, "$1"));
}
