// `gateway groups`. The file keeps its comments and order.

import { type Catalog, type Group, isGroupOpen } from "../../config/catalog.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { findGroup, listLimits, refuseUnknown, requireNewName } from "../../config/changes/names.ts";
import { CONVERTIBLE, groupPlatform, type Platform, PLATFORMS } from "../../config/schema.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import {
  type ConfigFlags,
  type ListFlags,
  openConfig,
  removeEntry,
  type RemoveFlags,
} from "../access/config.ts";
import { describeChange, planChanges, readChanges } from "../access/settings.ts";
import { explainNoGroups } from "../keys/group-choice.ts";
import { fail, printNote, refuseUsage } from "../terminal/terminal.ts";

export function listGroups(flags: ListFlags & { readonly all?: true }) {
  const now = new Date();
  const { catalog } = openConfig(flags);
  const groups = flags.all === true ? [...catalog.groups.values()] : listSelectableGroups(catalog, now);
  const rows = groups.map((group) => ({
    name: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    description: group.description,
    exclusive: group.exclusive,
    convert: group.convert,
    selectable: isGroupOpen(group, now),
    plans: group.plans.map(({ name }) => name),
    channels: group.channels.map(({ name }) => name),
    default_model: group.defaultModel,
    limits: listLimits(group.limits),
  }));
  return { rows, empty: explainNoGroups(catalog) };
}

export interface AddGroupFlags extends ConfigFlags {
  readonly channel?: readonly string[];
  readonly multiplier?: string;
  readonly description?: string;
  readonly exclusive?: true;
  /** What its clients speak, where its channels speak something else. */
  readonly convert?: string;
}

export async function addGroup(name: string, flags: AddGroupFlags): Promise<void> {
  const { channel = [], multiplier, description, exclusive } = flags;
  const clients = flags.convert === undefined ? null : requireConvertible(flags.convert);
  const [first] = channel;
  if (first === undefined) return refuseUsage("--channel is missing: a group needs at least one.");
  await openConfig(flags).edit((current) => {
    requireNewName("group", name, current.groups);
    const { platform } = current.channels.get(first) ?? refuseUnknown("channel", first, current.channels);
    const value = {
      platform: clients ?? groupPlatform(platform),
      multiplier: multiplier ?? "1",
      channels: channel,
      ...(clients !== null && { convert: "true" }),
      ...(description !== undefined && { description }),
      ...(exclusive === true && { exclusive: "true" }),
    };
    return [{ kind: "set", path: ["groups", name], value }];
  });
  printNote(`Added the group "${name}".`);
  if (exclusive === true)
    printNote(`Keys can use it while a plan is active: gateway plans add PLAN --group ${name}`);
}

function requireConvertible(word: string): Platform {
  const known = PLATFORMS.filter((platform) => CONVERTIBLE.has(platform));
  const found = known.find((platform) => platform === word);
  return found ?? refuseUsage(`--convert: expected what clients speak: ${known.join(", ")}.`);
}

export async function setGroup(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  const changes = readChanges(words, "groups");
  await openConfig(flags).edit((current) => {
    findGroup(current, name);
    return planChanges(["groups", name], changes);
  });
  printNote(`Changed the group "${name}": ${changes.map(describeChange).join(", ")}.`);
}

export async function removeGroup(name: string, flags: RemoveFlags): Promise<void> {
  const plan = (catalog: Catalog): Edit[] => planRemoval(catalog, name);
  await removeEntry(`the group "${name}"`, flags, plan, " The ledger keeps its lines.");
}

/** Throws if keys or a plan need it. */
function planRemoval(catalog: Catalog, name: string): Edit[] {
  const group = findGroup(catalog, name);
  requireNoKeys(catalog, group);
  const uses = group.plans.map(({ name: plan, groups }): Edit => {
    if (groups.length === 1)
      return fail(
        `The group "${name}" was not removed: the plan "${plan}" has no other. \`gateway plans remove ${plan}\` removes the plan.`,
      );
    return { kind: "remove", path: ["plans", plan, "groups", groups.indexOf(name)] };
  });
  return [...uses, { kind: "remove", path: ["groups", name] }];
}

const MAX_KEYS_SHOWN = 5;

function requireNoKeys({ keys }: Catalog, { name }: Group): void {
  const bound = [...keys.values()].filter((key) => key.group.name === name).map((key) => key.name);
  if (bound.length === 0) return;
  const more = bound.length > MAX_KEYS_SHOWN ? ` and ${bound.length - MAX_KEYS_SHOWN} more` : "";
  fail(
    `The group "${name}" was not removed: ${bound.length === 1 ? "a key is" : "keys are"} bound to it ` +
      `(${bound.slice(0, MAX_KEYS_SHOWN).join(", ")}${more}). Move or remove them first: \`gateway keys move\`, \`gateway keys remove\`.`,
  );
}
