// `gateway doctor` on the address: free, used by this config's gateway, or used by another program.

import type { Catalog } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { VERSION } from "../../lib/version.ts";
import { type Address, formatBaseUrl, type RunningGateway } from "../access/running.ts";
import { bad, type Finding, good, note } from "./finding.ts";

export async function checkPort({ listen }: Catalog, running: RunningGateway | null): Promise<Finding> {
  const check = "port";
  if (running !== null) {
    const what = `the gateway is running on ${formatBaseUrl(running.address)} (process ${running.pid})`;
    return running.version === VERSION
      ? good(check, what)
      : note(check, `${what}, version ${running.version}; this is ${VERSION}`, "restart it");
  }
  const { host, port } = listen;
  const problem = tryToListen(host, port);
  if (problem === null) {
    const reach = isLoopback(host) ? "" : "; every machine that can reach this one will reach the gateway";
    return good(check, `${host}:${port} is free; the gateway is not running${reach}`);
  }
  if (problem.code === "EADDRINUSE") return explainTaken(host, port);
  if (problem.code === "EACCES")
    return bad(check, `this user may not listen on port ${port}`, "set listen.port to 1024 or more");
  return bad(check, `cannot listen on ${host}:${port}: ${problem.text}`, "change listen.host");
}

function tryToListen(hostname: string, port: number): { code: string; text: string } | null {
  try {
    Bun.listen({ hostname, port, exclusive: true, socket: { data: () => {} } }).stop(true);
    return null;
  } catch (error) {
    return { code: getErrorCode(error), text: getErrorMessage(error) };
  }
}

const TIMEOUT_MS = 2000;

async function explainTaken(host: string, port: number): Promise<Finding> {
  const fix = "gateway serve --port N, or change listen.port";
  const user = (await isGateway({ host, port })) ? "a gateway with another config" : "another program";
  return bad("port", `${host}:${port} is used by ${user}`, fix);
}

export async function isGateway(address: Address): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`${formatBaseUrl(address)}/api/hello`, { signal });
    return (await response.text()).includes('"name":"gateway"');
  } catch {
    return false;
  }
}
