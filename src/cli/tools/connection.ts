// Finds the gateway's address and a key for a tool.
// The key is given, stored or new.

import { hasUsdLimit } from "../../billing/limits/limits.ts";
import { isAllAt } from "../../billing/prices.ts";
import { PER_1K } from "../../billing/tariff.ts";
import type { Catalog, Channel, Group, Key } from "../../config/catalog.ts";
import { listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import {
  findGroup,
  findKey,
  formatMoment,
  refuseUnknown,
  requireNewName,
} from "../../config/changes/names.ts";
import { findStoredSecret, listToolKeys, storeToolSecret } from "../../config/changes/tool-secrets.ts";
import { type LoadedConfig, readConfigText } from "../../config/file/load.ts";
import { CHAT, DEFAULT_RELAY_PREFIX } from "../../config/schema.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { expandTree } from "../../config/yaml/expand.ts";
import { readHttpUrl } from "../../config/yaml/scalars.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { SEARCH_PRICE } from "../../dialects/meters/calls.ts";
import { getField, getList } from "../../lib/json/json.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import { type ConfigFlags, describeGroup, openConfigFile, openConfigUnless } from "../access/config.ts";
import { findFreeName } from "../access/credential-place.ts";
import { type Address, findRunning, formatBaseUrl } from "../access/running.ts";
import { askGroup, explainUnusable } from "../keys/group-choice.ts";
import {
  askSecret,
  canPrompt,
  fail,
  printNote,
  readAll,
  readGiven,
  refuseUsage,
} from "../terminal/terminal.ts";
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
  /** Throws if the user says no. `plan` names a group for which a plan would pay. */
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

/** Some tools send only ASCII. */
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

/** If the tool gave up before the gateway, it would send its request again. */
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

export interface KeyFlags {
  readonly key?: string;
  readonly secret?: string;
  readonly new?: true;
  readonly group?: string;
}

export interface KeyContext {
  readonly catalog: Catalog;
  readonly path: string;
  readonly agree: (group: Group) => Promise<void>;
}

export interface ToolKey {
  readonly name: string;
  readonly group: Group;
  readonly secret: string;
}

/** With `--secret -`, asks for the secret, because other users can see arguments.
 *  `word` is a key's name or secret. */
async function readKeyFlags<Flags extends KeyFlags>(
  word: string | null,
  flags: Flags,
  catalog: Catalog | undefined,
): Promise<Flags> {
  const secret = flags.secret === "-" ? await readSecret() : flags.secret;
  const given = secret === undefined ? flags : { ...flags, secret };
  const { keys, keysBySha256 } = catalog ?? { keys: new Map<string, Key>(), keysBySha256: new Map() };
  if (word === null) return given;
  if (keys.has(word)) {
    if ((flags.key ?? word) !== word) refuseUsage(`--key and "${word}" are different keys.`);
    return { ...given, key: word };
  }
  const isSecret = word.startsWith("sk-") || keysBySha256.has(sha256Hex(word));
  if (!isSecret) return refuseUnknown("key", word, keys);
  if (secret !== undefined) refuseUsage("The secret is given twice: as an argument and with --secret.");
  return { ...given, secret: word };
}

async function readSecret(): Promise<string> {
  const message = "The key's secret";
  const text = canPrompt() ? await askSecret({ message }) : (await readAll()).trim();
  return text === "" ? refuseUsage("--secret -: stdin is empty.") : text;
}

function checkKeyFlags({ key, secret, new: isNew, group }: KeyFlags, { keys }: Catalog): void {
  if (isNew === true && secret !== undefined) refuseUsage("--new and --secret exclude each other.");
  if (isNew === true && key !== undefined) requireNewName("key", key, keys);
  if (isNew !== true && group !== undefined && (key ?? secret) !== undefined)
    refuseUsage("--group is for the tool's own key: it excludes --key and --secret.");
}

async function chooseKey(tool: Tool, flags: KeyFlags, context: KeyContext): Promise<ToolKey> {
  if (flags.new === true) return createKey(tool, flags, context);
  const named = flags.key === undefined ? null : findKey(context.catalog, flags.key).key;
  if (named !== null) requireUsable(named, tool);
  const found = findGivenKey(flags, named, context) ?? findOwnKey(tool, flags.group, context);
  if (found === null) return createKey(tool, flags, context);
  const { key, secret } = found;
  requireUsable(key, tool);
  await context.agree(key.group);
  return { name: key.name, group: key.group, secret };
}

function findGivenKey({ secret, group }: KeyFlags, named: Key | null, context: KeyContext) {
  const { catalog, path } = context;
  const variable = group === undefined ? process.env["GATEWAY_KEY"] || null : null;
  const known = secret ?? (named && findKnownSecret(named, context));
  const given = known ?? variable;
  const advice = "Give it with --secret - or GATEWAY_KEY";
  if (given === null)
    return named && refuseUsage(`The secret of the key "${named.name}" is missing. ${advice}.`);
  const what = known === null ? "The secret in GATEWAY_KEY" : "That secret";
  const key = catalog.keysBySha256.get(sha256Hex(given)) ?? fail(`${what} belongs to no key in ${path}.`);
  if (named !== null && named.name !== key.name)
    fail(`${what} belongs to the key "${key.name}", not to "${named.name}".`);
  return { key, secret: given };
}

function findKnownSecret({ name, secretSha256 }: Key, { catalog, path }: KeyContext): string | null {
  const keys = getList(getField(parseSource(readConfigText(path)).tree, "keys"));
  const entry = keys.find((each) => getField(each, "name") === name);
  const { tree: secret, unset } = expandTree(getField(entry, "secret"), process.env);
  const isPlain = typeof secret === "string" && sha256Hex(secret) === secretSha256;
  return isPlain && unset.length === 0 ? secret : findStoredSecret(name, path, catalog);
}

function findOwnKey(tool: Tool, group: string | undefined, { catalog, path }: KeyContext) {
  const fitting = listToolKeys(tool.name, path, catalog).filter(({ key }) => {
    return explainMisfit(tool, key.group) === null && (group ?? key.group.name) === key.group.name;
  });
  const usable = fitting.find(({ key }) => explainUnusable(key, new Date()) === null);
  return usable ?? fitting[0] ?? null;
}

function requireUsable(key: Key, tool: Tool): void {
  const misfit = explainMisfit(tool, key.group);
  if (misfit !== null) fail(`The key "${key.name}" does not fit. ${misfit}`);
  const unusable = explainUnusable(key, new Date());
  if (unusable !== null) fail(unusable);
}

function explainMisfit({ title, platforms, login, needsResponses }: Tool, group: Group): string | null {
  const { name, platform, usesLogin, convert, channels } = group;
  if (usesLogin && login === undefined) return `The group ${name} passes on the login of another tool.`;
  const isChat = channels.length > 0 && channels.every((channel) => channel.platform === CHAT);
  if (needsResponses === true && !convert && isChat)
    return `${title} does not speak Chat Completions: \`gateway groups set ${name} convert=true\`.`;
  if (platforms.includes(platform)) return null;
  return `The group ${name} is for ${platform}, and ${title} needs ${platforms.join(" or ")}.`;
}

async function createKey(tool: Tool, flags: KeyFlags, context: KeyContext): Promise<ToolKey> {
  const { catalog, path } = context;
  const group = await chooseFittingGroup(tool, flags.group, catalog);
  await context.agree(group);
  const secret = newSecret();
  let made: ToolKey = { name: "", group, secret };
  await openConfigFile(path).edit((current): Edit[] => {
    // Another `run` may have created the key.
    const now = { ...context, catalog: current };
    const rival = flags.new === true ? null : findOwnKey(tool, group.name, now);
    if (rival !== null) {
      made = { name: rival.key.name, group, secret: rival.secret };
      return [];
    }
    const name = flags.key ?? findFreeName(tool.name, (taken) => current.keys.has(taken));
    requireNewName("key", name, current.keys);
    made = { name, group, secret };
    const value = {
      name,
      group: requireSelectable(current, group.name, new Date()).name,
      secret_sha256: sha256Hex(secret),
      created: formatMoment(new Date()),
    };
    // The secret is stored first: a crash leaves no key that nobody can use.
    storeToolSecret({ tool: tool.name, key: name, secret }, path);
    return [{ kind: "append", path: ["keys"], values: [value] }];
  });
  if (made.secret === secret)
    printNote(`Created the key "${made.name}" in the group ${group.name} (${describeGroup(group)}).`);
  return made;
}

async function chooseFittingGroup(tool: Tool, flag: string | undefined, catalog: Catalog): Promise<Group> {
  const now = new Date();
  const open = listSelectableGroups(catalog, now);
  const fitting = open.filter((group) => explainMisfit(tool, group) === null);
  const names = fitting.map((group) => group.name).join(", ");
  if (flag !== undefined) {
    const group = requireSelectable(catalog, flag, now);
    const misfit = explainMisfit(tool, group);
    if (misfit === null) return group;
    return fail(names === "" ? misfit : `${misfit} Groups that fit: ${names}.`);
  }
  // Only a user can choose a plan over metered billing.
  const metered = fitting.filter(({ usesLogin }) => !usesLogin);
  const groups = metered.length > 0 && !canPrompt() ? metered : fitting;
  const [only, ...others] = groups;
  if (only === undefined) {
    const near = open.find(({ platform }) => tool.platforms.includes(platform));
    const need = `${tool.title} needs a group for ${tool.platforms.join(" or ")}`;
    const advice = "None is open: `gateway groups list`.";
    return fail((near && explainMisfit(tool, near)) ?? `${need}. ${advice}`);
  }
  if (others.length === 0) return only;
  if (!canPrompt()) return refuseUsage(`--group is missing. Groups that fit: ${names}.`);
  return findGroup(catalog, await askGroup(groups));
}
