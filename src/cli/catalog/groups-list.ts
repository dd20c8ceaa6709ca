// The action of `gateway groups list`.

import { type Group, isGroupOpen } from "../../config/catalog.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { explainNoGroups } from "../keys/group-choice.ts";
import { listLimits } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { printTable } from "../terminal/table.ts";
import { printJson, printNote } from "../terminal/terminal.ts";

export interface GroupsFlags extends ConfigFlags {
  readonly all?: true;
  readonly json?: true;
}

export function listGroups(flags: GroupsFlags): void {
  const now = new Date();
  const { catalog } = openConfig(flags);
  const groups = flags.all === true ? [...catalog.groups.values()] : listSelectableGroups(catalog, now);
  if (flags.json === true) {
    printJson(groups.map((group) => describeForScripts(group, now)));
    return;
  }
  if (groups.length === 0) {
    printNote(explainNoGroups(catalog));
    return;
  }
  printTable(
    [
      { title: "NAME" },
      { title: "PLATFORM", spare: 1 },
      { title: "MULTIPLIER", align: "right" },
      { title: "STATE" },
      { title: "CHANNELS", spare: 3 },
      { title: "DESCRIPTION", spare: 2 },
    ],
    groups.map((group) => [
      group.name,
      group.platform,
      `×${group.multiplier}`,
      describeState(group, now),
      group.channels.map((channel) => channel.name).join(", "),
      group.description,
    ]),
  );
}

function describeForScripts(group: Group, now: Date): Record<string, unknown> {
  return {
    name: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    description: group.description,
    exclusive: group.exclusive,
    selectable: isGroupOpen(group, now),
    plans: group.plans.map((plan) => plan.name),
    channels: group.channels.map((channel) => channel.name),
    limits: listLimits(group.limits),
  };
}

function describeState(group: Group, now: Date): string {
  if (!isGroupOpen(group, now)) return "plan inactive";
  return group.exclusive ? "exclusive" : "open";
}
