// The config that an import makes, and what each import does alike: find a provider, store a credential, add a channel.

import { isLoopback } from "../../config/proxy.ts";
import {
  CHAT,
  type ChannelPlatform,
  CLIENT_LOGIN,
  CONVERTIBLE,
  groupPlatform,
  type Platform,
} from "../../config/schema.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { looksSecret, sha256Hex } from "../../lib/secret.ts";
import { nameVariable } from "../access/credential-place.ts";
import { LOCAL_TIMEOUTS, needsAddress, type Preset, PRESETS } from "./presets.ts";

export interface DraftChannel {
  readonly platform: ChannelPlatform;
  readonly base_url: string;
  /** A reference; absent: a server on this machine needs none. */
  readonly credential?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly proxy?: string;
  readonly free?: true;
  models?: string[];
  aliases?: Record<string, string>;
  timeouts?: { first_byte: string; idle?: string };
}

interface DraftGroup {
  readonly platform: Platform;
  readonly channels: string[];
  convert?: true;
}

export interface Draft {
  listen: { host?: string; port?: number };
  readonly channels: Record<string, DraftChannel>;
  readonly groups: Record<string, DraftGroup>;
  readonly keys: Array<{ readonly name: string; readonly group: string; readonly secret?: string }>;
  /** Credentials that the other config holds itself: they go into gateway.env. */
  readonly variables: Record<string, string>;
  /** Each setting without a counterpart, and why. */
  readonly lost: string[];
}

export function createDraft(): Draft {
  return { listen: {}, channels: {}, groups: {}, keys: [], variables: {}, lost: [] };
}

/** Only credentials and keys refer to variables: the other file decides which. All other text of it stays as it is. */
export function describeDraft({ listen, channels, groups, keys }: Draft): object {
  const escaped = Object.entries(channels).map(([name, { credential, headers, ...rest }]) => {
    const isBearer = headers?.["authorization"] === bearerOf(credential);
    const fields = headers === undefined ? {} : { headers: isBearer ? headers : escapeReferences(headers) };
    return [name, { ...escapeAll(rest), ...(credential !== undefined && { credential }), ...fields }];
  });
  const address = Object.keys(listen).length === 0 ? {} : { listen: escapeReferences(listen) };
  return { ...address, channels: Object.fromEntries(escaped), groups, keys };
}

function escapeReferences(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("${", () => "$${");
  if (Array.isArray(value)) return value.map(escapeReferences);
  return isObject(value) ? escapeAll(value) : value;
}

function escapeAll(values: object): object {
  return Object.fromEntries(Object.entries(values).map(([name, item]) => [name, escapeReferences(item)]));
}

const bearerOf = (credential: string | undefined) => `Bearer ${credential}`;

interface Upstream {
  readonly name: string;
  readonly place: Place;
  /** A reference, or a secret. */
  readonly credential: unknown;
  readonly more?: Partial<DraftChannel>;
}

export type Place = Pick<Preset, "platform" | "baseUrl" | "kind">;

/** Returns the channel's name in the config. It is in no group yet. */
export function addChannel(draft: Draft, { name: wanted, place, credential, more = {} }: Upstream): string {
  const word =
    wanted
      .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
      .replace(/^[^A-Za-z0-9]+/, "")
      .slice(0, 60) || "channel";
  const name = findFreeName(word, draft.channels);
  const { platform, baseUrl, kind } = place;
  const reference = storeCredential(draft, name, credential, place);
  const { proxy, ...settings } = more;
  draft.channels[name] = {
    platform,
    base_url: baseUrl,
    ...(reference !== null && { credential: reference }),
    ...(kind === "bearer" && reference !== null && { headers: { authorization: bearerOf(reference) } }),
    ...(kind === "local" && { free: true as const, timeouts: LOCAL_TIMEOUTS }),
    ...settings,
    // A prompt for this machine stays on it.
    ...(proxy !== undefined && !isLocal(baseUrl) && { proxy }),
  };
  return name;
}

/** The group's clients speak what the channel speaks, or `clients`. */
export function addToGroup(draft: Draft, group: string, channel: string, clients?: Platform): void {
  const { platform } = draft.channels[channel] ?? { platform: CHAT };
  const spoken = clients ?? groupPlatform(platform);
  const own = (draft.groups[group] ??= { platform: spoken, channels: [] });
  own.channels.push(channel);
  if (platform !== spoken && CONVERTIBLE.has(platform)) own.convert = true;
}

export function findFreeName(wanted: string, taken: Readonly<Record<string, unknown>>): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(name in taken)) return name;
  }
}

const REFERENCE = /^(?:os\.environ\/|\$)\{?([A-Za-z_]\w*)\}?$/;

/** `$NAME`, `${NAME}` and `os.environ/NAME` stay references. A secret goes into gateway.env. */
function storeCredential(draft: Draft, name: string, credential: unknown, place: Place): string | null {
  const given = typeof credential === "string" ? credential.trim() : "";
  // Nobody's secret: here it would mean the client's own login.
  const text = given === CLIENT_LOGIN ? "" : given;
  const [, reference] = REFERENCE.exec(text) ?? [];
  if (reference !== undefined) return `\${${reference}}`;
  if (text === "" && isLocal(place.baseUrl)) return null;
  const own = nameVariable(name);
  // What a shell exports comes before gateway.env.
  const variable = (process.env[own] ?? "") === "" ? own : `GATEWAY_${own}`;
  if (text !== "") draft.variables[variable] = text;
  return `\${${variable}}`;
}

/** A key of the clients: they need not notice the move. Only its hash is written. */
export function addKey(draft: Draft, name: string, secret: unknown, setting: string): void {
  const [group, ...others] = Object.keys(draft.groups);
  if (typeof secret !== "string" || secret === "") return;
  if (group === undefined) {
    draft.lost.push(`${setting}: there is no group to bind this key to`);
    return;
  }
  const [, reference] = REFERENCE.exec(secret) ?? [];
  const own = reference === undefined ? { secret_sha256: sha256Hex(secret) } : { secret: `\${${reference}}` };
  draft.keys.push({ name, group, ...own });
  if (others.length > 0)
    draft.lost.push(
      `${setting}: one key for all platforms. It is bound to the group ${group}; \`gateway keys add\` makes one for ${others.join(" and ")}`,
    );
}

/** This machine, as others write it, also from within a container. Local servers often listen on 127.0.0.1 alone. */
const HERE = /^(https?:\/\/)(?:localhost|0\.0\.0\.0|host\.docker\.internal)(?=[:/]|$)/i;

/** An address as the config has it. */
export function readAddress(value: unknown, name: string): string | null {
  return readText(value, name)?.replace(HERE, "$1127.0.0.1") ?? null;
}

/** By its address, or by the name that other gateways give it. */
export function findProvider(address: string | null, name: string): Preset | null {
  const host = address === null ? null : (URL.parse(address)?.host ?? null);
  return (
    KNOWN.find(({ baseUrl }) => host !== null && new URL(baseUrl).host === host) ??
    (address === null ? findNamed(name) : null)
  );
}

const KNOWN = PRESETS.filter((preset) => !needsAddress(preset));

function findNamed(name: string): Preset | null {
  return KNOWN.find(({ id }) => id === (NAMES[name] ?? name)) ?? null;
}

const NAMES: Readonly<Record<string, string>> = {
  gemini: "google",
  hosted_vllm: "vllm",
  ollama_chat: "ollama",
  lm_studio: "lmstudio",
  llamafile: "llamacpp",
  together_ai: "together",
};

/** A server of Chat Completions that no preset has at this address. One on this machine costs nothing, if its name is that
 *  of a local server. */
export function describeChatServer(baseUrl: string, name: string): Place {
  const isOwn = isLocal(baseUrl) && findNamed(name)?.kind === "local";
  return { platform: CHAT, baseUrl, kind: isOwn ? "local" : "key" };
}

function isLocal(address: string): boolean {
  return isLoopback(URL.parse(address)?.hostname ?? "");
}

export function readText(value: unknown, name: string): string | null {
  const text = getField(value, name);
  return typeof text === "string" && text !== "" ? text : null;
}

export function readList(value: unknown, name: string): unknown[] {
  const list = getField(value, name);
  return Array.isArray(list) ? list : [];
}

/** Names what the document has and nothing reads. A name may be a secret in the wrong place. */
export function noteOthers(draft: Draft, value: unknown, known: readonly string[], place = ""): void {
  const names = Object.keys(isObject(value) ? value : {}).filter((name) => !known.includes(name));
  draft.lost.push(...names.map((name) => `${place}${looksSecret(name) ? "…" : name}`));
}
