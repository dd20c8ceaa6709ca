// Chooses a tool's key. The config usually holds only hashes, so the secret comes from the user, from the file of the
// tools' own keys, or from a new key.

import { adviseRotation } from "../../config/advice.ts";
import { type Catalog, type Group, type Key, isGroupOpen } from "../../config/catalog.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { readConfigText } from "../../config/file/load.ts";
import { expandTree } from "../../config/yaml/expand.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { getField } from "../../lib/json/json.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import { listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import { findStoredSecret, listToolKeys, storeToolSecret } from "../../config/changes/tool-secrets.ts";
import { checkKeyName, findGroup, findKey, formatMoment } from "../../config/changes/names.ts";
import { describeGroup, openConfigFile } from "../access/config.ts";
import { askGroup } from "../keys/group-choice.ts";
import { askOne, askSecret, canPrompt, fail, refuseUsage, printNote } from "../terminal/terminal.ts";
import { lacksResponses, type Tool } from "./programs/tool.ts";

export interface KeyFlags {
  readonly key?: string;
  readonly secret?: string;
  readonly new?: true;
  readonly group?: string;
}

/** The keys and groups to choose from. */
export interface KeyContext {
  readonly catalog: Catalog;
  /** The config file. */
  readonly path: string;
  readonly now: Date;
  /** Whether a tool without a key gets one of its own, whose secret is stored for the next time. */
  readonly owns: boolean;
  /** Asks whether a key of this group is wanted, before one is made. Throws if not. */
  readonly agree?: (group: Group) => Promise<void>;
}

export interface ToolKey {
  readonly name: string;
  readonly group: Group;
  readonly secret: string;
  readonly isNew: boolean;
}

/** In this order: a new key, a given secret, a named key, GATEWAY_KEY, the tool's own key, a prompt. */
export async function chooseKey(tool: Tool, flags: KeyFlags, context: KeyContext): Promise<ToolKey> {
  if (flags.new === true) {
    if (flags.secret !== undefined) refuseUsage("--new and --secret exclude each other.");
    return createKey(tool, flags, context);
  }
  requireGroupUse(flags, context);
  if (flags.key !== undefined) requireUsable(findKey(context.catalog, flags.key).key, tool, context);
  const given = findGivenSecret(flags, context);
  if (given !== null) return findKeyOfSecret(given, tool, flags, context);
  if (flags.key !== undefined) return askForKey(tool, flags, context);
  const own = findOwnKey(tool, flags.group, context);
  if (own !== null) return own;
  return context.owns ? createKey(tool, flags, context) : askForKey(tool, flags, context);
}

function findGivenSecret({ secret, key, group }: KeyFlags, context: KeyContext): GivenSecret | null {
  if (secret !== undefined) return { secret, what: "That secret" };
  const known = key === undefined ? null : findKnownSecret(key, context);
  if (known !== null) return { secret: known, what: "That secret" };
  const variable = group === undefined ? (process.env["GATEWAY_KEY"] ?? "") : "";
  return variable === "" ? null : { secret: variable, what: "The secret in GATEWAY_KEY" };
}

function requireGroupUse({ group, key, secret }: KeyFlags, { owns }: KeyContext): void {
  if (group === undefined) return;
  if (!owns) refuseUsage("--group needs --new: an existing key has its group.");
  if (key !== undefined || secret !== undefined)
    refuseUsage("--group chooses the group of the tool's own key: it excludes --key and --secret.");
}

/** Where the config holds the secret itself, or `gateway run` has stored it. */
function findKnownSecret(name: string, { catalog, path }: KeyContext): string | null {
  const { key } = findKey(catalog, name);
  return readPlainSecret(key, path) ?? findStoredSecret(name, path, catalog);
}

/** Null when the tool has none yet. Fails when it has keys, but none of them can be used now. */
function findOwnKey(tool: Tool, group: string | undefined, context: KeyContext): ToolKey | null {
  const fitting = listToolKeys(tool.name, context.path, context.catalog).filter(
    ({ key }) => fits(tool, key.group) && (group === undefined || key.group.name === group),
  );
  const found = fitting.find(({ key }) => isUsable(key, context.now)) ?? fitting[0];
  if (found === undefined) return null;
  requireUsable(found.key, tool, context);
  return { name: found.key.name, group: found.key.group, secret: found.secret, isNew: false };
}

async function askForKey(tool: Tool, flags: KeyFlags, context: KeyContext): Promise<ToolKey> {
  if (!canPrompt()) return refuseUsage(explainMissing(tool, flags, context));
  const way = await askOne(`Key for ${tool.title}`, [
    { value: "new", label: "a new key" },
    {
      value: "old",
      label: `${flags.key === undefined ? "an existing key" : `"${flags.key}"`}: paste its secret`,
    },
  ]);
  if (way === "new") return createKey(tool, flags.key === undefined ? flags : {}, context);
  const secret = await askSecret({ message: "The key's secret" });
  return findKeyOfSecret({ secret, what: "That secret" }, tool, flags, context);
}

interface GivenSecret {
  readonly secret: string;
  /** The secret's name in a message. */
  readonly what: string;
}

function findKeyOfSecret(
  { secret, what }: GivenSecret,
  tool: Tool,
  flags: KeyFlags,
  context: KeyContext,
): ToolKey {
  const key = context.catalog.keysBySha256.get(sha256Hex(secret));
  if (key === undefined) return fail(`${what} belongs to no key in ${context.path}.`);
  if (flags.key !== undefined && flags.key !== key.name) {
    const advice = what === "That secret" ? "" : " Give the right one with --secret.";
    return fail(`${what} belongs to the key "${key.name}", not to "${flags.key}".${advice}`);
  }
  requireUsable(key, tool, context);
  return { name: key.name, group: key.group, secret, isNew: false };
}

function requireUsable(key: Key, tool: Tool, context: KeyContext): void {
  const { group } = key;
  requireLogin(tool, group);
  requireResponses(tool, group);
  if (!tool.platforms.includes(group.platform)) {
    fail(
      `The key "${key.name}" does not fit: its group ${group.name} has the platform ${group.platform}, and ` +
        `${tool.title} needs ${listPlatforms(tool)}. ${suggestKeys(tool, context)}`,
    );
  }
  if (key.disabled) fail(`The key "${key.name}" is disabled: \`gateway keys enable ${key.name}\`.`);
  if (key.expires !== null && key.expires <= context.now) {
    fail(`The key "${key.name}" has expired: \`${adviseRotation(key)}\` gives it a new secret.`);
  }
  if (!isGroupOpen(group, context.now)) requireSelectable(context.catalog, group.name, context.now);
}

function requireLogin({ login, title }: Tool, { name, usesLogin }: Group): void {
  if (!usesLogin || login !== undefined) return;
  fail(
    `The group ${name} passes on the login of another tool, which ${title} does not have. Use a group that is billed by use.`,
  );
}

function requireResponses(tool: Tool, group: Group): void {
  if (!lacksResponses(tool, group)) return;
  const way = `gateway groups set ${group.name} convert=true`;
  fail(
    `The channels of the group ${group.name} speak Chat Completions, and ${tool.title} speaks Responses. \`${way}\` has its requests converted.`,
  );
}

function isUsable({ group, disabled, expires }: Key, now: Date): boolean {
  return isGroupOpen(group, now) && !disabled && (expires === null || expires > now);
}

function explainMissing(tool: Tool, flags: KeyFlags, context: KeyContext): string {
  const whose = flags.key === undefined ? "a key" : `the key "${flags.key}"`;
  const fitting = flags.key === undefined ? ` ${suggestKeys(tool, context)}` : "";
  return (
    `The secret of ${whose} is missing, and the config does not hold it. Give it with --secret - (stdin) ` +
    `or GATEWAY_KEY, or create a key with --new.${fitting}`
  );
}

function listPlatforms({ platforms }: Tool): string {
  return `a key for ${platforms.join(" or ")}`;
}

const MAX_NAMES_SHOWN = 8;

function suggestKeys(tool: Tool, { catalog, now }: KeyContext): string {
  const keys = [...catalog.keys.values()].filter((key) => fits(tool, key.group) && isUsable(key, now));
  const more = keys.length > MAX_NAMES_SHOWN ? ` and ${keys.length - MAX_NAMES_SHOWN} more` : "";
  const named = keys.slice(0, MAX_NAMES_SHOWN).map((key) => key.name);
  if (keys.length > 0) return `Keys that fit: ${named.join(", ")}${more}.`;
  const groups = listFittingGroups(tool, catalog, now).map((group) => group.name);
  if (groups.length === 0) return "The config has no group with such a platform.";
  return `No key fits yet: --new creates one (in the group ${groups.join(" or ")}).`;
}

function listFittingGroups(tool: Tool, catalog: Catalog, now: Date): Group[] {
  return listSelectableGroups(catalog, now).filter((group) => fits(tool, group));
}

/** A login is for the tool whose login it is. */
function fits(tool: Tool, group: Group): boolean {
  const isFit = tool.platforms.includes(group.platform) && !lacksResponses(tool, group);
  return isFit && (!group.usesLogin || tool.login !== undefined);
}

async function createKey(tool: Tool, flags: KeyFlags, context: KeyContext): Promise<ToolKey> {
  const { catalog, path, now, owns } = context;
  if (flags.key !== undefined) requireFreeName(flags.key, catalog);
  const group = await chooseFittingGroup(tool, flags.group, catalog, now);
  await context.agree?.(group);
  const secret = newSecret();
  let created = "";
  let rival: ToolKey | null = null;
  await openConfigFile(path).edit((current): Edit[] => {
    // Another `run` may have created the key while this one waited for the lock.
    rival =
      owns && flags.new !== true ? findOwnKey(tool, group.name, { ...context, catalog: current }) : null;
    if (rival !== null) return [];
    created = flags.key ?? findFreeName(tool.name, current);
    requireFreeName(created, current);
    const value = {
      name: created,
      group: requireSelectable(current, group.name, now).name,
      secret_sha256: sha256Hex(secret),
      created: formatMoment(now),
    };
    // First the secret, then its hash: a crash in between leaves no key that nobody can use.
    if (owns) storeToolSecret({ tool: tool.name, key: created, secret }, path);
    return [{ kind: "append", path: ["keys"], values: [value] }];
  });
  if (rival !== null) return rival;
  printNote(`Created the key "${created}" in the group ${group.name} (${describeGroup(group)}).`);
  return { name: created, group, secret, isNew: true };
}

function requireFreeName(name: string, catalog: Catalog): void {
  const complaint = checkKeyName(name, catalog);
  if (complaint !== undefined) fail(complaint);
}

async function chooseFittingGroup(
  tool: Tool,
  flag: string | undefined,
  catalog: Catalog,
  now: Date,
): Promise<Group> {
  const fitting = listFittingGroups(tool, catalog, now);
  // A login is used if there is nothing else: a choice between a plan and metered billing is the user's.
  const metered = fitting.filter(({ usesLogin }) => !usesLogin);
  const groups = metered.length > 0 && !canPrompt() ? metered : fitting;
  const names = groups.map((group) => group.name).join(", ");
  if (flag !== undefined) {
    const group = requireSelectable(catalog, flag, now);
    requireLogin(tool, group);
    requireResponses(tool, group);
    if (tool.platforms.includes(group.platform)) return group;
    const others = names === "" ? "" : ` Groups that fit: ${names}.`;
    return fail(
      `The group ${flag} has the platform ${group.platform}, and ${tool.title} needs ${listPlatforms(tool)}.${others}`,
    );
  }
  const [only, ...others] = groups;
  if (only === undefined)
    return fail(`${tool.title} needs ${listPlatforms(tool)}, and the config has no such group.`);
  if (others.length === 0) return only;
  if (!canPrompt()) return refuseUsage(`--group is missing. Groups that fit: ${names}.`);
  return findGroup(catalog, await askGroup(groups));
}

function findFreeName(wanted: string, catalog: Catalog): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!catalog.keys.has(name)) return name;
  }
}

/** The secret of a key whose config entry contains it. Null if the file has only the hash, or a variable that is not set. */
function readPlainSecret({ name, secretSha256 }: Key, configPath: string): string | null {
  const keys = getField(parseSource(readConfigText(configPath)).tree, "keys");
  const entry = Array.isArray(keys) ? keys.find((each) => getField(each, "name") === name) : undefined;
  const written = getField(entry, "secret");
  if (typeof written !== "string") return null;
  const { tree: secret, unset } = expandTree(written, process.env);
  const isKnown = typeof secret === "string" && unset.length === 0;
  return isKnown && sha256Hex(secret) === secretSha256 ? secret : null;
}
