// Finds the gateway's address and a key for a tool.

import { hasUsdLimit } from "../../billing/limits/limits.ts";
import { isAllAt } from "../../billing/prices.ts";
import { PER_1K } from "../../billing/tariff.ts";
import type { Catalog, Channel, Group } from "../../config/catalog.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { DEFAULT_RELAY_PREFIX } from "../../config/schema.ts";
import { readHttpUrl } from "../../config/yaml/scalars.ts";
import { SEARCH_PRICE } from "../../dialects/meters/calls.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { type ConfigFlags, openConfigUnless } from "../access/config.ts";
import { type Address, findRunning, formatBaseUrl } from "../access/running.ts";
import { fail, readGiven, refuseUsage } from "../terminal/terminal.ts";
import { checkKeyFlags, chooseKey, type KeyFlags, readKeyFlags, type ToolKey } from "./key.ts";
import { describeModels, fetchModels, findNewestSmall, findPlatform } from "./models.ts";
import { type CacheLifetime, type Connection, mainMakerOf, type Tool } from "./tool.ts";

export interface ToolFlags extends ConfigFlags, KeyFlags {
  readonly cache?: CacheLifetime;
  readonly url?: string;
}

export interface ToolConnection {
  readonly tool: Tool;
  readonly connection: Connection;
  readonly key: ToolKey | null;
  readonly loaded: LoadedConfig | null;
}

export interface ConnectOptions {
  readonly label?: string;
  readonly onAbsent?: (loaded: LoadedConfig) => Promise<Address>;
  /** `plan`: a group whose plan would pay.
   *  Throws if the user says no. */
  readonly onMetered?: (plan: string | null) => Promise<void>;
}

export async function connect(
  tool: Tool,
  word: string | null,
  flags: ToolFlags,
  options: ConnectOptions,
): Promise<ToolConnection> {
  if (flags.cache !== undefined && tool.hasCaches !== true)
    refuseUsage(`--cache: ${tool.title} has no setting for the lifetime of its caches.`);
  const loaded = openConfigUnless(flags.url !== undefined, flags);
  const given = await readKeyFlags(word, flags, loaded?.catalog);
  const secret = given.secret ?? process.env["GATEWAY_KEY"] ?? "";
  const isKnown = loaded?.catalog.keysBySha256.has(sha256Hex(secret)) === true;
  const label = encodeLabel(options.label);
  if (loaded !== null && (flags.url === undefined || secret === "" || isKnown))
    return connectHere(tool, given, loaded, { ...options, label });
  await options.onMetered?.(null);
  return connectElsewhere(tool, given, label, secret);
}

/** In ASCII, because some tools send no other characters. */
function encodeLabel(label = ""): string | null {
  if (label === "") return null;
  return /^[\w .-]+$/.test(label) ? label : encodeURIComponent(label);
}

async function connectHere(
  tool: Tool,
  flags: ToolFlags,
  loaded: LoadedConfig,
  { label, onAbsent, onMetered }: Omit<ConnectOptions, "label"> & { readonly label: string | null },
): Promise<ToolConnection> {
  const { catalog, path } = loaded;
  const logins = [...catalog.groups.values()].filter(({ usesLogin }) => usesLogin);
  const plan = tool.login && logins.find(({ platform }) => tool.platforms.includes(platform));
  checkKeyFlags(flags, catalog);
  if (plan === undefined) await onMetered?.(null);
  const base = flags.url === undefined ? await findBase(loaded, onAbsent) : readUrl(flags.url);
  const agree = async ({ usesLogin }: Group): Promise<void> =>
    usesLogin ? undefined : onMetered?.(plan?.name ?? null);
  const key = await chooseKey(tool, flags, { catalog, path, agree });
  const target = {
    base,
    label,
    ...describeUpstream(key, catalog, flags),
  };
  const { isDirect } = target;
  const hasSmall = tool.smallModels !== undefined && isDirect;
  const isAsked = tool.needsModels === true || hasSmall || key.group.convert;
  const models = describeModels(tool, key.group, isAsked ? await fetchModels(target) : null, path);
  const smallModel = isDirect ? findNewestSmall(tool, key.group, models.models, path) : null;
  const ownModel = tool.findOwnModel?.(process.env) ?? null;
  return {
    tool,
    connection: { ...target, ...models, ownModel, smallModel },
    key,
    loaded,
  };
}

async function findBase(loaded: LoadedConfig, onAbsent: ConnectOptions["onAbsent"]): Promise<string> {
  const running = await findRunning(loaded.catalog.ledger.path);
  return formatBaseUrl(running?.address ?? (await onAbsent?.(loaded)) ?? loaded.catalog.listen);
}

function describeUpstream(key: ToolKey, catalog: Catalog, flags: ToolFlags) {
  const { channels, platform, cache, usesLogin } = key.group;
  const isDirect = isAllAt(key.group, mainMakerOf(platform));
  const needsPatience = channels.length > 0 && !(isDirect && channels.every(waitsAsUsual));
  return {
    relayPrefix: catalog.relayPrefix,
    platform,
    secret: key.secret,
    usesLogin,
    isDirect,
    ...(needsPatience && { patienceMs: findPatience(key.group, catalog) }),
    searchRefusal: explainSearchRefusal(key, catalog),
    websocket: channels.some(({ websocket }) => websocket),
    cache: flags.cache ?? cache,
    hasTraces: catalog.otlp !== null,
  };
}

/** A tool that waits less would send again. */
const MORE_PATIENCE_MS = 60_000;
const NO_LIMIT_MS = 86_400_000;

function waitsAsUsual({ timeouts }: Channel): boolean {
  const [firstByte = 0, idle = 0] = [timeouts.firstByteMs, timeouts.idleMs].map((ms) => ms || NO_LIMIT_MS);
  return firstByte <= 300_000 && idle <= 900_000;
}

function findPatience({ channels }: Group, { failover }: Catalog): number {
  const list = (name: "firstByteMs" | "idleMs"): number[] =>
    channels.map(({ timeouts }) => timeouts[name] || NO_LIMIT_MS).toSorted((a, b) => b - a);
  const tried = list("firstByteMs").slice(0, failover.attempts);
  const all = tried.reduce((sum, limit) => sum + limit, 0);
  const most = Math.min(all, failover.totalMs + Math.max(...tried));
  return Math.max(most, ...list("idleMs")) + MORE_PATIENCE_MS;
}

function explainSearchRefusal({ name, group }: ToolKey, { keys, prices }: Catalog): string | null {
  if (prices.get(SEARCH_PRICE)?.[`call${PER_1K}`] !== undefined) return null;
  const owners = [
    { holder: `the key "${name}"`, limits: keys.get(name)?.limits },
    { holder: `the group "${group.name}"`, limits: group.limits },
  ];
  const owner = owners.find(({ limits }) => limits && hasUsdLimit(limits) && !limits.allowUnpriced);
  if (owner === undefined) return null;
  const advice = `\`gateway prices set ${SEARCH_PRICE} call${PER_1K}=10\` sets one`;
  return `${owner.holder} has a limit in USD, and a search has no price. ${advice} (USD per 1,000).`;
}

async function connectElsewhere(
  tool: Tool,
  { url = "", cache, new: isNew }: ToolFlags,
  label: string | null,
  secret: string,
): Promise<ToolConnection> {
  if (secret === "" || isNew === true)
    return refuseUsage("Without a config file, give the key's secret with --secret or GATEWAY_KEY.");
  const place = {
    base: readUrl(url),
    relayPrefix: DEFAULT_RELAY_PREFIX,
    secret,
  };
  const platform = (await findPlatform(tool.platforms, place)) ?? fail(`${tool.title} has no platform.`);
  const listed = tool.needsModels === true ? await fetchModels({ ...place, platform }) : null;
  const models = listed?.map(({ id }) => id) ?? [];
  const ownModel = tool.findOwnModel?.(process.env) ?? null;
  const connection = {
    ...place,
    platform,
    label,
    cache: cache ?? null,
    models,
    ownModel,
  };
  return { tool, connection, key: null, loaded: null };
}

function readUrl(text: string): string {
  return readUrlFlag(text).href.replace(/\/+$/, "");
}

export function readUrlFlag(text: string): URL {
  return readGiven(() => readHttpUrl(text), "--url");
}
