// `gateway doctor` on this shell: variables that make a tool bypass the gateway; and the port.

import { isLoopback } from "../../config/proxy.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { VERSION } from "../../lib/version.ts";
import { formatBaseUrl } from "../access/running.ts";
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

export const checkPort: Check = ({ catalog: { listen }, running }) => {
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
    const user = "another program, or a gateway with another config";
    return bad(check, `${host}:${port} is used by ${user}`, "gateway serve --port N, or change listen.port");
  }
};
