// All that a tool's environment needs to use the gateway: `gateway run` applies it and `gateway env` prints it.

import type { Environment } from "../../config/yaml/expand.ts";
import { isMisleading, listUnset } from "./environment/misleading.ts";
import { exemptGateway, PROXY_NAMES } from "./environment/no-proxy.ts";
import type { ToolEnvironment } from "./programs/overlay.ts";
import {
  type Connection,
  listCacheVariables,
  listHeaders,
  listMisleading,
  type Tool,
} from "./programs/tool.ts";

export function prepare(tool: Tool, connection: Connection, env: Environment): ToolEnvironment {
  const setting = tool.connect(connection);
  const exempt = exemptGateway(connection.base, env, tool.program !== null);
  const proxies = tool.ignoresNoProxy === true ? PROXY_NAMES : [];
  const unset = [...listUnset(listMisleading(tool, connection), env), ...proxies];
  const headers = nameHeaders(tool, connection, env);
  const defaults = Object.entries(setting.defaults ?? {}).filter(([name]) => (env[name] ?? "") === "");
  const own = { ...Object.fromEntries(defaults), ...setting.env };
  const wanted = { ...tool.equalise?.(connection, env), ...listCacheVariables(tool, connection) };
  return { env: { ...own, ...wanted, ...headers, ...exempt }, unset, args: setting.args };
}

/** The user's own header fields stay, unless they mislead the tool. */
function nameHeaders(tool: Tool, connection: Connection, env: Environment): Record<string, string> {
  const variable = tool.headers?.(connection);
  const headers = listHeaders(connection);
  if (variable === undefined || headers === null) return {};
  const own = env[variable.name] ?? "";
  const kept = own === "" || isMisleading(variable.name, own) ? [] : [own];
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
  return { [variable.name]: [...kept, ...lines].join(variable.separator) };
}
