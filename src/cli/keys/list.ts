// `gateway keys list` and `show`. They never show a secret.

import { isGroupOpen, type Key } from "../../config/catalog.ts";
import { type KeySpending, type LimitUse, readSpending } from "../../billing/limits/spending.ts";
import {
  type ConfigFlags,
  findKey,
  formatDay,
  formatMoment,
  listLimits,
  openConfig,
} from "../config-access.ts";
import { type Column, printTable } from "../terminal/table.ts";
import { paint, print, printJson, printNote } from "../terminal/terminal.ts";

export interface ListFlags extends ConfigFlags {
  readonly json?: true;
}

/** A date takes eleven cells with the mark that its time is cut; an amount can take twenty. */
const COLUMNS: readonly Column[] = [
  { title: "NAME", least: 12 },
  { title: "GROUP" },
  { title: "PLATFORM", spare: 3 },
  { title: "STATE", least: 13 },
  { title: "CREATED", least: 11, spare: 5 },
  { title: "EXPIRES", least: 11, spare: 2 },
  { title: "LAST USED", least: 11 },
  { title: "TODAY $", least: 20, spare: 1 },
  { title: "TOTAL $", least: 20 },
  { title: "LIMITS", spare: 4 },
];

export async function listKeys(flags: ListFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  const use = readSpending(catalog, Date.now());
  const keys = [...catalog.keys.values()];
  if (flags.json === true) {
    printJson(keys.map((key) => describeKey(key, use(key.name))));
    return;
  }
  if (keys.length === 0) {
    printNote("There are no keys yet. `gateway keys add` creates one.");
    return;
  }
  const now = new Date();
  printTable(
    COLUMNS,
    keys.map((key) => [
      key.name,
      key.group.name,
      key.group.platform,
      stateOf(key, now),
      formatDay(key.created),
      formatDay(key.expires) || "never",
      formatDay(use(key.name).lastUsed),
      use(key.name).spentToday,
      use(key.name).spentTotal,
      describeLimits(key, use(key.name)),
    ]),
  );
}

export async function showKey(name: string, flags: ListFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  const { key } = findKey(catalog, name);
  const use = readSpending(catalog, Date.now())(key.name);
  const limits = listLimits(key.limits);
  if (flags.json === true) {
    printJson({ ...describeKey(key, use), multiplier: key.group.multiplier });
    return;
  }
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["name", key.name],
    ["group", `${key.group.name} (${key.group.platform}, ×${key.group.multiplier})`],
    ["state", stateOf(key, new Date())],
    ["created", formatDay(key.created)],
    ["expires", formatDay(key.expires) || "never"],
    ["last used", formatDay(use.lastUsed)],
    ["spent today", `$${use.spentToday}`],
    ["spent in total", `$${use.spentTotal}`],
    ...Object.entries(limits).map(([limit, value]) => {
      const used = use.limits.find((each) => each.limit === limit);
      return [limit, used === undefined ? String(value) : describeUse(used)] as const;
    }),
  ];
  for (const [title, fact] of facts) print(`${paint("dim", title.padEnd(20))}${fact || "-"}`);
}

/** `$0.02 of $5 per day`: short, because it is the last column. */
function describeLimits(key: Key, use: KeySpending): string {
  const counts = Object.entries(listLimits(key.limits)).filter(([name]) => !name.startsWith("usd_"));
  return [
    ...use.limits.map(
      ({ limit, usd, spent }) => `$${spent} of $${usd} ${limit.replace("usd_", "").replace("_", " ")}`,
    ),
    ...counts.map(([name, value]) => `${value} ${name.replace("_", " ").replace("_", " ")}`),
  ].join(", ");
}

function describeUse({ usd, spent, resets }: LimitUse): string {
  return `$${spent} of $${usd}, ${resets === null ? "never resets" : `resets at ${formatDay(resets)}`}`;
}

function describeKey(key: Key, use: KeySpending): Record<string, unknown> {
  const formatOptional = (moment: Date | null | undefined) => (moment ? formatMoment(moment) : null);
  return {
    name: key.name,
    group: key.group.name,
    platform: key.group.platform,
    disabled: key.disabled,
    created: formatOptional(key.created),
    expires: formatOptional(key.expires),
    last_used: formatOptional(use.lastUsed),
    spent_today_usd: use.spentToday,
    spent_total_usd: use.spentTotal,
    limits: listLimits(key.limits),
    limits_used: use.limits.map(({ limit, usd, spent, resets }) => ({
      limit,
      usd,
      spent_usd: spent,
      resets: formatOptional(resets),
    })),
  };
}

function stateOf(key: Key, now: Date): string {
  if (key.disabled) return "disabled";
  if (key.expires !== null && now >= key.expires) return "expired";
  return isGroupOpen(key.group, now) ? "active" : "plan inactive";
}
