// `gateway keys list` and `show`: what is known of keys. Never a secret.

import { isGroupOpen, type Key } from "../config/catalog.ts";
import { readLastUse } from "./last-use.ts";
import { type ConfigFlags, findKey, formatDay, formatMoment, listLimits, openConfig } from "./opening.ts";
import { paint, print, printJson, printTable, tell } from "./terminal.ts";

export interface ListFlags extends ConfigFlags {
  readonly json?: true;
}

export async function listKeys(flags: ListFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  const used = await readLastUse(catalog);
  const keys = [...catalog.keys.values()];
  if (flags.json === true) {
    printJson(keys.map((key) => describeKey(key, used)));
    return;
  }
  if (keys.length === 0) {
    tell("There are no keys yet: `gateway keys add` creates one.");
    return;
  }
  const now = new Date();
  const columns = ["NAME", "GROUP", "PLATFORM", "STATE", "CREATED", "EXPIRES", "LAST USED"];
  printTable(
    columns.map((title) => ({ title })),
    keys.map((key) => [
      key.name,
      key.group.name,
      key.group.platform,
      stateOf(key, now),
      formatDay(key.created),
      formatDay(key.expires) || "never",
      formatDay(used.get(key.name) ?? null),
    ]),
  );
}

export async function showKey(name: string, flags: ListFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  const { key } = findKey(catalog, name);
  const used = await readLastUse(catalog);
  const limits = listLimits(key.limits);
  if (flags.json === true) {
    printJson({ ...describeKey(key, used), multiplier: key.group.multiplier, limits });
    return;
  }
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["name", key.name],
    ["group", `${key.group.name} (${key.group.platform}, ×${key.group.multiplier})`],
    ["state", stateOf(key, new Date())],
    ["created", formatDay(key.created)],
    ["expires", formatDay(key.expires) || "never"],
    ["last used", formatDay(used.get(key.name) ?? null)],
    ...Object.entries(limits).map(([limit, value]) => [limit, String(value)] as const),
  ];
  for (const [title, fact] of facts) print(`${paint("dim", title.padEnd(20))}${fact || "-"}`);
}

function describeKey(key: Key, used: ReadonlyMap<string, Date>): Record<string, string | boolean | null> {
  const tellMoment = (moment: Date | null | undefined) => (moment ? formatMoment(moment) : null);
  return {
    name: key.name,
    group: key.group.name,
    platform: key.group.platform,
    disabled: key.disabled,
    created: tellMoment(key.created),
    expires: tellMoment(key.expires),
    last_used: tellMoment(used.get(key.name)),
  };
}

function stateOf(key: Key, now: Date): string {
  if (key.disabled) return "disabled";
  if (key.expires !== null && now >= key.expires) return "expired";
  return isGroupOpen(key.group, now) ? "active" : "plan inactive";
}
