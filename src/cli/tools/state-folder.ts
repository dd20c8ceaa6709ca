// The folder for what the gateway's commands remember, other than the config and the ledger.

import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";

export function stateFolder(env: Environment): string {
  const named = env["XDG_STATE_HOME"] ?? "";
  return join(isAbsolute(named) ? named : join(env["HOME"] || homedir(), ".local/state"), "gateway");
}
