// Which groups a key may be bound to now, and the dropdown that offers them.

import { adviseActivation } from "../../config/advice.ts";
import { type Catalog, type Group, isGroupOpen } from "../../config/catalog.ts";
import { findGroup } from "../config-access.ts";
import { askOne, canAsk, fail, formatTable, refuseUsage } from "../terminal.ts";

export function listSelectable(catalog: Catalog, now: Date): Group[] {
  return [...catalog.groups.values()].filter((group) => isGroupOpen(group, now));
}

/** Why there is none that can be listed. */
export function describeNone({ groups }: Catalog): string {
  return groups.size === 0
    ? "There are no groups to choose from: the config file's `groups` section makes them."
    : "The plans of all groups are inactive: `gateway groups list --all` shows them, `gateway plans activate` opens them.";
}

/** By the flag, else by asking. */
export async function chooseGroup(flag: string | undefined, catalog: Catalog, now: Date): Promise<string> {
  if (flag !== undefined) return requireSelectable(catalog, flag, now).name;
  const groups = listSelectable(catalog, now);
  if (groups.length === 0) {
    return fail(describeNone(catalog));
  }
  if (!canAsk()) {
    return refuseUsage(`--group is missing: one of ${groups.map((group) => group.name).join(", ")}.`);
  }
  const cells = groups.map((group) => [
    group.name,
    group.platform,
    `×${group.multiplier}`,
    group.description,
  ]);
  // Room for the prompt's own marks, lest a long line break in two.
  const width = (process.stderr.columns ?? 80) - 6;
  const labels = formatTable(
    [{ title: "" }, { title: "" }, { title: "" }, { title: "" }],
    cells,
    width,
  ).slice(1);
  return askOne(
    "Which group is the key bound to?",
    groups.map((group, index) => ({ value: group.name, label: labels[index] ?? group.name })),
  );
}

export function requireSelectable(catalog: Catalog, name: string, now: Date): Group {
  const group = findGroup(catalog, name);
  if (isGroupOpen(group, now)) return group;
  const [plan] = group.plans;
  const way = plan === undefined ? "no plan binds it" : `\`${adviseActivation(plan, now)}\` opens it`;
  return fail(`The group "${name}" is exclusive to a plan that is not active: ${way}.`);
}
