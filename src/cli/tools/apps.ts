// The makers' desktop apps, whose user enters the settings by hand: what `gateway env` tells them.

import type { Environment } from "../../config/yaml/expand.ts";
import type { ToolName } from "../../dialects/platforms.ts";
import { join } from "node:path";
import { type Connection, homeOf, rootOf, type ToolSettings } from "./tool.ts";

type Settings = Readonly<Record<string, string | number | boolean>>;

export interface App {
  readonly title: string;
  /** It speaks as this tool does. */
  readonly tool: ToolName;
  readonly list: (connection: Connection, setting: ToolSettings) => Settings;
  readonly write: (settings: Settings, env: Environment) => readonly string[];
}

/** https://claude.com/docs/third-party/claude-desktop/gateway */
const claudeDesktop: App = {
  title: "Claude Desktop",
  tool: "claude",
  list: (connection) => ({
    inferenceProvider: "gateway",
    inferenceGatewayBaseUrl: rootOf(connection),
    inferenceGatewayApiKey: connection.secret,
    inferenceGatewayAuthScheme: "bearer",
  }),
  write: (settings) => [
    "# In Claude Desktop: Help > Troubleshooting > Enable Developer Mode,",
    "# then Developer > Configure Third-Party Inference. It takes an address without https on this machine only.",
    "Inference provider: Gateway",
    `Gateway base URL: ${settings["inferenceGatewayBaseUrl"]}`,
    `Gateway API key: ${settings["inferenceGatewayApiKey"]}`,
    "Gateway auth scheme: Bearer",
  ],
};

/** It reads the file of the command line's Codex, and no variables of a shell.
 *  https://developers.openai.com/codex/config-reference */
const codexApp: App = {
  title: "the Codex app",
  tool: "codex",
  list: ({ secret }, { args }) => ({
    ...Object.fromEntries(args.filter((word) => word !== "-c").flatMap(readOverride)),
    "model_providers.gateway.experimental_bearer_token": secret,
  }),
  write: (settings, env) => [
    `# At the top of ${join(env["CODEX_HOME"] || join(homeOf(env), ".codex"), "config.toml")}, which the command line's Codex reads, too:`,
    ...Object.entries(settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
  ],
};

/** Without the names of variables that only a shell has. */
function readOverride(override: string): [name: string, value: string | number | boolean][] {
  const [, name = "", value = ""] = /^([^=]+)=(.*)$/.exec(override) ?? [];
  if (/\.env_(?:key|http_headers)\b/.test(name)) return [];
  return [[name, value === "true" || (/^\d+$/.test(value) ? Number(value) : value)]];
}

export const APPS: ReadonlyMap<string, App> = new Map([
  ["claude-desktop", claudeDesktop],
  ["codex-app", codexApp],
]);
