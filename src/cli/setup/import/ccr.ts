// The config of claude-code-router: config.json. A route becomes an alias for all names that Claude Code asks for.

import { PLATFORMS } from "../../../config/schema.ts";
import { PLATFORM_ROWS } from "../../../dialects/platforms.ts";
import { getField } from "../../../lib/json/json.ts";
import {
  addChannel,
  addKey,
  describeChatServer,
  type Draft,
  findProvider,
  noteOthers,
  readList,
  readText,
} from "./draft.ts";
import type { Preset } from "../presets.ts";

export function readCcr(document: unknown, draft: Draft): void {
  const proxy = readText(document, "PROXY_URL");
  const timeout = Number(getField(document, "API_TIMEOUT_MS") ?? Number.NaN);
  const channels = new Map<string, string>();
  for (const provider of readList(document, "Providers")) {
    const name = readText(provider, "name") ?? "provider";
    const address = readText(provider, "api_base_url") ?? "";
    const preset = findProvider(address, name) ?? readAddress(address);
    if (preset === null) {
      draft.lost.push(`Providers ${name}: what ${hostOf(address)} speaks is not known`);
      continue;
    }
    const more = {
      ...(proxy !== null && { proxy }),
      ...(Number.isInteger(timeout) && { timeouts: { first_byte: `${timeout}ms` } }),
    };
    const credential = getField(provider, "api_key");
    // Its only client is Claude Code.
    channels.set(name, addChannel(draft, { name, preset, credential, clients: "messages", more }));
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
  noteOthers(draft, router, ["default", "background"], "Router.");
  const route = readRoute(router, "default");
  if (route === null) return;
  const name = channels.get(route.provider) ?? "";
  const channel = draft.channels[name];
  if (channel === undefined) {
    draft.lost.push("Router.default: its provider has no counterpart");
    return;
  }
  channel.aliases = { "claude-*": route.model };
  const background = readRoute(router, "background");
  if (background?.provider === route.provider) channel.aliases["claude-haiku-*"] = background.model;
  else if (background !== null)
    draft.lost.push("Router.background: another provider for some models of one group");
  // The channel of the default route comes first.
  for (const { channels: listed } of Object.values(draft.groups))
    if (listed.includes(name)) listed.sort((a, b) => Number(b === name) - Number(a === name));
}

/** `provider,model` */
function readRoute(router: unknown, name: string): { provider: string; model: string } | null {
  const [provider = "", model = ""] = (readText(router, name) ?? "").split(",");
  return provider === "" || model === "" ? null : { provider, model };
}

/** An address of another provider, whose path says what it speaks. */
function readAddress(address: string): Pick<Preset, "platform" | "baseUrl"> | null {
  const [, chat] = /^(.*\/v\d+\w*(?:\/openai)?)\/chat\/completions$/.exec(address) ?? [];
  if (chat !== undefined) return describeChatServer(chat);
  for (const platform of PLATFORMS) {
    const [path = ""] = PLATFORM_ROWS[platform].answerPaths;
    if (address.endsWith(path)) return { platform, baseUrl: address.slice(0, -path.length) };
  }
  return null;
}

function hostOf(address: string): string {
  return URL.parse(address)?.host ?? "its address";
}
