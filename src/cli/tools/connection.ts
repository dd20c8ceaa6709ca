// From the words and flags of `gateway env` and `gateway run` to the tool, the gateway's address and a key.

import type { Catalog, Group } from "../../config/catalog.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { readHttpUrl } from "../../config/yaml/scalars.ts";
import { DEFAULT_RELAY_PREFIX } from "../../config/schema.ts";
import { refusesUnpriced } from "../../billing/limits/limits.ts";
import { isAllAt } from "../../billing/prices.ts";
import { PER_1K } from "../../billing/tariff.ts";
import { SEARCH_PRICE } from "../../dialects/meters/calls.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { type Address, findRunning, formatBaseUrl } from "../access/running.ts";
import { describeModels, findNewestSmall } from "./foreign.ts";
import { fetchModels, findPlatform } from "./model-names.ts";
import { chooseKey, type ToolKey, type KeyFlags } from "./key-secret.ts";
import { refuseUnknown } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfigUnless } from "../access/config.ts";
import { askSecret, canPrompt, fail, readAll, readGiven, refuseUsage } from "../terminal/terminal.ts";
import { APPS } from "./programs/apps.ts";
import { type CacheLifetime, type Connection, mainMakerOf, type Tool } from "./programs/tool.ts";
import { TOOLS } from "./programs/tools.ts";

export interface ToolFlags extends ConfigFlags, KeyFlags {
  readonly cache?: CacheLifetime;
  readonly url?: string;
}

export interface ToolConnection {
  readonly tool: Tool;
  readonly connection: Connection;
  /** Null for a gateway elsewhere, whose keys are not known here. */
  readonly key: ToolKey | null;
  /** Null for a gateway elsewhere. */
  readonly loaded: LoadedConfig | null;
}

export function findTool(name: string): Tool {
  if (APPS.has(name))
    refuseUsage(`\`gateway env ${name}\` prints what to enter in ${APPS.get(name)?.title}.`);
  const known = [...TOOLS.keys()];
  return (
    TOOLS.get(name) ??
    refuseUsage(`There is no tool "${name}"${suggestNearest(name, known)}. Known: ${known.join(", ")}.`)
  );
}

/** `claude`, `claude laptop` or `laptop claude`. A secret may replace the key's name. */
export function splitWords(words: readonly string[]): { tool: Tool; key: string | null } {
  const [first = "", second] = words;
  if (second === undefined) return { tool: findTool(first), key: null };
  const swapped = TOOLS.get(second);
  return swapped === undefined ? { tool: findTool(first), key: second } : { tool: swapped, key: first };
}

export interface ConnectOptions {
  /** Whether a tool without a key gets one of its own. */
  readonly owns: boolean;
  /** What the tool's requests belong to. */
  readonly label?: string;
  /** Called when no gateway with this config answers. Returns the address of one that it has started, or null. */
  readonly onAbsent?: (loaded: LoadedConfig) => Promise<Address | null>;
  /** Called unless a plan pays, before anything else happens if that is known. Throws if the user does not want it. */
  readonly onMetered?: () => Promise<void>;
}

export async function connect(
  tool: Tool,
  word: string | null,
  flags: ToolFlags,
  { owns, label, onAbsent, onMetered }: ConnectOptions,
): Promise<ToolConnection> {
  requireCacheSetting(tool, flags);
  const ascii = encodeLabel(label);
  // An address and a secret are enough without a config.
  const loaded = openConfigUnless(flags.url !== undefined, flags);
  const metered = askInTime(tool, loaded, onMetered);
  await metered.before();
  const given = await readSecretFromStdin(readWord(word, flags, loaded?.catalog));
  if (loaded === null) return connectElsewhere(tool, given, ascii);
  const { catalog, path } = loaded;
  if (flags.url !== undefined && !isKnown(given, catalog)) return connectElsewhere(tool, given, ascii);
  const address = flags.url === undefined ? await findOrStart(loaded, onAbsent) : null;
  const base = readUrl(flags.url) ?? formatBaseUrl(address ?? catalog.listen);
  const key = await chooseKey(tool, given, { catalog, path, now: new Date(), owns, agree: metered.after });
  await metered.after(key.group);
  const target = {
    base,
    relayPrefix: catalog.relayPrefix,
    platform: key.group.platform,
    secret: key.secret,
    label: ascii,
    usesLogin: key.group.usesLogin,
    ...describeUpstream(key, catalog, flags),
  };
  const connection = { ...target, ...(await describeKnownModels(tool, key.group, target, path)) };
  return { tool, connection, key, loaded };
}

async function describeKnownModels(
  tool: Tool,
  group: Group,
  target: Omit<Connection, "models">,
  configPath: string,
) {
  const { isDirect = false } = target;
  const isSmallNamed = tool.smallModels !== undefined && isDirect;
  const isAsked = tool.needsModels === true || isSmallNamed || group.convert;
  const models = describeModels(tool, group, isAsked ? await fetchModels(target) : null, configPath);
  const smallModel = isDirect ? findNewestSmall(tool, group, models.models, configPath) : null;
  return { ...models, ...findOwnModel(tool), smallModel };
}

function requireCacheSetting({ title, cacheVariables }: Tool, { cache }: ToolFlags): void {
  if (cache !== undefined && cacheVariables === undefined)
    refuseUsage(`--cache: ${title} has no setting for the lifetime of its caches.`);
}

function findOwnModel(tool: Tool): Pick<Connection, "ownModel"> {
  return { ownModel: tool.findOwnModel?.(process.env) ?? null };
}

function describeUpstream(key: ToolKey, catalog: Catalog, flags: ToolFlags) {
  const { channels, platform, cache } = key.group;
  const isDirect = isAllAt(key.group, mainMakerOf(platform));
  return {
    isDirect,
    ...(!isDirect && { patienceMs: findPatience(key.group) }),
    searchRefusal: explainSearchRefusal(key, catalog),
    websocket: channels.some(({ websocket }) => websocket),
    cache: flags.cache ?? cache,
    hasTraces: catalog.otlp !== null,
  };
}

/** An answer ends by the gateway's own limit, which says why, and not by the tool's, which would ask again. */
const MORE_PATIENCE_MS = 60_000;
const NO_LIMIT_MS = 86_400_000;

function findPatience({ channels }: Group): number {
  const limits = channels.flatMap(({ timeouts: { firstByteMs, idleMs } }) => [firstByteMs, idleMs]);
  return Math.max(...limits.map((limit) => (limit === 0 ? NO_LIMIT_MS : limit)), 0) + MORE_PATIENCE_MS;
}

/** Where a group passes on the tool's login, the choice of the key decides whether there is something to ask. */
function askInTime(tool: Tool, loaded: LoadedConfig | null, ask: ConnectOptions["onMetered"]) {
  const groups = [...(loaded?.catalog.groups.values() ?? [])];
  const isLater =
    tool.login !== undefined &&
    groups.some(({ usesLogin, platform }) => usesLogin && tool.platforms.includes(platform));
  return {
    before: async () => (isLater ? undefined : ask?.()),
    after: async ({ usesLogin }: Group) => (isLater && !usesLogin ? ask?.() : undefined),
  };
}

/** A search has no price but the owner's, and a limit in USD refuses what has none. */
function explainSearchRefusal({ name, group }: ToolKey, { keys, prices }: Catalog): string | null {
  if (prices.get(SEARCH_PRICE)?.[`call${PER_1K}`] !== undefined) return null;
  const owners = [
    { holder: `the key "${name}"`, limits: keys.get(name)?.limits },
    { holder: `the group "${group.name}"`, limits: group.limits },
  ];
  const owner = owners.find(({ limits }) => limits !== undefined && refusesUnpriced(limits));
  if (owner === undefined) return null;
  return `${owner.holder} has a limit in USD, and a search of Codex has no price. \`gateway prices set ${SEARCH_PRICE} call${PER_1K}=10\` sets one (USD for 1,000 searches).`;
}

/** Tools separate header fields by commas or line breaks, and not every tool sends other characters. The gateway decodes
 *  it. */
function encodeLabel(label = ""): string | null {
  if (label === "") return null;
  return /^[\w .-]+$/.test(label) ? label : encodeURIComponent(label);
}

async function findOrStart(
  loaded: LoadedConfig,
  onAbsent: ConnectOptions["onAbsent"],
): Promise<Address | null> {
  const running = await findRunning(loaded.catalog.ledger.path);
  // Without an answer, the config's address is the best guess.
  return running?.address ?? (await onAbsent?.(loaded)) ?? null;
}

function readWord(word: string | null, flags: ToolFlags, catalog: Catalog | undefined): ToolFlags {
  if (word === null) return flags;
  if (catalog?.keys.has(word) === true) {
    if (flags.key !== undefined && flags.key !== word) refuseUsage(`--key and "${word}" are different keys.`);
    return { ...flags, key: word };
  }
  if (!word.startsWith("sk-") && catalog?.keysBySha256.has(sha256Hex(word)) !== true) {
    return refuseUnknown("key", word, catalog?.keys ?? new Map());
  }
  if (flags.secret !== undefined) refuseUsage("The secret is given twice: as an argument and with --secret.");
  return { ...flags, secret: word };
}

/** `--secret -` reads stdin, because every process of the machine can see the arguments. */
async function readSecretFromStdin(flags: ToolFlags): Promise<ToolFlags> {
  if (flags.secret !== "-") return flags;
  const text = canPrompt() ? await askSecret({ message: "The key's secret" }) : (await readAll()).trim();
  return text === "" ? refuseUsage("--secret -: stdin is empty.") : { ...flags, secret: text };
}

function isKnown({ secret }: ToolFlags, { keysBySha256 }: Catalog): boolean {
  const given = secret ?? process.env["GATEWAY_KEY"] ?? "";
  return given === "" || keysBySha256.has(sha256Hex(given));
}

/** The key is unknown here: the gateway's lists say for which platform it is. */
async function connectElsewhere(tool: Tool, flags: ToolFlags, label: string | null): Promise<ToolConnection> {
  const secret = flags.secret ?? process.env["GATEWAY_KEY"] ?? "";
  if (secret === "" || flags.new === true)
    return refuseUsage("Without a config file, give the key's secret with --secret or GATEWAY_KEY.");
  const base = readUrl(flags.url) ?? fail("--url is missing.");
  const { cache = null } = flags;
  const place = { base, relayPrefix: DEFAULT_RELAY_PREFIX, secret, label, cache };
  const platform = (await findPlatform(tool.platforms, place)) ?? fail(`${tool.title} has no platform.`);
  const target = { ...place, platform };
  const listed = tool.needsModels === true ? await fetchModels(target) : null;
  const models = listed?.map(({ id }) => id) ?? [];
  return { tool, connection: { ...target, models, ...findOwnModel(tool) }, key: null, loaded: null };
}

function readUrl(text: string | undefined): string | null {
  return text === undefined ? null : readUrlFlag(text).href.replace(/\/+$/, "");
}

/** What is given with --url. */
export function readUrlFlag(text: string): URL {
  return readGiven(() => readHttpUrl(text), "--url");
}
