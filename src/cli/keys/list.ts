// `gateway keys list` and `show`. They never show a secret.

import { readSpending } from "../../billing/limits/spending.ts";
import { judgeKey, type Key } from "../../config/catalog.ts";
import { findGroup, findKey, formatMoment, listLimits } from "../../config/changes/names.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { type ListFlags, openConfig } from "../access/config.ts";
import { type LedgerFlags, useLedger } from "../access/ledger-place.ts";
import { paint, printJson, printLines } from "../terminal/terminal.ts";
import { formatAgo, formatLocalMinute } from "../terminal/text.ts";

type Spent = ReturnType<ReturnType<typeof readSpending>>;

type KeyFlags = ListFlags & LedgerFlags;

export function listKeys(flags: KeyFlags & { readonly group?: string }) {
  const { catalog, isCopy } = useLedger(openConfig(flags), flags);
  const group = flags.group === undefined ? null : findGroup(catalog, flags.group);
  const use = readSpending(catalog, Date.now(), isCopy);
  const keys = [...catalog.keys.values()].filter((key) => group === null || key.group === group);
  const now = new Date();
  const rows = keys.map((key) => {
    const spent = use(key.name);
    const uses = Object.values(describeLimits(key, spent, now)).join(", ");
    const moments = {
      made: formatAgo(key.created, now),
      ends: formatAgo(key.expires, now) || "never",
      used: formatAgo(spent.lastUsed, now) || "never",
    };
    return {
      document: describeKey(key, spent, now),
      state: judgeKey(key, now),
      uses,
      ...moments,
    };
  });
  const where = group === null ? "" : ` in the group "${group.name}"`;
  return {
    rows: rows.map(({ document, ...shown }) => ({ ...document, ...shown })),
    document: rows.map(({ document }) => document),
    empty: `There are no keys${where} yet. \`gateway keys add\` creates one.`,
  };
}

export function showKey(name: string, flags: KeyFlags): void {
  const { catalog, isCopy } = useLedger(openConfig(flags), flags);
  const { key } = findKey(catalog, name);
  const spent = readSpending(catalog, Date.now(), isCopy)(key.name);
  const now = new Date();
  const document = { ...describeKey(key, spent, now), multiplier: key.group.multiplier };
  if (flags.json === true) return printJson(document);
  const facts = {
    name,
    group: `${key.group.name} (${key.group.platform}, ×${key.group.multiplier})`,
    state: judgeKey(key, now),
    created: describeMoment(key.created, now),
    expires: describeMoment(key.expires, now) || "never",
    ...(document.previous_until !== undefined && {
      "old secret ends": describeMoment(key.previous?.until ?? null, now),
    }),
    "last used": describeMoment(spent.lastUsed, now) || "never",
    "spent today": `$${spent.spentToday}`,
    "spent in total": `$${spent.spentTotal}`,
    ...describeLimits(key, spent, now),
  };
  const lines = Object.entries(facts).map(([title, fact]) => {
    return `${paint("dim", title.padEnd(20))}${escapeText(fact || "-")}`;
  });
  printLines(lines);
}

function describeLimits({ limits }: Key, { limits: used }: Spent, now: Date): Record<string, string> {
  const all = Object.entries(listLimits(limits)).map(([name, value]) => {
    const found = used.find(({ limit }) => limit === name);
    const words = name.replaceAll("_", " ");
    const [, span] = /^usd (.*)$/.exec(words) ?? [];
    const set = span === undefined ? `${value} ${words}` : `$${value} ${span}`;
    if (found === undefined) return [name, set];
    const reset = found.resets === null ? "never resets" : `resets ${formatAgo(found.resets, now)}`;
    return [name, `${describeUse(found)} of ${set}, ${reset}`];
  });
  return Object.fromEntries(all);
}

function describeUse({ spent, estimated }: Spent["limits"][number]): string {
  return `$${spent}${estimated === "0" ? "" : ` + $${estimated} estimated`}`;
}

function describeMoment(moment: Date | null, now: Date): string {
  if (moment === null) return "";
  const [ago, minute] = [formatAgo(moment, now), formatLocalMinute(moment)];
  return minute.startsWith(ago) ? minute : `${ago} (${minute})`;
}

function describeKey(key: Key, use: Spent, now: Date) {
  const format = (moment: Date | null | undefined) => (moment ? formatMoment(moment) : null);
  const { previous } = key;
  const isWorking = judgeKey(key, now) === "active";
  return {
    name: key.name,
    group: key.group.name,
    platform: key.group.platform,
    disabled: key.disabled,
    created: format(key.created),
    expires: format(key.expires),
    ...(isWorking && previous !== null && now < previous.until && { previous_until: format(previous.until) }),
    last_used: format(use.lastUsed),
    spent_today_usd: use.spentToday,
    spent_total_usd: use.spentTotal,
    limits: listLimits(key.limits),
    limits_used: use.limits.map(({ limit, usd, spent, estimated, resets }) => ({
      limit,
      usd,
      spent_usd: spent,
      ...(estimated !== "0" && { estimated_usd: estimated }),
      resets: format(resets),
    })),
  };
}
