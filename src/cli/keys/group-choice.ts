// Which groups a key can have now, and their dropdown.

import { adviseRotation, type Catalog, type Group, judgeKey, type Key } from "../../config/catalog.ts";
import { explainClosed, listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import { createTable } from "../terminal/listing.ts";
import { askOne, canPrompt, fail, refuseUsage } from "../terminal/terminal.ts";

export function explainNoGroups({ groups }: Catalog): string {
  return groups.size === 0
    ? "There are no groups yet. `gateway groups add` adds one."
    : "The plans of all groups are inactive: `gateway groups list --all` shows them.";
}

export async function chooseGroup(flag: string | undefined, catalog: Catalog, now: Date): Promise<string> {
  if (flag !== undefined) return requireSelectable(catalog, flag, now).name;
  const groups = listSelectableGroups(catalog, now);
  if (groups.length === 0) return fail(explainNoGroups(catalog));
  const names = groups.map((group) => group.name).join(", ");
  return canPrompt() ? askGroup(groups) : refuseUsage(`--group is missing. Groups: ${names}.`);
}

export function explainUnusable(key: Key, now: Date): string | null {
  const { name, group } = key;
  switch (judgeKey(key, now)) {
    case "active":
      return null;
    case "disabled":
      return `The key "${name}" is disabled: \`gateway keys enable ${name}\`.`;
    case "expired":
      return `The key "${name}" has expired: \`${adviseRotation(key)}\` gives it a new secret.`;
    case "plan inactive":
      return explainClosed(group, now);
  }
}

export function askGroup(groups: readonly Group[]): Promise<string> {
  const table = createTable<Group>([
    ["", "name"],
    ["", "platform"],
    ["", ({ multiplier }) => `×${multiplier}`],
    ["", "description"],
  ]);
  // Leaves room for the prompt's marks, so that no line wraps.
  const labels = table.rows(groups, (process.stderr.columns ?? 80) - 6);
  return askOne(
    "Group of the key",
    groups.map(({ name }, index) => ({ value: name, label: labels[index] ?? name })),
  );
}
