// Which groups a key can be bound to now, and the dropdown that offers them.

import type { Catalog, Group } from "../../config/catalog.ts";
import { listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import { createTable } from "../terminal/table.ts";
import { askOne, canPrompt, fail, refuseUsage } from "../terminal/terminal.ts";

/** Why the list of selectable groups is empty. */
export function explainNoGroups({ groups }: Catalog): string {
  return groups.size === 0
    ? "There are no groups yet. Add one to the `groups` section of the config file."
    : "The plans of all groups are inactive: `gateway groups list --all` shows them, `gateway plans activate` activates one.";
}

/** From the flag, otherwise from a prompt. */
export async function chooseGroup(flag: string | undefined, catalog: Catalog, now: Date): Promise<string> {
  if (flag !== undefined) return requireSelectable(catalog, flag, now).name;
  const groups = listSelectableGroups(catalog, now);
  if (groups.length === 0) {
    return fail(explainNoGroups(catalog));
  }
  if (!canPrompt()) {
    return refuseUsage(`--group is missing. Groups: ${groups.map((group) => group.name).join(", ")}.`);
  }
  return askGroup(groups);
}

export function askGroup(groups: readonly Group[]): Promise<string> {
  const table = createTable<Group>([
    { title: "", read: ({ name }) => name },
    { title: "", read: ({ platform }) => platform },
    { title: "", read: ({ multiplier }) => `×${multiplier}` },
    { title: "", read: ({ description }) => description },
  ]);
  // Leaves room for the prompt's own marks, so that a long line does not wrap.
  const labels = table.rows(groups, (process.stderr.columns ?? 80) - 6);
  return askOne(
    "Group of the key",
    groups.map(({ name }, index) => ({ value: name, label: labels[index] ?? name })),
  );
}
