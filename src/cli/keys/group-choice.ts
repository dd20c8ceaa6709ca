// Which groups a key can be bound to now, and the dropdown that offers them.

import type { Catalog } from "../../config/catalog.ts";
import { listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import { formatTable } from "../terminal/table.ts";
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
  const cells = groups.map((group) => [
    group.name,
    group.platform,
    `×${group.multiplier}`,
    group.description,
  ]);
  // Leaves room for the prompt's own marks, so that a long line does not wrap.
  const width = (process.stderr.columns ?? 80) - 6;
  const labels = formatTable(
    [{ title: "" }, { title: "" }, { title: "" }, { title: "" }],
    cells,
    width,
  ).slice(1);
  return askOne(
    "Group of the key",
    groups.map((group, index) => ({ value: group.name, label: labels[index] ?? group.name })),
  );
}
