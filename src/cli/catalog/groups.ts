// `gateway groups`. The config keeps its comments and order.

import { isGroupOpen, isPlanInForce, type Catalog, type Plan } from "../../config/catalog.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import {
  findGroup,
  formatMoment,
  listLimits,
  readExpiry,
  refuseUnknown,
  requireNewName,
} from "../../config/changes/names.ts";
import { PLATFORM_FACTS, PLATFORMS, groupPlatform } from "../../config/schema.ts";
import { changeSetting, type Edit } from "../../config/yaml/edit.ts";
import {
  openConfig,
  removeEntry,
  type ConfigFlags,
  type ListFlags,
  type RemoveFlags,
} from "../access/config.ts";
import { describeChange, planChanges, readChanges } from "../access/settings.ts";
import { explainNoGroups } from "../keys/group-choice.ts";
import { fail, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatCount, formatDay } from "../terminal/text.ts";

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
  readonly convert?: string;
}

export async function addGroup(name: string, flags: AddGroupFlags): Promise<void> {
  const { channel = [], multiplier, description, exclusive } = flags;
  const known = PLATFORMS.filter((platform) => PLATFORM_FACTS[platform].converts);
  const clients = known.find((platform) => platform === flags.convert);
  if (flags.convert !== clients) refuseUsage(`--convert: expected a client's dialect: ${known.join(", ")}.`);
  const [first] = channel;
  if (first === undefined) return refuseUsage("--channel is missing: a group needs at least one.");
  await openConfig(flags).edit((current) => {
    requireNewName("group", name, current.groups);
    const { platform } = current.channels.get(first) ?? refuseUnknown("channel", first, current.channels);
    const value = {
      platform: clients ?? groupPlatform(platform),
      multiplier: multiplier ?? "1",
      channels: channel,
      ...(clients !== undefined && { convert: "true" }),
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
  const changes = readChanges(words, "groups");
  await openConfig(flags).edit((current) => {
    findGroup(current, name);
    return planChanges(["groups", name], changes);
  });
  printNote(`Changed the group "${name}": ${changes.map(describeChange).join(", ")}.`);
}

const MAX_KEYS_SHOWN = 5;

export async function removeGroup(name: string, flags: RemoveFlags): Promise<void> {
  const end = " The ledger keeps its lines.";
  await removeEntry(`the group "${name}"`, flags, (catalog) => planRemoval(catalog, name), end);
}

function planRemoval(catalog: Catalog, name: string): Edit[] {
  const group = findGroup(catalog, name);
  const bound = [...catalog.keys.values()].filter((key) => key.group === group).map((key) => key.name);
  const some = `${formatCount(bound.length, "key")} (${bound.slice(0, MAX_KEYS_SHOWN).join(", ")})`;
  if (bound.length > 0) fail(`"${name}" was not removed: it has ${some}. Use \`gateway keys move\` first.`);
  const uses = group.plans.map(({ name: plan, groups }): Edit => {
    if (groups.length > 1) return { kind: "remove", path: ["plans", plan, "groups", groups.indexOf(name)] };
    const advice = `Use \`gateway plans remove ${plan}\` first`;
    return fail(`"${name}" was not removed: the plan "${plan}" has no other group. ${advice}.`);
  });
  return [...uses, { kind: "remove", path: ["groups", name] }];
}

export interface ActivateFlags extends ConfigFlags {
  readonly until?: string;
}

export function listPlans(flags: ListFlags) {
  const now = new Date();
  const rows = Array.from(openConfig(flags).catalog.plans.values(), (plan) => ({
    ...plan,
    until: plan.until === null ? null : formatMoment(plan.until),
    in_force: isPlanInForce(plan, now),
  }));
  return { rows, empty: "There are no plans yet. Add one: gateway plans add NAME --group GROUP" };
}

export async function activatePlan(name: string, flags: ActivateFlags): Promise<void> {
  const now = new Date();
  const end = flags.until === undefined ? undefined : readExpiry(flags.until, now, "--until");
  let groups: readonly string[] = [];
  await openConfig(flags).edit((current) => {
    const plan = findPlan(current, name);
    groups = plan.groups;
    if (flags.until === undefined && plan.until !== null && plan.until <= now) {
      refuseUsage(`--until is missing: "${name}" ended on ${formatDay(formatMoment(plan.until))}.`);
    }
    const active: Edit = {
      kind: "set",
      path: ["plans", name, "active"],
      value: "true",
    };
    if (end === undefined) return [active];
    const until = end && formatMoment(end).replace("T00:00:00Z", "");
    return [active, changeSetting(["plans", name, "until"], until)];
  });
  printNote(`The plan "${name}" is active. Keys can now use ${groups.join(", ")}.`);
}

export async function deactivatePlan(name: string, flags: ConfigFlags): Promise<void> {
  await openConfig(flags).edit((current) => {
    findPlan(current, name);
    return [
      {
        kind: "set",
        path: ["plans", name, "active"],
        value: "false",
      },
    ];
  });
  printNote(`The plan "${name}" is no longer active.`);
}

export interface AddPlanFlags extends ConfigFlags {
  readonly group?: readonly string[];
  readonly active?: true;
}

export async function addPlan(name: string, flags: AddPlanFlags): Promise<void> {
  const { group: groups = [], active } = flags;
  if (groups.length === 0) refuseUsage("--group is missing: a plan needs at least one.");
  await openConfig(flags).edit((current) => {
    requireNewName("plan", name, current.plans);
    for (const group of groups) findGroup(current, group);
    return [
      {
        kind: "set",
        path: ["plans", name],
        value: { groups, active: String(active === true) },
      },
    ];
  });
  const next = active === true ? "" : ` \`gateway plans activate ${name}\` activates it.`;
  printNote(`Added the plan "${name}".${next}`);
}

export async function removePlan(name: string, flags: RemoveFlags): Promise<void> {
  await removeEntry(`the plan "${name}"`, flags, (catalog) => {
    findPlan(catalog, name);
    return [{ kind: "remove", path: ["plans", name] }];
  });
}

function findPlan(catalog: Catalog, name: string): Plan {
  return catalog.plans.get(name) ?? refuseUnknown("plan", name, catalog.plans);
}
