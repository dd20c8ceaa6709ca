// `gateway doctor` on this shell: variables that make a tool bypass the gateway or that cost it something; and the port.

import { isLoopback } from "../../config/proxy.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { fetchAnswer } from "../../lib/http/fetch.ts";
import { VERSION } from "../../lib/version.ts";
import { type Address, formatBaseUrl } from "../access/running.ts";
import { readAllVariables } from "../tools/claude.ts";
import { describeMisleading } from "../tools/environment.ts";
import { TOOLS } from "../tools/tools.ts";
import { bad, type Check, good, note } from "./finding.ts";

export const checkToolVariables: Check = ({ env }) =>
  [...TOOLS.values()].flatMap(({ name, title, misleading, program }) => {
    const detail = describeMisleading(title, misleading, env);
    if (detail === null) return [];
    const command = program === null ? `gateway run ${name} -- …` : `gateway run ${name}`;
    const lines = `eval "$(gateway env ${name})"`;
    const fix = ENV_TOOLS.has(name) ? `${lines} removes it` : `${command}, or ${lines}: both remove it`;
    return [note(`tool ${name}`, detail, fix)];
  });

/** Variables of Claude Code, the values that cost it something, and what. https://code.claude.com/docs/en/env-vars */
const COSTLY: readonly (readonly [name: string, values: RegExp, loss: string])[] = [
  ["DISABLE_PROMPT_CACHING", /^(?:1|true|yes|on)$/i, "every request pays for its whole prompt"],
  [
    "ENABLE_TOOL_SEARCH",
    /^(?!1$|true$|yes$|on$|auto)./i,
    "the definitions of all MCP tools are in every request",
  ],
  [
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
    /^(?:1|true|yes|on)$/i,
    "Claude Code sends fewer betas, and searches no tools",
  ],
];

export const checkCosts: Check = ({ env }) => {
  const all = { ...env, ...readAllVariables(env) };
  return COSTLY.filter(([name, values]) => values.test(all[name] ?? "")).map(([name, , loss]) =>
    note(
      "tool claude",
      `${name} is set: ${loss}`,
      "remove it from this shell or the settings of Claude Code",
    ),
  );
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
    if (getErrorCode(error) !== "EADDRINUSE")
      return bad(check, `cannot listen on ${host}:${port}: ${getErrorMessage(error)}`, "change listen:");
    const user = (await isGateway(listen)) ? "a gateway with another config" : "another program";
    return bad(check, `${host}:${port} is used by ${user}`, "gateway serve --port N, or change listen.port");
  }
};

const TIMEOUT_MS = 2000;

export async function isGateway(address: Address): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const url = new URL(`${formatBaseUrl(address)}/api/hello`);
    const response = await fetchAnswer(url, { proxy: null, signal });
    return (await response.text()).includes('"name":"gateway"');
  } catch {
    return false;
  }
}
