// `gateway doctor` on the address: free, used by this config's gateway, or used by another program.

import { isLoopback } from "../../config/proxy.ts";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { fetchAnswer } from "../../lib/http/fetch.ts";
import { VERSION } from "../../lib/version.ts";
import { type Address, formatBaseUrl } from "../access/running.ts";
import { bad, type Check, good, note } from "./finding.ts";

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
