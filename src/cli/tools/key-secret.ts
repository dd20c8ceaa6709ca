// Chooses a tool's key. The config usually holds only hashes, so the secret comes from the user, from the file of the
// tools' own keys, or from a new key.

import type { Catalog, Group, Key } from "../../config/catalog.ts";
import { listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import { checkKeyName, findGroup, findKey, formatMoment } from "../../config/changes/names.ts";
import { findStoredSecret, listToolKeys, storeToolSecret } from "../../config/changes/tool-secrets.ts";
import { readConfigText } from "../../config/file/load.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { expandTree } from "../../config/yaml/expand.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { getField, getList } from "../../lib/json/json.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import { describeGroup, openConfigFile } from "../access/config.ts";
import { askGroup, explainUnusable } from "../keys/group-choice.ts";
import { askSecret, canPrompt, fail, printNote, refuseUsage } from "../terminal/terminal.ts";
import { lacksResponses, type Tool } from "./tool.ts";

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
  /** Asks whether a key of this group is wanted, before it is used or made. Throws if not. */
  readonly agree: (group: Group) => Promise<void>;
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
  const key = findExistingKey(tool, flags, context);
  if (key !== null) {
    await context.agree(key.group);
    return key;
  }
  if (context.owns && flags.key === undefined) return createKey(tool, flags, context);
  if (!canPrompt()) return refuseUsage(explainMissing(tool, flags, context));
  const message = `The secret of ${flags.key ?? "a key"} for ${tool.title}, or Enter for a new key`;
  const secret = await askSecret({ message });
  if (secret === "") return createKey(tool, flags.key === undefined ? flags : {}, context);
  return findKeyOfSecret({ secret, what: "That secret" }, tool, flags, context);
}

/** Null: its secret is not known, or there is none yet. */
function findExistingKey(tool: Tool, flags: KeyFlags, context: KeyContext): ToolKey | null {
  if (flags.key !== undefined) requireUsable(findKey(context.catalog, flags.key).key, tool, context);
  const given = findGivenSecret(flags, context);
  if (given !== null) return findKeyOfSecret(given, tool, flags, context);
  return flags.key === undefined ? findOwnKey(tool, flags.group, context) : null;
}

interface GivenSecret {
  readonly secret: string;
  /** The secret's name in a message. */
  readonly what: string;
}

function findGivenSecret({ secret, key, group }: KeyFlags, context: KeyContext): GivenSecret | null {
  const known = secret ?? (key === undefined ? null : findKnownSecret(key, context));
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
  const keys = getList(getField(parseSource(readConfigText(path)).tree, "keys"));
  const written = getField(
    keys.find((each) => getField(each, "name") === name),
    "secret",
  );
  const { tree: secret, unset } = expandTree(written, process.env);
  const isPlain = typeof secret === "string" && sha256Hex(secret) === key.secretSha256;
  return isPlain && unset.length === 0 ? secret : findStoredSecret(name, path, catalog);
}

/** Null when the tool has none yet. Fails when it has keys, but none of them can be used now. */
function findOwnKey(tool: Tool, group: string | undefined, context: KeyContext): ToolKey | null {
  const fitting = listToolKeys(tool.name, context.path, context.catalog).filter(
    ({ key }) => explainMisfit(tool, key.group) === null && (group === undefined || key.group.name === group),
  );
  const found = fitting.find(({ key }) => explainUnusable(key, context.now) === null) ?? fitting[0];
  if (found === undefined) return null;
  requireUsable(found.key, tool, context);
  return { name: found.key.name, group: found.key.group, secret: found.secret, isNew: false };
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
  const misfit = explainMisfit(tool, key.group);
  if (misfit !== null) fail(`The key "${key.name}" does not fit. ${misfit} ${suggestKeys(tool, context)}`);
  const unusable = explainUnusable(key, context.now);
  if (unusable !== null) fail(unusable);
}

/** Why the tool cannot use a key of this group; null: it can. */
function explainMisfit(tool: Tool, group: Group): string | null {
  const { title, platforms } = tool;
  const { name, platform, usesLogin } = group;
  if (usesLogin && tool.login === undefined)
    return `The group ${name} passes on the login of another tool, which ${title} does not have. Use a group that is billed by use.`;
  if (lacksResponses(tool, group))
    return `The channels of the group ${name} speak Chat Completions, and ${title} speaks Responses. \`gateway groups set ${name} convert=true\` has its requests converted.`;
  if (platforms.includes(platform)) return null;
  return `The group ${name} has the platform ${platform}, and ${title} needs ${platforms.join(" or ")}.`;
}

function explainMissing(tool: Tool, flags: KeyFlags, context: KeyContext): string {
  const whose = flags.key === undefined ? "a key" : `the key "${flags.key}"`;
  const fitting = flags.key === undefined ? ` ${suggestKeys(tool, context)}` : "";
  return (
    `The secret of ${whose} is missing, and the config does not hold it. Give it with --secret - (stdin) ` +
    `or GATEWAY_KEY, or create a key with --new.${fitting}`
  );
}

const MAX_NAMES_SHOWN = 8;

function suggestKeys(tool: Tool, { catalog, now }: KeyContext): string {
  const fits = ({ group }: Key): boolean => explainMisfit(tool, group) === null;
  const keys = [...catalog.keys.values()].filter((key) => fits(key) && explainUnusable(key, now) === null);
  const more = keys.length > MAX_NAMES_SHOWN ? ` and ${keys.length - MAX_NAMES_SHOWN} more` : "";
  const named = keys.slice(0, MAX_NAMES_SHOWN).map((key) => key.name);
  if (keys.length > 0) return `Keys that fit: ${named.join(", ")}${more}.`;
  const groups = listFittingGroups(tool, catalog, now).map((group) => group.name);
  if (groups.length === 0) return "The config has no group with such a platform.";
  return `No key fits yet: --new creates one (in the group ${groups.join(" or ")}).`;
}

function listFittingGroups(tool: Tool, catalog: Catalog, now: Date): Group[] {
  return listSelectableGroups(catalog, now).filter((group) => explainMisfit(tool, group) === null);
}

async function createKey(tool: Tool, flags: KeyFlags, context: KeyContext): Promise<ToolKey> {
  const { catalog, path, now, owns } = context;
  if (flags.key !== undefined) requireFreeName(flags.key, catalog);
  const group = await chooseFittingGroup(tool, flags.group, catalog, now);
  await context.agree(group);
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
  const names = fitting.map((group) => group.name).join(", ");
  if (flag !== undefined) {
    const group = requireSelectable(catalog, flag, now);
    const misfit = explainMisfit(tool, group);
    return misfit === null ? group : fail(`${misfit}${names === "" ? "" : ` Groups that fit: ${names}.`}`);
  }
  // A login is used if there is nothing else: a choice between a plan and metered billing is the user's.
  const metered = fitting.filter(({ usesLogin }) => !usesLogin);
  const groups = metered.length > 0 && !canPrompt() ? metered : fitting;
  const [only, ...others] = groups;
  if (only === undefined) {
    const near = listSelectableGroups(catalog, now).find(({ platform }) => tool.platforms.includes(platform));
    return fail(
      (near && explainMisfit(tool, near)) ??
        `${tool.title} needs a key for ${tool.platforms.join(" or ")}, and the config has no such group.`,
    );
  }
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
