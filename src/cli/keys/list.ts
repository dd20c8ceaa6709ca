// `gateway keys list` and `show`. They never show a secret.

import { judgeKey, type Key } from "../../config/catalog.ts";
import { type KeySpending, type LimitSpending, readSpending } from "../../billing/limits/spending.ts";
import { findGroup, findKey, formatMoment, listLimits } from "../../config/changes/names.ts";
import { type ListFlags, openConfig } from "../access/config.ts";
import { addUsd, formatRounded, formatUsd, parseDecimal, parseUsd } from "../../lib/money.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { type ListColumn, drawRows } from "../terminal/listing.ts";
import { formatAgo, formatAmount, formatLocalDay, formatLocalMinute } from "../terminal/text.ts";
import { paint, printJson, printLines, printNote } from "../terminal/terminal.ts";

/** A key, or what is left to say of its limits. */
type ListRow = Partial<
  Record<keyof ReturnType<typeof describeRow> | keyof ReturnType<typeof describeLimits>[number], string>
>;

const LIMIT_COLUMNS: ReadonlyArray<ListColumn<ListRow>> = [
  ["SPENT $", "spent", "exact", { spare: 1 }],
  // Digits are never cut, so each is there as a whole or not at all.
  ["LIMIT", "setting", "text", { least: 200, spare: 0 }],
  ["RESETS", "resets", "text", { least: 200, spare: 6 }],
];
const COLUMNS: ReadonlyArray<ListColumn<ListRow>> = [
  ["NAME", "name", "text", { name: true }],
  ["GROUP", "group", "text", { spare: 3, least: 12 }],
  ["PLATFORM", "platform", "text", { spare: 9, least: 9 }],
  ["STATE", "state", "text", { spare: 4, least: 13 }],
  ["CREATED", "created", "text", { spare: 10, least: 10 }],
  ["EXPIRES", "expires", "text", { spare: 8, least: 10 }],
  ["LAST USED", "used", "text", { spare: 7, least: 11 }],
  ["TODAY $", "today", "usd", { spare: 2 }],
  ["TOTAL $", "total", "usd", { spare: 5 }],
];

export function listKeys(flags: ListFlags & { readonly group?: string }): void {
  const { catalog } = openConfig(flags);
  const group = flags.group === undefined ? null : findGroup(catalog, flags.group);
  const use = readSpending(catalog, Date.now());
  const keys = [...catalog.keys.values()].filter((key) => group === null || key.group === group);
  if (flags.json === true) {
    printJson(keys.map((key) => describeKey(key, use(key.name), new Date())));
    return;
  }
  if (keys.length === 0) {
    const where = group === null ? "" : ` in the group "${group.name}"`;
    printNote(`There are no keys${where} yet. \`gateway keys add\` creates one.`);
    return;
  }
  const now = new Date();
  const rows = keys.flatMap((key): ListRow[] => {
    const [first = {}, ...others] = describeLimits(key, use(key.name), now);
    return [{ ...describeRow(key, use(key.name), now), ...first }, ...others];
  });
  const hasLimits = rows.some(({ setting }) => setting !== undefined);
  printLines(drawRows(rows, [...COLUMNS, ...(hasLimits ? LIMIT_COLUMNS : [])]));
}

function describeRow(key: Key, { lastUsed, spentToday, spentTotal }: KeySpending, now: Date) {
  return {
    name: key.name,
    group: key.group.name,
    platform: key.group.platform,
    state: judgeKey(key, now),
    created: formatLocalDay(key.created),
    expires: formatAgo(key.expires, now) || "never",
    used: formatAgo(lastUsed, now) || "never",
    today: spentToday,
    total: spentTotal,
  };
}

export function showKey(name: string, flags: ListFlags): void {
  const { catalog } = openConfig(flags);
  const { key } = findKey(catalog, name);
  const use = readSpending(catalog, Date.now())(key.name);
  const limits = listLimits(key.limits);
  const now = new Date();
  if (flags.json === true) {
    printJson({ ...describeKey(key, use, now), multiplier: key.group.multiplier });
    return;
  }
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["name", key.name],
    ["group", `${key.group.name} (${key.group.platform}, ×${key.group.multiplier})`],
    ["state", judgeKey(key, now)],
    ["created", describeMoment(key.created, now)],
    ["expires", describeMoment(key.expires, now) || "never"],
    ...(hasPrevious(key, now)
      ? [["old secret works", `until ${describeMoment(key.previous?.until ?? null, now)}`] as const]
      : []),
    ["last used", describeMoment(use.lastUsed, now) || "never"],
    ["spent today", `$${use.spentToday}`],
    ["spent in total", `$${use.spentTotal}`],
    ...Object.entries(limits).map(([limit, value]) => {
      const used = use.limits.find((each) => each.limit === limit);
      return [limit, used === undefined ? String(value) : describeUse(used, now)] as const;
    }),
  ];
  printLines(
    facts.map(([title, fact]) => `${paint("dim", title.padEnd(20))}${escapeUnprintable(fact || "-")}`),
  );
}

function describeLimits(key: Key, use: KeySpending, now: Date) {
  const used = new Set(use.limits.map(({ limit }) => limit));
  const others = Object.entries(listLimits(key.limits)).filter(([name]) => !used.has(name));
  return [
    ...use.limits.map(({ limit, usd, spent, estimated, resets }) => ({
      spent: formatAmount(formatUsd(addUsd(parseUsd(spent), parseUsd(estimated)))),
      setting:
        describeSetting(limit, usd) +
        (isZero(estimated) ? "" : ` ($${formatRounded(parseDecimal(estimated), 2)} of SPENT is estimated)`),
      resets: formatAgo(resets, now) || "never",
    })),
    ...others.map(([name, value]) => {
      return { spent: "", setting: describeSetting(name, String(value)), resets: "" };
    }),
  ];
}

function describeSetting(name: string, value: string): string {
  const words = name.replaceAll("_", " ");
  if (words.startsWith("usd ")) return `$${value} ${words.slice("usd ".length)}`;
  return value === "true" ? words : `${value} ${words}`;
}

function describeUse({ usd, spent, estimated, resets }: LimitSpending, now: Date): string {
  // Limits count an estimate for requests whose cost is not known.
  const more = isZero(estimated) ? "" : ` + $${estimated} estimated`;
  return `$${spent}${more} of $${usd}, ${resets === null ? "never resets" : `resets ${formatAgo(resets, now)}`}`;
}

function isZero(usd: string): boolean {
  return !/[1-9]/.test(usd);
}

/** `2 min ago (2026-11-20 21:15)`. */
function describeMoment(moment: Date | null, now: Date): string {
  if (moment === null) return "";
  const ago = formatAgo(moment, now);
  const minute = formatLocalMinute(moment);
  return minute.startsWith(ago) ? minute : `${ago} (${minute})`;
}

/** Whether the secret before the last rotation still works. */
function hasPrevious({ previous }: Key, now: Date): boolean {
  return previous !== null && now < previous.until;
}

function describeKey(key: Key, use: KeySpending, now: Date): Record<string, unknown> {
  const formatOptional = (moment: Date | null | undefined) => (moment ? formatMoment(moment) : null);
  return {
    name: key.name,
    group: key.group.name,
    platform: key.group.platform,
    disabled: key.disabled,
    created: formatOptional(key.created),
    expires: formatOptional(key.expires),
    ...(hasPrevious(key, now) && { previous_until: formatOptional(key.previous?.until) }),
    last_used: formatOptional(use.lastUsed),
    spent_today_usd: use.spentToday,
    spent_total_usd: use.spentTotal,
    limits: listLimits(key.limits),
    limits_used: use.limits.map(({ limit, usd, spent, estimated, resets }) => ({
      limit,
      usd,
      spent_usd: spent,
      ...(estimated !== "0" && { estimated_usd: estimated }),
      resets: formatOptional(resets),
    })),
  };
}
