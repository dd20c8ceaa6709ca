// All that a tool's environment needs to use the gateway: `gateway run` applies it and `gateway env` prints it.

import type { Environment } from "../../config/expand.ts";
import { listUnset } from "./misleading.ts";
import { exemptGateway } from "./no-proxy.ts";
import type { ToolEnvironment } from "./overlay.ts";
import type { Connection, Tool } from "./tool.ts";

export function prepare(tool: Tool, connection: Connection, env: Environment): ToolEnvironment {
  const setting = tool.connect(connection);
  const exempt = exemptGateway(connection.base, env, tool.program !== null);
  return { env: { ...setting.env, ...exempt }, unset: listUnset(tool.misleading, env), args: setting.args };
}
