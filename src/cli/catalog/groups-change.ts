// The actions of `gateway groups add`, `set` and `remove`. The file keeps its comments and order.

import type { Catalog, Group } from "../../config/catalog.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { findGroup, refuseUnknown, requireNewName } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { openConfigFile } from "../access/config-file.ts";
import { planChanges, readChanges, type Settings } from "../access/settings.ts";
import { askYes, canPrompt, fail, printNote, refuseUsage } from "../terminal/terminal.ts";

/** Not `platform`: it is that of the channels. Limits have `groups limit`. */
export const GROUP_SETTINGS: Settings = {
  channels: { form: "list", required: true },
  multiplier: { form: "text" },
  description: { form: "text" },
  exclusive: { form: "text" },
};

export interface AddGroupFlags extends ConfigFlags {
  readonly channel?: readonly string[];
  readonly multiplier?: string;
  readonly description?: string;
  readonly exclusive?: true;
}

export async function addGroup(name: string, flags: AddGroupFlags): Promise<void> {
  const { path } = openConfig(flags);
  const { channel = [], multiplier, description, exclusive } = flags;
  const [first] = channel;
  if (first === undefined) return refuseUsage("--channel is missing: a group needs at least one.");
  await openConfigFile(path).edit((current) => {
    requireNewName("group", name, current.groups);
    const { platform } = current.channels.get(first) ?? refuseUnknown("channel", first, current.channels);
    const value = {
      platform,
      multiplier: multiplier ?? "1",
      channels: channel,
      ...(description !== undefined && { description }),
      ...(exclusive === true && { exclusive: "true" }),
    };
    return [{ kind: "set", path: ["groups", name], value }];
  });
  printNote(`Added the group "${name}".`);
  if (exclusive === true)
    printNote(`Keys can use it while a plan is active: gateway plans add PLAN --group ${name}`);
}

export async function setGroup(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  const changes = readChanges(words, GROUP_SETTINGS);
  const { path } = openConfig(flags);
  await openConfigFile(path).edit((current) => {
    findGroup(current, name);
    return planChanges(["groups", name], changes);
  });
  const shown = changes.map(({ path: setting, value }) =>
    value === null ? `no ${setting.join(".")}` : `${setting.join(".")} ${[value].flat().join(", ")}`,
  );
  printNote(`Changed the group "${name}": ${shown.join(", ")}.`);
}

export interface RemoveGroupFlags extends ConfigFlags {
  readonly yes?: true;
}

export async function removeGroup(name: string, flags: RemoveGroupFlags): Promise<void> {
  const { catalog, path } = openConfig(flags);
  planRemoval(catalog, name);
  if (flags.yes !== true) {
    if (!canPrompt()) refuseUsage(`--yes is missing: removing the group "${name}" cannot be undone.`);
    if (!(await askYes(`Remove the group "${name}" for good?`))) fail("Nothing was removed.");
  }
  await openConfigFile(path).edit((current) => planRemoval(current, name));
  printNote(`Removed the group "${name}". The ledger keeps its lines.`);
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
