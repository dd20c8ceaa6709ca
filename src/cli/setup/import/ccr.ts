// The config of claude-code-router: config.json. A route becomes an alias for all names that Claude Code asks for.

import { getField } from "../../../lib/json/json.ts";
import { addChannel, addKey, type Draft, findProvider, noteOthers, readList, readText } from "./draft.ts";

export function readCcr(document: unknown, draft: Draft): void {
  const proxy = readText(document, "PROXY_URL");
  const timeout = Number(getField(document, "API_TIMEOUT_MS") ?? Number.NaN);
  const channels = new Map<string, string>();
  for (const provider of readList(document, "Providers")) {
    const name = readText(provider, "name") ?? "provider";
    const address = readText(provider, "api_base_url") ?? "";
    const preset = findProvider(address, name) ?? readAddress(address);
    if (preset === null) {
      draft.lost.push(
        `Providers ${name}: Chat Completions at ${hostOf(address)}. A channel speaks messages, responses or content`,
      );
      continue;
    }
    const more = {
      ...(proxy !== null && { proxy }),
      ...(Number.isInteger(timeout) && { timeouts: { first_byte: `${timeout}ms` } }),
    };
    channels.set(name, addChannel(draft, { name, preset, credential: getField(provider, "api_key"), more }));
    noteOthers(draft, provider, ["name", "api_base_url", "api_key", "models"], `Providers ${name}: `);
  }
  readRoutes(getField(document, "Router"), channels, draft);
  const [host, port] = [readText(document, "HOST"), Number(getField(document, "PORT") ?? Number.NaN)];
  draft.listen = { ...(host !== null && { host }), ...(Number.isInteger(port) && { port }) };
  addKey(draft, "ccr", getField(document, "APIKEY"), "APIKEY");
  noteOthers(draft, document, [
    "Providers",
    "Router",
    "APIKEY",
    "HOST",
    "PORT",
    "PROXY_URL",
    "API_TIMEOUT_MS",
  ]);
}

function readRoutes(router: unknown, channels: ReadonlyMap<string, string>, draft: Draft): void {
  const [provider = "", model = ""] = (readText(router, "default") ?? "").split(",");
  const name = channels.get(provider) ?? "";
  const channel = draft.channels[name];
  if (channel !== undefined && model !== "") {
    channel.aliases = { "claude-*": model };
    const [background = "", small = ""] = (readText(router, "background") ?? "").split(",");
    if (background === provider && small !== "") channel.aliases["claude-haiku-*"] = small;
    else if (background !== "")
      draft.lost.push("Router.background: another provider for some models of one group");
    for (const group of Object.values(draft.groups))
      if (group.channels.includes(name))
        group.channels.sort((a, b) => Number(b === name) - Number(a === name));
  } else if (provider !== "") draft.lost.push("Router.default: its provider has no counterpart");
  noteOthers(draft, router, ["default", "background"], "Router.");
}

/** An address of another provider, whose path says what it speaks. */
function readAddress(address: string) {
  const [, baseUrl = "", path = ""] = /^(https?:\/\/.+?)(?:\/v1)?\/(messages|responses)$/.exec(address) ?? [];
  return path === "messages" || path === "responses" ? ({ platform: path, baseUrl } as const) : null;
}

function hostOf(address: string): string {
  return URL.parse(address)?.host ?? "its address";
}
