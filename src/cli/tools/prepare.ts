// A tool's connection → all that its environment needs: what `gateway run` applies and `gateway env` prints.

import type { Environment } from "../../config/expand.ts";
import { listUnset } from "./misleading.ts";
import { exemptGateway } from "./no-proxy.ts";
import type { Prepared } from "./overlay.ts";
import type { Connection, Tool } from "./tools.ts";

export function prepare(tool: Tool, connection: Connection, env: Environment): Prepared {
  const setting = tool.connect(connection);
  const exempt = exemptGateway(connection.base, env, tool.program !== null);
  return { env: { ...setting.env, ...exempt }, unset: listUnset(tool.misleading, env), args: setting.args };
}
