// The config of claude-code-router: config.json. Its only client is Claude Code, so the group `claude` has the channel of
// the default route. The other providers get a channel and no group: nothing that it did not route there goes to them.

import { PLATFORMS } from "../../../config/schema.ts";
import { PLATFORM_ROWS } from "../../../dialects/platforms.ts";
import { getField } from "../../../lib/json/json.ts";
import {
  addChannel,
  addKey,
  addToGroup,
  describeChatServer,
  type Draft,
  type DraftChannel,
  findProvider,
  noteOthers,
  type Place,
  readAddress,
  readList,
  readText,
} from "./draft.ts";

export function readCcr(document: unknown, draft: Draft): void {
  const timeout = Number(getField(document, "API_TIMEOUT_MS") ?? Number.NaN);
  const proxy = readText(document, "PROXY_URL");
  const shared: Partial<DraftChannel> = {
    ...(proxy !== null && { proxy }),
    ...(Number.isInteger(timeout) && timeout > 0 && { timeouts: { first_byte: `${timeout}ms` } }),
  };
  const channels = new Map<string, string>();
  for (const provider of readList(document, "Providers")) addProvider(draft, provider, shared, channels);
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

/** `channels`: our names of channels by their names of providers. */
function addProvider(
  draft: Draft,
  provider: unknown,
  shared: Partial<DraftChannel>,
  channels: Map<string, string>,
): void {
  const name = readText(provider, "name") ?? "provider";
  const address = readAddress(provider, "api_base_url") ?? "";
  const place = findProvider(address, name) ?? describePlace(address, name);
  if (place === null) {
    const host = URL.parse(address)?.host ?? "its address";
    draft.lost.push(`Providers ${name}: what ${host} speaks is not known`);
    return;
  }
  const models = readList(provider, "models").filter((model) => typeof model === "string");
  const more = { ...shared, ...(models.length > 0 && { models }) };
  channels.set(name, addChannel(draft, { name, place, credential: getField(provider, "api_key"), more }));
  noteOthers(draft, provider, ["name", "api_base_url", "api_key", "models"], `Providers ${name}: `);
}

/** A route becomes an alias for all names that Claude Code asks for. */
function readRoutes(router: unknown, channels: ReadonlyMap<string, string>, draft: Draft): void {
  noteOthers(draft, router, ["default", "background"], "Router.");
  if (channels.size === 0) return;
  const route = readRoute(router, "default");
  const name = channels.get(route?.provider ?? "") ?? "";
  const channel = draft.channels[name];
  if (route === null || channel === undefined) {
    draft.lost.push(
      `Router.default: ${route === null ? "it is missing" : "its provider has no counterpart"}`,
    );
    return;
  }
  addToGroup(draft, "claude", name, "messages");
  channel.aliases = { "claude-*": route.model };
  const background = readRoute(router, "background");
  if (background?.provider === route.provider) channel.aliases["claude-haiku-*"] = background.model;
  else if (background !== null)
    draft.lost.push("Router.background: another provider. Its requests go where the default's go");
  const routed = Object.values(channel.aliases);
  if (channel.models !== undefined) channel.models = [...new Set([...channel.models, ...routed])];
}

/** `provider,model` */
function readRoute(router: unknown, name: string): { provider: string; model: string } | null {
  const [provider = "", model = ""] = (readText(router, name) ?? "").split(",");
  return provider === "" || model === "" ? null : { provider, model };
}

/** An address that no preset has, whose path says what it speaks. */
function describePlace(address: string, name: string): Place | null {
  const [, chat] = /^(.*\/v\d+\w*(?:\/openai)?)\/chat\/completions$/.exec(address) ?? [];
  if (chat !== undefined) return describeChatServer(chat, name);
  for (const platform of PLATFORMS) {
    const [path = ""] = PLATFORM_ROWS[platform].answerPaths;
    if (address.endsWith(path)) return { platform, baseUrl: address.slice(0, -path.length), kind: "key" };
  }
  return null;
}
