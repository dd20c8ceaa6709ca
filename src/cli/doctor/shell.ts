// `gateway doctor` on this shell: variables that make a tool bypass the gateway or send its key to a proxy, and settings
// of tools that make their requests worse.

import { isExempt, isLoopback } from "../../config/proxy.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { type Address, formatBaseUrl } from "../access/running.ts";
import { describeMisleading, NO_PROXY_NAMES, PROXY_NAMES, splitList } from "../tools/environment.ts";
import { readAllVariables } from "../tools/claude.ts";
import { TOOLS } from "../tools/tools.ts";
import { bad, type Check, good, note } from "./finding.ts";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { fetchAnswer } from "../../lib/http/fetch.ts";
import { VERSION } from "../../lib/version.ts";

export const checkToolVariables: Check = ({ env }) =>
  [...TOOLS.values()].flatMap(({ name, title, misleading, program }) => {
    const detail = describeMisleading(title, misleading, env);
    if (detail === null) return [];
    const command = program === null ? `gateway run ${name} -- …` : `gateway run ${name}`;
    const lines = `eval "$(gateway env ${name})"`;
    const fix = ENV_TOOLS.has(name) ? `${lines} removes it` : `${command}, or ${lines}: both remove it`;
    return [note(`tool ${name}`, detail, fix)];
  });

/** Proxies of which NO_PROXY does not exempt the gateway. */
function findProxies(base: URL, env: Environment): string[] {
  // On Windows each spelling reads the one variable that is there.
  const there = new Set(Object.keys(env));
  const proxies = PROXY_NAMES.filter((name) => there.has(name) && (env[name] ?? "") !== "");
  const lists = NO_PROXY_NAMES.map((name) => env[name] ?? "").filter((list) => list !== "");
  return lists.length > 0 && lists.every((list) => covers(list, base)) ? [] : proxies;
}

/** Codex does not accept `*` for an address. */
function covers(list: string, base: URL): boolean {
  const named = splitList(list).filter((entry) => entry !== "*");
  return isExempt(base, named.join(",")) || named.includes(base.hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** Some tools use HTTPS_PROXY for plain HTTP too. Values may contain passwords, so only names are shown. */
export const checkProxies: Check = ({ catalog: { listen }, running, env }) => {
  const { host, port } = running?.address ?? listen;
  // Port 0 becomes a real port only when the gateway starts. NO_PROXY needs only the host.
  const base = new URL(formatBaseUrl({ host, port: port === 0 ? 1 : port }));
  const proxies = findProxies(base, env);
  if (proxies.length === 0) return null;
  const detail =
    `${proxies.join(", ")} ${proxies.length === 1 ? "is" : "are"} set, and NO_PROXY does not name ` +
    `${base.hostname}: a tool started here may send its requests and its key to a proxy`;
  return note("proxy", detail, "start tools with `gateway run` or `gateway env`: both add it to NO_PROXY");
};

/** Variables of Claude Code, the values that cost it something, and what. https://code.claude.com/docs/en/env-vars */
const COSTLY: readonly (readonly [name: string, costs: (value: string) => boolean, loss: string])[] = [
  ["DISABLE_PROMPT_CACHING", isOn, "every request pays for its whole prompt"],
  [
    "ENABLE_TOOL_SEARCH",
    (value) => !isOn(value) && !value.startsWith("auto"),
    "the definitions of all MCP tools are in every request",
  ],
  ["CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", isOn, "Claude Code sends fewer betas, and searches no tools"],
];

function isOn(value: string): boolean {
  return /^(?:1|true|yes|on)$/i.test(value);
}

export const checkCosts: Check = ({ env }) => {
  const files = readAllVariables(env);
  return COSTLY.flatMap(([name, costs, loss]) => {
    const value = files[name] ?? env[name] ?? "";
    if (value === "" || !costs(value)) return [];
    const where = name in files ? "in its settings" : "in this shell";
    return [note("tool claude", `${name} is set ${where}: ${loss}`, "remove it there")];
  });
};

export const checkPort: Check = async ({ catalog: { listen }, running }) => {
  const check = "port";
  if (running !== null) {
    const what = `the gateway is running on ${formatBaseUrl(running.address)} (process ${running.pid})`;
    return running.version === VERSION
      ? good(check, what)
      : note(check, `${what}, version ${running.version}; this is ${VERSION}`, "restart it");
  }
  const { host, port } = listen;
  try {
    Bun.listen({ hostname: host, port, exclusive: true, socket: { data: () => {} } }).stop(true);
    const reach = isLoopback(host) ? "" : "; every machine that can reach this one will reach the gateway";
    return good(check, `${host}:${port} is free; the gateway is not running${reach}`);
  } catch (error) {
    const code = getErrorCode(error);
    if (code === "EACCES")
      return bad(check, `this user may not listen on port ${port}`, "set listen.port to 1024 or more");
    if (code !== "EADDRINUSE")
      return bad(check, `cannot listen on ${host}:${port}: ${getErrorMessage(error)}`, "change listen.host");
    const user = (await isGateway(listen)) ? "a gateway with another config" : "another program";
    return bad(check, `${host}:${port} is used by ${user}`, "gateway serve --port N, or change listen.port");
  }
};

const TIMEOUT_MS = 2000;

export async function isGateway(address: Address): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetchAnswer(new URL(`${formatBaseUrl(address)}/api/hello`), {
      proxy: null,
      signal,
    });
    return (await response.text()).includes('"name":"gateway"');
  } catch {
    return false;
  }
}
