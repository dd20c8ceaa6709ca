// The config that an import makes, and what each import does alike: find a provider, store a credential, add a channel
// to the group of its platform.

import { type ChannelPlatform, groupPlatform, type Platform } from "../../../config/schema.ts";
import { getField, isObject } from "../../../lib/json/json.ts";
import { looksSecret, sha256Hex } from "../../../lib/secret.ts";
import { nameVariable } from "../../access/credential-place.ts";
import { needsAddress, type Preset, PRESETS } from "../presets.ts";

export interface DraftChannel {
  readonly platform: ChannelPlatform;
  readonly base_url: string;
  readonly credential: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly proxy?: string;
  readonly free?: true;
  readonly weight?: string;
  models?: string[];
  aliases?: Record<string, string>;
  timeouts?: { first_byte: string };
}

interface DraftGroup {
  readonly platform: Platform;
  readonly channels: string[];
  convert?: true;
  default_model?: string;
}

export interface Draft {
  listen: { host?: string; port?: number };
  readonly channels: Record<string, DraftChannel>;
  readonly groups: Record<string, DraftGroup>;
  readonly keys: object[];
  /** Credentials that the other config holds itself: they go into gateway.env. */
  readonly variables: Record<string, string>;
  /** What has no counterpart: a setting, and why. */
  readonly lost: string[];
}

export function createDraft(): Draft {
  return { listen: {}, channels: {}, groups: {}, keys: [], variables: {}, lost: [] };
}

export function describeDraft({ listen, channels, groups, keys }: Draft): object {
  const address = Object.keys(listen).length === 0 ? {} : { listen };
  return { ...address, channels, groups, keys };
}

interface Upstream {
  readonly name: string;
  readonly preset: Pick<Preset, "platform" | "baseUrl" | "bearer" | "local">;
  /** A reference, or a secret. */
  readonly credential: unknown;
  /** What the clients of its group speak; absent: what the channel speaks. */
  readonly clients?: Platform;
  readonly more?: Partial<DraftChannel>;
}

/** Returns the channel's name in the config. */
export function addChannel(draft: Draft, upstream: Upstream): string {
  const { name: wanted, preset, credential, more = {} } = upstream;
  const name = findFreeName(
    wanted.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^\W+/, "") || "channel",
    draft,
  );
  const { platform, baseUrl, bearer, local } = preset;
  const reference = storeCredential(draft, name, credential ?? local?.credential);
  draft.channels[name] = {
    platform,
    base_url: baseUrl,
    credential: reference,
    ...(bearer === true && { headers: { authorization: `Bearer ${reference}` } }),
    ...(local !== undefined && { free: true as const }),
    ...more,
  };
  const own = groupPlatform(platform);
  const clients = upstream.clients ?? own;
  // The group of the platform's first provider.
  const found = PRESETS.find((each) => each.platform === clients)?.group ?? clients;
  const group = (draft.groups[found] ??= { platform: clients, channels: [] });
  group.channels.push(name);
  if (clients !== own) group.convert = true;
  return name;
}

function findFreeName(wanted: string, { channels }: Draft): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(name in channels)) return name;
  }
}

const REFERENCE = /^(?:os\.environ\/|\$)\{?([A-Za-z_]\w*)\}?$/;

/** `$NAME`, `${NAME}` and `os.environ/NAME` stay references. A secret goes into gateway.env. */
function storeCredential(draft: Draft, name: string, credential: unknown): string {
  const text = typeof credential === "string" ? credential.trim() : "";
  const [, reference] = REFERENCE.exec(text) ?? [];
  if (reference !== undefined) return `\${${reference}}`;
  const own = nameVariable(name);
  // What a shell exports comes before gateway.env.
  const variable = (process.env[own] ?? "") === "" ? own : `GATEWAY_${own}`;
  if (text !== "") draft.variables[variable] = text;
  return `\${${variable}}`;
}

/** A key of the clients: they need not notice the move. Only its hash is written. */
export function addKey(draft: Draft, name: string, secret: unknown, place: string): void {
  const [group, ...others] = Object.keys(draft.groups);
  if (typeof secret !== "string" || secret === "" || group === undefined) return;
  const [, reference] = REFERENCE.exec(secret) ?? [];
  const own = reference === undefined ? { secret_sha256: sha256Hex(secret) } : { secret: `\${${reference}}` };
  draft.keys.push({ name, group, ...own });
  if (others.length > 0)
    draft.lost.push(
      `${place}: one key for all platforms. It is bound to the group ${group}; \`gateway keys add\` makes one for ${others.join(" and ")}`,
    );
}

/** By its address, or by the name that other gateways give it. */
export function findProvider(address: string | null, name: string): Preset | null {
  const host = address === null ? null : (URL.parse(address)?.host ?? null);
  const known = PRESETS.filter((each) => !needsAddress(each));
  return (
    known.find(({ baseUrl }) => host !== null && new URL(baseUrl).host === host) ??
    (address === null ? (known.find(({ id }) => id === (NAMES[name] ?? name)) ?? null) : null)
  );
}

const NAMES: Readonly<Record<string, string>> = {
  gemini: "google",
  ollama_chat: "ollama",
  lm_studio: "lmstudio",
  together_ai: "together",
};

/** A server of Chat Completions that no preset knows. */
export function describeChatServer(baseUrl: string): Upstream["preset"] {
  return { platform: "chat", baseUrl };
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
