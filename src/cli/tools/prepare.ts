// All that a tool's environment needs to use the gateway: `gateway run` applies it and `gateway env` prints it.

import type { Environment } from "../../config/yaml/expand.ts";
import { listUnset } from "./environment/misleading.ts";
import { exemptGateway, PROXY_NAMES } from "./environment/no-proxy.ts";
import type { ToolEnvironment } from "./programs/overlay.ts";
import type { Connection, Tool } from "./programs/tool.ts";

export function prepare(tool: Tool, connection: Connection, env: Environment): ToolEnvironment {
  const setting = tool.connect(connection);
  const exempt = exemptGateway(connection.base, env, tool.program !== null);
  const proxies = tool.ignoresNoProxy === true ? PROXY_NAMES : [];
  const unset = [...listUnset(tool.misleading, env), ...proxies];
  return { env: { ...setting.env, ...exempt }, unset, args: setting.args };
}
