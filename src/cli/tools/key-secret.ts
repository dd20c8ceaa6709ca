// Which key a tool gets. Stored keys are hashes, so that the secret comes from the user, or from a new key.

import { adviseRotation } from "../../config/advice.ts";
import { type Catalog, type Group, type Key, isGroupOpen } from "../../config/catalog.ts";
import { type Edit, editConfig } from "../../config/edit.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import { listSelectable, requireSelectable } from "../keys/group-choice.ts";
import { checkKeyName, describeGroup, findKey, formatMoment, refuseUnknown } from "../config-access.ts";
import { askOne, askSecret, canAsk, fail, refuseUsage, tell } from "../terminal.ts";
import type { Tool } from "./tools.ts";

export interface KeyFlags {
  readonly key?: string;
  readonly secret?: string;
  readonly new?: true;
  readonly group?: string;
}

/** What there is to choose from. */
export interface Keyring {
  readonly catalog: Catalog;
  /** Of the config file. */
  readonly path: string;
  readonly now: Date;
}

export interface ChosenKey {
  readonly name: string;
  readonly group: Group;
  readonly secret: string;
  readonly isNew: boolean;
}

/** The first of: a secret that was given, a new key, GATEWAY_KEY, asking. */
export async function chooseKey(tool: Tool, flags: KeyFlags, ring: Keyring): Promise<ChosenKey> {
  if (flags.new === true) {
    if (flags.secret !== undefined) refuseUsage("--new makes a secret: it does not go with --secret.");
    return makeKey(tool, flags, ring);
  }
  if (flags.group !== undefined) refuseUsage("--group is for --new: a key that exists has its group.");
  if (flags.key !== undefined) requireFit(findKey(ring.catalog, flags.key).key, tool, ring);
  if (flags.secret !== undefined)
    return identify({ secret: flags.secret, what: "That secret" }, tool, flags, ring);
  const known = process.env["GATEWAY_KEY"] ?? "";
  if (known !== "") return identify({ secret: known, what: "The secret in GATEWAY_KEY" }, tool, flags, ring);
  if (!canAsk()) return refuseUsage(explainMissing(tool, flags, ring));
  const way = await askOne(`Which key does ${tool.title} get?`, [
    { value: "new", label: "a new key" },
    {
      value: "old",
      label: `${flags.key === undefined ? "a key that exists" : `"${flags.key}"`}: paste its secret`,
    },
  ]);
  if (way === "new") return makeKey(tool, flags.key === undefined ? flags : {}, ring);
  return identify(
    { secret: await askSecret({ message: "The key's secret" }), what: "That secret" },
    tool,
    flags,
    ring,
  );
}

interface Given {
  readonly secret: string;
  /** How a message calls it. */
  readonly what: string;
}

function identify({ secret, what }: Given, tool: Tool, flags: KeyFlags, ring: Keyring): ChosenKey {
  const key = ring.catalog.keysBySha256.get(sha256Hex(secret));
  if (key === undefined) return fail(`${what} is of none of the keys in ${ring.path}.`);
  if (flags.key !== undefined && flags.key !== key.name) {
    const way = what === "That secret" ? "" : " Give the right one by --secret.";
    return fail(`${what} is of the key "${key.name}", not of "${flags.key}".${way}`);
  }
  requireFit(key, tool, ring);
  return { name: key.name, group: key.group, secret, isNew: false };
}

function requireFit(key: Key, tool: Tool, ring: Keyring): void {
  const { group } = key;
  if (!tool.platforms.includes(group.platform)) {
    fail(
      `The key "${key.name}" does not fit: its group ${group.name} is of the ${group.platform} platform, and ` +
        `${tool.title} needs ${listPlatforms(tool)}. ${listFitting(tool, ring)}`,
    );
  }
  if (key.disabled) fail(`The key "${key.name}" is disabled: \`gateway keys enable ${key.name}\`.`);
  if (key.expires !== null && key.expires <= ring.now) {
    fail(`The key "${key.name}" has expired: \`${adviseRotation(key)}\` gives it a new secret.`);
  }
  if (!isGroupOpen(group, ring.now)) requireSelectable(ring.catalog, group.name, ring.now);
}

function explainMissing(tool: Tool, flags: KeyFlags, ring: Keyring): string {
  const whose = flags.key === undefined ? "a key" : `the key "${flags.key}"`;
  const fitting = flags.key === undefined ? ` ${listFitting(tool, ring)}` : "";
  return (
    `The secret of ${whose} is needed, and it is not taken from the config: give it by --secret - (stdin) ` +
    `or GATEWAY_KEY, or have a key made with --new.${fitting}`
  );
}

function listPlatforms({ platforms }: Tool): string {
  return `a key of the ${platforms.join(" or ")} platform`;
}

const MOST_NAMED = 8;

function listFitting(tool: Tool, { catalog, now }: Keyring): string {
  const keys = [...catalog.keys.values()].filter(
    ({ group, disabled, expires }) =>
      tool.platforms.includes(group.platform) &&
      isGroupOpen(group, now) &&
      !disabled &&
      (expires === null || expires > now),
  );
  const more = keys.length > MOST_NAMED ? ` and ${keys.length - MOST_NAMED} more` : "";
  const named = keys.slice(0, MOST_NAMED).map((key) => key.name);
  if (keys.length > 0) return `Keys that fit: ${named.join(", ")}${more}.`;
  const groups = fittingGroups(tool, catalog, now).map((group) => group.name);
  if (groups.length === 0) return "No group of the config is of that kind.";
  return `No key fits yet: --new makes one (of the group ${groups.join(" or ")}).`;
}

function fittingGroups(tool: Tool, catalog: Catalog, now: Date): Group[] {
  return listSelectable(catalog, now).filter((group) => tool.platforms.includes(group.platform));
}

async function makeKey(tool: Tool, flags: KeyFlags, ring: Keyring): Promise<ChosenKey> {
  const { catalog, path, now } = ring;
  const name = flags.key ?? nameFreely(tool.name, catalog);
  const complaint = checkKeyName(name, catalog);
  if (complaint !== undefined) fail(complaint);
  const group = await chooseFitting(tool, flags.group, catalog, now);
  const secret = newSecret();
  await editConfig(path, process.env, (current): Edit[] => {
    const taken = checkKeyName(name, current);
    if (taken !== undefined) fail(taken);
    const value = {
      name,
      group: requireSelectable(current, group.name, now).name,
      secret_sha256: sha256Hex(secret),
      created: formatMoment(now),
    };
    return [{ kind: "append", path: ["keys"], values: [value] }];
  });
  tell(`The key "${name}" is new, bound to ${group.name} (${describeGroup(group)}).`);
  return { name, group, secret, isNew: true };
}

async function chooseFitting(
  tool: Tool,
  flag: string | undefined,
  catalog: Catalog,
  now: Date,
): Promise<Group> {
  const groups = fittingGroups(tool, catalog, now);
  const names = groups.map((group) => group.name).join(", ");
  if (flag !== undefined) {
    const group = requireSelectable(catalog, flag, now);
    if (tool.platforms.includes(group.platform)) return group;
    const fitting = names === "" ? "" : ` Groups that fit: ${names}.`;
    return fail(
      `The group ${flag} is of the ${group.platform} platform, and ${tool.title} needs ${listPlatforms(tool)}.${fitting}`,
    );
  }
  const [only, ...others] = groups;
  if (only === undefined)
    return fail(`${tool.title} needs ${listPlatforms(tool)}, and the config has no such group.`);
  if (others.length === 0) return only;
  if (!canAsk()) return refuseUsage(`--group is missing: one of ${names}.`);
  const name = await askOne(
    "Which group is the key bound to?",
    groups.map((group) => ({
      value: group.name,
      label: `${group.name}  ${describeGroup(group)}  ${group.description}`,
    })),
  );
  return catalog.groups.get(name) ?? refuseUnknown("group", name, catalog.groups);
}

function nameFreely(wanted: string, catalog: Catalog): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!catalog.keys.has(name)) return name;
  }
}
