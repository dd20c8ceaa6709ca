// Paths of the vendor's hosts that carry no inference. They go straight to the vendor, with the tool's own login, and are not
// metered. Those of a login are from its executable, the others were seen in requests of Claude Code 2.1.330. Everything else goes to the gateway.

import { pathOf } from "../../../dialects/path.ts";

const GET_PATHS = new Set([
  // The profile of a login, and what its plan allows.
  "/api/oauth/profile",
  "/api/oauth/usage",
  "/api/oauth/account/settings",
  "/api/oauth/claude_cli/roles",
  "/api/claude_cli/bootstrap",
  "/api/claude_code_penguin_mode",
  // What the user's organisation sets.
  "/api/claude_code/settings",
  "/api/claude_code/policy_limits",
  "/api/claude_code/organizations/metrics_enabled",
  // The addresses of its connectors, and until 2.1.278 a public list of MCP servers.
  "/api/directory/server-urls",
  "/mcp-registry/v0/servers",
]);

/** Feature switches and telemetry. */
const POST_PREFIXES = ["/api/eval/", "/api/event_logging/", "/api/claude_code/metrics"];

/** Only spellings that every server reads in the same way. */
const PLAIN = /^(?:\/[\w-]+(?:\.[\w-]+)*)+$/;

export function isWithoutInference(method: string, target: string): boolean {
  const path = pathOf(target);
  if (!PLAIN.test(path)) return false;
  if (method === "GET") return GET_PATHS.has(path);
  return method === "POST" && POST_PREFIXES.some((prefix) => path.startsWith(prefix));
}
