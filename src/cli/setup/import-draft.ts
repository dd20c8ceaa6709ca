// What `gateway import` makes of another gateway's config.

import { isLoopback } from "../../config/proxy.ts";
import {
  CHAT,
  type ChannelPlatform,
  CLIENT_LOGIN,
  groupPlatform,
  type Platform,
  PLATFORM_FACTS,
  PLATFORMS,
} from "../../config/schema.ts";
import { readBaseUrl } from "../../config/yaml/scalars.ts";
import { PLATFORM_ROWS } from "../../dialects/platforms.ts";
import { getField, getList, getText, isObject } from "../../lib/json/json.ts";
import { looksSecret, sha256Hex } from "../../lib/secret.ts";
import { chooseVariable, findFreeName } from "../access/credential-place.ts";
import { LOCAL_TIMEOUTS, needsAddress, type Preset, PRESETS } from "../channels/provider.ts";

interface DraftChannel {
  readonly platform: ChannelPlatform;
  readonly base_url: string;
  readonly credential?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly proxy?: string;
  readonly free?: true;
  models?: readonly string[];
  aliases?: Record<string, string>;
  timeouts?: { readonly first_byte: string; readonly idle?: string };
}

interface DraftGroup {
  readonly platform: Platform;
  readonly channels: string[];
  convert?: true;
}

type Place = Pick<Preset, "platform" | "baseUrl" | "kind"> & Partial<Pick<Preset, "channel" | "group">>;

const REFERENCE = /^(?:os\.environ\/|\$)\{?([A-Za-z_]\w*)\}?$/;
/** Names of this machine. Its servers often listen on 127.0.0.1 only. */
const HERE = /^(https?:\/\/)(?:localhost|0\.0\.0\.0|host\.docker\.internal)(?=[:/]|$)/i;

/** Only credentials and keys may refer to variables. */
function escapeReferences(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("${", () => "$${");
  if (Array.isArray(value)) return value.map(escapeReferences);
  if (!isObject(value)) return value;
  const all = Object.entries(value).map(([name, item]) => [name, escapeReferences(item)]);
  return Object.fromEntries(all);
}

export class Draft {
  readonly channels: Record<string, DraftChannel> = {};
  readonly groups: Record<string, DraftGroup> = {};
  readonly keys: Array<{ readonly name: string; readonly group: string; readonly secret?: string }> = [];
  readonly listen: { host?: string; port?: number } = {};
  readonly variables: Record<string, string> = {};
  readonly lost: string[] = [];
  readonly #given = new Set<string>();
  readonly #configPath: string;

  constructor(configPath: string) {
    this.#configPath = configPath;
  }

  describe(): object {
    const { listen, groups, keys } = this;
    const channels = Object.entries(this.channels).map(([name, { credential, headers, ...rest }]) => {
      const own = { ...(credential !== undefined && { credential }), ...(headers && { headers }) };
      return [name, { ...Object(escapeReferences(rest)), ...own }];
    });
    const all = {
      channels: Object.fromEntries(channels),
      groups,
      keys,
    };
    return Object.keys(listen).length === 0 ? all : { listen: escapeReferences(listen), ...all };
  }

  addChannel(wanted: string, { platform, baseUrl, kind }: Place, credential: unknown): string {
    const word = wanted.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
    const name = findFreeName(word.slice(0, 60) || "channel", (each) => each in this.channels);
    const reference = this.#storeCredential(name, getText(credential).trim(), baseUrl);
    this.channels[name] = {
      platform,
      base_url: baseUrl,
      ...(reference !== null && { credential: reference }),
      ...(kind === "bearer" && { headers: { authorization: `Bearer ${reference}` } }),
      ...(kind === "local" && { free: true, timeouts: LOCAL_TIMEOUTS }),
    };
    return name;
  }

  change(name: string, settings: Partial<DraftChannel>): void {
    const channel = this.channels[name];
    if (channel !== undefined) this.channels[name] = { ...channel, ...settings };
  }

  /** Uses a new variable: an existing one may belong to another address. */
  #storeCredential(name: string, given: string, baseUrl: string): string | null {
    // In our config, this word would mean the client's own login.
    const secret = given === CLIENT_LOGIN ? "" : given;
    const [, reference] = REFERENCE.exec(secret) ?? [];
    if (reference !== undefined) return `\${${reference}}`;
    if (secret === "" && isLocal(baseUrl)) return null;
    const own = chooseVariable(this.#configPath, name, this.#given);
    this.#given.add(own);
    if (secret.includes(" ")) this.lost.push(`the credential of the channel ${name}: it has a blank in it`);
    else if (secret !== "") this.variables[own] = secret;
    return `\${${own}}`;
  }

  addToGroup(group: string, channel: string, clients?: Platform): void {
    const platform = this.channels[channel]?.platform ?? CHAT;
    const spoken = clients ?? groupPlatform(platform);
    const own = (this.groups[group] ??= { platform: spoken, channels: [] });
    own.channels.push(channel);
    if (platform !== spoken && PLATFORM_FACTS[platform].converts === true) own.convert = true;
  }

  addKey(name: string, given: unknown, setting: string): void {
    const [group, ...others] = Object.keys(this.groups);
    const secret = getText(given);
    if (secret === "") return;
    if (group === undefined) return void this.lost.push(`${setting}: there is no group to bind this key to`);
    const [, reference] = REFERENCE.exec(secret) ?? [];
    const hash = { secret_sha256: sha256Hex(secret) };
    this.keys.push({
      name,
      group,
      ...(reference === undefined ? hash : { secret: `\${${reference}}` }),
    });
    if (others.length > 0)
      this.lost.push(`${setting}: bound to the group ${group} only, not to ${others.join(" and ")}`);
  }

  /** A name that may be a misplaced secret is not shown. */
  loseOthers(value: unknown, known: string, place = ""): void {
    const all = new Set(Object.keys(isObject(value) ? value : {}));
    for (const name of all.difference(new Set(known.split(" "))))
      this.lost.push(`${place}${looksSecret(name) ? "…" : name}`);
  }
}

function isLocal(address: string): boolean {
  return isLoopback(URL.parse(address)?.hostname ?? "");
}

function readAddress(value: unknown): string {
  return getText(value).replace(HERE, "$1127.0.0.1");
}

const KNOWN = PRESETS.filter((preset) => !needsAddress(preset));
const NAMES: Readonly<Record<string, string>> = {
  gemini: "google",
  hosted_vllm: "vllm",
  ollama_chat: "ollama",
  lm_studio: "lmstudio",
  llamafile: "llamacpp",
  together_ai: "together",
};

function findNamed(name: string): Preset | null {
  return KNOWN.find(({ id }) => id === (NAMES[name] ?? name)) ?? null;
}

function findByHost(address: string): Preset | null {
  const host = URL.parse(address)?.host;
  return KNOWN.find(({ baseUrl }) => new URL(baseUrl).host === host) ?? null;
}

function describeChatServer(baseUrl: string, name: string): Place {
  const isOwn = isLocal(baseUrl) && findNamed(name)?.kind === "local";
  return { platform: CHAT, baseUrl, kind: isOwn ? "local" : "key" };
}

function describePlace(address: string, name: string): Place | null {
  const [, chat] = /^(.*\/v\d+\w*(?:\/openai)?)\/chat\/completions$/.exec(address) ?? [];
  if (chat !== undefined) return describeChatServer(chat, name);
  for (const platform of PLATFORMS) {
    const [path = ""] = PLATFORM_ROWS[platform].answerPaths;
    if (address.endsWith(path))
      return {
        platform,
        baseUrl: address.slice(0, -path.length),
        kind: "key",
      };
  }
  return null;
}

function requireUsable(place: Place | null): Place | null {
  try {
    return place && readBaseUrl(place.baseUrl) && place;
  } catch {
    return null;
  }
}

/** Only the default route's channel gets a group,
 *  so that no other provider gets a prompt. */
export function readCcr(document: unknown, draft: Draft): void {
  const channels = new Map<string, string>();
  for (const provider of getList(getField(document, "Providers")))
    addProvider(provider, document, channels, draft);
  readRoutes(getField(document, "Router"), channels, draft);
  const [host, port] = [getText(getField(document, "HOST")), getField(document, "PORT")];
  if (host !== "") draft.listen.host = host;
  if (Number.isInteger(port)) draft.listen.port = Number(port);
  draft.addKey("ccr", getField(document, "APIKEY"), "APIKEY");
  draft.loseOthers(document, "Providers Router APIKEY HOST PORT PROXY_URL API_TIMEOUT_MS");
}

function addProvider(
  provider: unknown,
  document: unknown,
  channels: Map<string, string>,
  draft: Draft,
): void {
  const name = getText(getField(provider, "name")) || "provider";
  const address = readAddress(getField(provider, "api_base_url"));
  const place = requireUsable(findByHost(address) ?? describePlace(address, name));
  if (place === null) return void draft.lost.push(`Providers ${name}: what it speaks is not known`);
  const [proxy, timeout] = ["PROXY_URL", "API_TIMEOUT_MS"].map((each) => getField(document, each));
  const models = getList(getField(provider, "models")).filter((model) => typeof model === "string");
  const channel = draft.addChannel(name, place, getField(provider, "api_key"));
  channels.set(name, channel);
  draft.change(channel, {
    ...(Number(timeout) > 0 && { timeouts: { first_byte: `${Number(timeout)}ms` } }),
    ...(models.length > 0 && { models }),
    // A prompt for this machine stays on it, without the proxy.
    ...(getText(proxy) !== "" && !isLocal(place.baseUrl) && { proxy: getText(proxy) }),
  });
  draft.loseOthers(provider, "name api_base_url api_key models", `Providers ${name}: `);
}

function readRoutes(router: unknown, channels: ReadonlyMap<string, string>, draft: Draft): void {
  draft.loseOthers(router, "default background", "Router.");
  if (channels.size === 0) return;
  const [main, small] = [readRoute(router, "default"), readRoute(router, "background")];
  const name = channels.get(main?.provider ?? "");
  if (main === null || name === undefined)
    return void draft.lost.push("Router.default: it names no provider that was imported");
  draft.addToGroup("claude", name, "messages");
  const isSame = small?.provider === main.provider;
  const aliases = { "claude-*": main.model, ...(isSame && { "claude-haiku-*": small.model }) };
  if (small !== null && !isSame)
    draft.lost.push("Router.background: it names another provider. Background requests go to Router.default");
  const models = draft.channels[name]?.models;
  const all = models && { models: [...new Set([...models, ...Object.values(aliases)])] };
  draft.change(name, { aliases, ...all });
}

function readRoute(router: unknown, name: string): { provider: string; model: string } | null {
  const [provider = "", model = ""] = getText(getField(router, name)).split(",");
  return provider === "" || model === "" ? null : { provider, model };
}

const CHAT_SERVERS =
  /^(?:openai|openai_like|custom_openai|hosted_vllm|vllm|ollama|ollama_chat|lm_studio|llamafile)$/;

/** Each provider has its own group, so
 *  that failover sends no prompt to another provider. */
export function readLitellm(document: unknown, draft: Draft): void {
  const channels = new Map<string, string>();
  const groups = new Map<string, string>();
  for (const entry of getList(getField(document, "model_list"))) {
    const wanted = getText(getField(entry, "model_name"));
    const params = getField(entry, "litellm_params");
    const [provider = "", ...rest] = getText(getField(params, "model")).split("/");
    const model = rest.join("/");
    const address = readAddress(getField(params, "api_base"));
    const place = model === "" ? null : requireUsable(findPlace(address, provider));
    if (place === null) {
      draft.lost.push(`model_list ${wanted}: its provider or address cannot be used`);
      continue;
    }
    const seller = `${place.platform} ${place.baseUrl}`;
    const credential = getField(params, "api_key");
    const name = channels.getOrInsertComputed(JSON.stringify([seller, credential]), () => {
      const added = draft.addChannel(place.channel ?? provider, place, credential);
      const group = groups.getOrInsertComputed(seller, () =>
        findFreeName(place.group ?? added, (each) => each in draft.groups),
      );
      draft.addToGroup(group, added);
      return added;
    });
    addModel(draft, name, wanted, model);
    draft.loseOthers(params, "model api_key api_base", `model_list ${wanted}: `);
  }
  const general = getField(document, "general_settings");
  draft.addKey("master", getField(general, "master_key"), "general_settings.master_key");
  draft.loseOthers(general, "master_key", "general_settings.");
  draft.loseOthers(document, "model_list general_settings");
}

function findPlace(address: string, provider: string): Place | null {
  const preset = address === "" ? findNamed(provider) : findByHost(address);
  const speaksMessages = provider === "anthropic";
  if (preset !== null && !(speaksMessages && preset.platform !== "messages")) return preset;
  const url = URL.parse(address);
  if (url === null) return null;
  const channel = url.hostname;
  if (speaksMessages) {
    const baseUrl = address.replace(/\/v1\/messages\/?$/, "");
    return {
      platform: "messages",
      baseUrl,
      kind: "key",
      channel,
      group: "claude",
    };
  }
  if (!CHAT_SERVERS.test(provider)) return null;
  // LiteLLM uses Ollama's own API. Chat Completions are below /v1.
  const baseUrl = provider.startsWith("ollama") && url.pathname === "/" ? `${url.origin}/v1` : address;
  return { ...describeChatServer(baseUrl, provider), channel };
}

function addModel(draft: Draft, name: string, wanted: string, model: string): void {
  const { models = [], aliases } = draft.channels[name] ?? {};
  if (wanted === "") return;
  if (model.includes("*") && wanted.includes("/")) {
    draft.lost.push(`model_list ${wanted}: a prefix for many models. Clients name them without it`);
    return draft.change(name, { models: ["*"] });
  }
  const isAlias = model !== wanted && !model.includes("*");
  const all = [...new Set([...models, isAlias ? model : wanted])];
  draft.change(name, { models: all, ...(isAlias && { aliases: { ...aliases, [wanted]: model } }) });
}
