// The actions of `gateway plans list`, `activate` and `deactivate`.

import { type Catalog, isPlanInForce, type Plan } from "../../config/catalog.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import {
  formatMoment,
  readFuture,
  findGroup,
  refuseUnknown,
  requireNewName,
} from "../../config/changes/names.ts";
import {
  type ConfigFlags,
  formatDay,
  type ListFlags,
  openConfig,
  removeEntry,
  type RemoveFlags,
} from "../access/config.ts";
import { printNote, refuseUsage } from "../terminal/terminal.ts";

export interface ActivateFlags extends ConfigFlags {
  readonly until?: string;
}

export function listPlans(flags: ListFlags) {
  const now = new Date();
  const rows = Array.from(openConfig(flags).catalog.plans.values(), (plan) => ({
    name: plan.name,
    groups: plan.groups,
    active: plan.active,
    until: plan.until === null ? null : formatMoment(plan.until),
    in_force: isPlanInForce(plan, now),
  }));
  return { rows, empty: "There are no plans yet. Add one: gateway plans add NAME --group GROUP" };
}

export async function activatePlan(name: string, flags: ActivateFlags): Promise<void> {
  const now = new Date();
  const until = readUntil(flags.until, now);
  let groups: readonly string[] = [];
  await openConfig(flags).edit((current) => {
    const plan = findPlan(current, name);
    groups = plan.groups;
    if (flags.until === undefined && plan.until !== null && plan.until <= now) {
      refuseUsage(
        `--until is missing: the plan "${name}" ended on ${formatDay(plan.until)}. Give its new end.`,
      );
    }
    const edits: Edit[] = [{ kind: "set", path: ["plans", name, "active"], value: "true" }];
    if (until === null) edits.push({ kind: "remove", path: ["plans", name, "until"] });
    if (typeof until === "string") edits.push({ kind: "set", path: ["plans", name, "until"], value: until });
    return edits;
  });
  printNote(`The plan "${name}" is active. Keys can now use ${groups.join(", ")}.`);
}

export async function deactivatePlan(name: string, flags: ConfigFlags): Promise<void> {
  await openConfig(flags).edit((current) => {
    findPlan(current, name);
    return [{ kind: "set", path: ["plans", name, "active"], value: "false" }];
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
    return [{ kind: "set", path: ["plans", name], value: { groups, active: String(active === true) } }];
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

/** In the file's format. Null: no end. Undefined: unchanged. */
function readUntil(text: string | undefined, now: Date): string | null | undefined {
  if (text === undefined) return undefined;
  if (text === "never") return null;
  const moment = readFuture(text, now);
  if (moment === null)
    return refuseUsage("--until: expected a date or a duration, such as 2027-01-31 or 30d.");
  if (moment <= now) return refuseUsage(`--until: ${text} has passed.`);
  return formatMoment(moment).replace("T00:00:00Z", "");
}

function findPlan(catalog: Catalog, name: string): Plan {
  return catalog.plans.get(name) ?? refuseUnknown("plan", name, catalog.plans);
}
