// A tool's environment.

import { KEY_FIELDS, nameField } from "../../config/key-fields.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { type Connection, listHeaders, listMisleading, type Tool, type ToolEnvironment } from "./tool.ts";

/** A credential in one of these variables replaces the gateway's key. */
const ADDS_HEADERS = /_HEADERS$/;
const NAMES = nameField(KEY_FIELDS.join("|"), "goog");
const CREDENTIAL_FIELD = new RegExp(`(?:^|[\\n,])\\s*(?:${NAMES})\\s*:`, "i");

function isMisleading(name: string, value: string | undefined = ""): boolean {
  return ADDS_HEADERS.test(name) ? CREDENTIAL_FIELD.test(value) : value !== "";
}

export function describeMisleading(title: string, names: readonly string[], env: Environment): string | null {
  const found = names.filter((name) => isMisleading(name, env[name]));
  if (found.length === 0) return null;
  const [are, make] = found.length === 1 ? ["is", "makes"] : ["are", "make"];
  return `${found.join(", ")} ${are} set, which ${make} ${title} bypass the gateway or its key`;
}

export function prepare(tool: Tool, connection: Connection, started: Environment): ToolEnvironment {
  const env = { ...started, ...tool.readVariables?.(started) };
  const { args, defaults = {}, ...setting } = tool.connect(connection, env);
  // Unsets even absent variables:
  // the lines of `gateway env` may run in another shell.
  const unset = listMisleading(tool, connection).filter(
    (name) => !ADDS_HEADERS.test(name) || isMisleading(name, env[name]),
  );
  const all = {
    ...setting.env,
    ...Object.fromEntries(Object.entries(defaults).filter(([name]) => (env[name] ?? "") === "")),
    ...nameHeaders(tool, connection, env),
    ...exemptGateway(connection.base, env, tool.program !== null),
  };
  return {
    env: all,
    unset: [...unset, ...(tool.ignoresNoProxy === true ? PROXY_NAMES : [])],
    args,
  };
}

function nameHeaders({ headers: variable }: Tool, connection: Connection, env: Environment) {
  const lines = Object.entries(listHeaders(connection)).map(([header, value]) => `${header}: ${value}`);
  if (variable === undefined || lines.length === 0) return {};
  const own = env[variable.name] ?? "";
  const kept = own === "" || isMisleading(variable.name, own) ? [] : [own];
  return { [variable.name]: [...kept, ...lines].join(variable.separator) };
}

const NO_PROXY_NAMES = ["NO_PROXY", "no_proxy"] as const;

export const PROXY_NAMES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].flatMap((name) => [
  name,
  name.toLowerCase(),
]);

/** Gemini CLI and opencode need brackets around IPv6 addresses.
 *  Python's httpx fails on brackets. */
function exemptGateway(base: string, env: Environment, bracketed: boolean): Record<string, string> {
  const { protocol, hostname } = new URL(base);
  const bare = hostname.replace(/^\[(.*)\]$/, "$1");
  // With HTTPS, a proxy can read nothing and may be the only way there.
  const own = protocol === "https:" ? [] : [bare, ...(bracketed ? [hostname] : [])];
  const hosts = [...new Set(["localhost", "127.0.0.1", "::1", ...own])];
  const [capital, small] = NO_PROXY_NAMES;
  return {
    [capital]: addEntries(capital, env[capital] || env[small] || "", hosts),
    [small]: addEntries(small, env[small] || env[capital] || "", hosts),
  };
}

function addEntries(name: string, list: string, entries: readonly string[]): string {
  // Codex reads NO_PROXY, and needs the address there next to `*`.
  // Other tools read no_proxy, and need `*` alone.
  if (name === "no_proxy" && list.trim() === "*") return list;
  const present = new Set(list.toLowerCase().split(/[\s,]+/));
  const own = list.replace(/[\s,]+$/, "");
  return [...(own === "" ? [] : [own]), ...entries.filter((entry) => !present.has(entry))].join(",");
}
