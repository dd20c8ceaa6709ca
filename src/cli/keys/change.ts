// `gateway keys remove`, `disable`, `enable`, `rotate`, `move` and `limit`, and `gateway groups limit`.

import {
  bindKey,
  createKey,
  explainClosed,
  listSelectableGroups,
  removeKeys as removeFromFile,
  replaceSecret,
  requireSelectable,
  switchKeys,
} from "../../config/changes/keys.ts";
import {
  changeLimits,
  findLimits,
  readLimits,
  readNewLimits,
  type LimitHolder,
} from "../../config/changes/limits.ts";
import { newSecret } from "../../lib/secret.ts";
import { printKeySecret, readGivenSecret, type GivenSecretFlags } from "./secrets.ts";
import { adviseRotation, judgeKey, type Catalog, type Group, type Key } from "../../config/catalog.ts";
import {
  checkKeyName,
  findGroup,
  findKey,
  formatMoment,
  listLimits,
  readExpiry,
  readFuture,
} from "../../config/changes/names.ts";
import {
  describeGroup,
  openConfig,
  openConfigFile,
  type ConfigFlags,
  type ListFlags,
  type RemoveFlags,
} from "../access/config.ts";
import { formatAgo, formatLocalMinute } from "../terminal/text.ts";
import {
  askOne,
  askText,
  canPrompt,
  confirmRemoval,
  fail,
  paint,
  printJson,
  printLines,
  printNote,
  refuseUsage,
} from "../terminal/terminal.ts";
import { resolve } from "node:path";
import { findConfig } from "../../config/file/find.ts";
import { createTable } from "../terminal/table.ts";
import { readSpending, type LimitSpending } from "../../billing/limits/spending.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";

export interface RotateFlags extends ConfigFlags, GivenSecretFlags {
  readonly expires?: string;
  readonly grace?: string;
  readonly json?: true;
}

export async function removeKeys(
  names: readonly string[],
  flags: RemoveFlags & { readonly missingOk?: true },
): Promise<void> {
  const config = openConfig(flags);
  const isThere = (name: string): boolean => flags.missingOk !== true || config.catalog.keys.has(name);
  const unique = [...new Set(names)].filter(isThere);
  if (unique.length === 0) return printNote("There is no such key: nothing was removed.");
  for (const name of unique) findKey(config.catalog, name);
  const what = listNames(unique);
  await confirmRemoval(what, flags);
  await removeFromFile(config, unique);
  printNote(`Removed ${what}.`);
}

export async function setKeysDisabled(
  names: readonly string[],
  disabled: boolean,
  flags: ConfigFlags,
): Promise<void> {
  await switchKeys(openConfig(flags), names, disabled);
  printNote(`${disabled ? "Disabled" : "Enabled"} ${listNames(names)}.`);
}

export async function rotateKey(name: string, flags: RotateFlags): Promise<void> {
  const now = new Date();
  const config = openConfig(flags);
  const { key } = findKey(config.catalog, name);
  const expires = readExpiry(flags.expires, now);
  if (flags.expires === undefined && key.expires !== null && key.expires <= now) {
    refuseUsage(`--expires is missing: "${name}" has expired. Give 30d, a date or never.`);
  }
  const grace = readGrace(flags.grace, key, now);
  const secret = (await readGivenSecret(flags)) ?? newSecret();
  await replaceSecret(config, name, secret, {
    ...(flags.expires !== undefined && { expires }),
    grace,
  });
  const { group } = key;
  const { platform, multiplier } = group;
  const dates = {
    rotated: formatMoment(now),
    ...(expires !== null && { expires: formatMoment(expires) }),
    ...(grace !== null && { previous_until: formatMoment(grace) }),
  };
  const document = { name, group: group.name, platform, multiplier, secret, ...dates };
  await printKeySecret(document, flags, "has a new secret");
  const old = grace === null ? "no longer works" : `works until ${formatLocalMinute(grace)}`;
  printNote(`The key "${name}" has a new secret, shown only this once. The old one ${old}.`);
}

const MAX_GRACE_MS = 366 * 86_400_000;

/** The moment until which the old secret works. It never works longer than the key did. */
function readGrace(text: string | undefined, { expires }: Key, now: Date): Date | null {
  if (text === undefined) return null;
  const end = readFuture(text, now);
  if (end === null || end <= now)
    return refuseUsage("--grace: expected a duration or a date to come, such as 1h or 2027-01-31.");
  if (end.getTime() - now.getTime() > MAX_GRACE_MS) return refuseUsage("--grace is at most 366d.");
  if (expires !== null && expires <= now) return refuseUsage("--grace: the old secret has expired.");
  return expires !== null && expires < end ? expires : end;
}

export async function moveKey(name: string, flags: ConfigFlags & { readonly group?: string }): Promise<void> {
  const now = new Date();
  const config = openConfig(flags);
  const { catalog } = config;
  findKey(catalog, name);
  const group = await chooseGroup(flags.group, catalog, now);
  await bindKey(config, name, group, now);
  printNote(
    `The key "${name}" is bound to ${group} (${describeGroup(requireSelectable(catalog, group, now))}).`,
  );
}

function listNames(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`).join(", ");
  return names.length === 1 ? `the key ${quoted}` : `the keys ${quoted}`;
}

export function limitKeys(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  return limit({ kind: "key", name }, words, flags);
}

export function limitGroup(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  return limit({ kind: "group", name }, words, flags);
}

async function limit(holder: LimitHolder, words: readonly string[], flags: ConfigFlags): Promise<void> {
  const changes = readLimits(words);
  const catalog = await changeLimits(openConfig(flags), holder, changes);
  const left = Object.entries(findLimits(catalog, holder).limits);
  const now = left.map(([name, value]) => `${name} ${value}`).join(", ");
  const subject = `The ${holder.kind} "${holder.name}"`;
  printNote(`${subject} ${now === "" ? "has no limits" : `is limited to ${now}`}.`);
}

export interface AddFlags extends ConfigFlags, GivenSecretFlags {
  readonly name?: string;
  readonly group?: string;
  readonly expires?: string;
  readonly limit?: readonly string[];
  readonly json?: true;
}

export async function addKey(flags: AddFlags): Promise<void> {
  const now = new Date();
  const expires = readExpiry(flags.expires, now);
  const limits = readNewLimits(flags.limit);
  const path = resolve(findConfig(flags.config, process.env));
  const { name, groupName } = await chooseNames(path, flags, now);
  const secret = (await readGivenSecret(flags)) ?? newSecret();
  const wanted = { name, group: groupName, secret, expires, limits, now };
  const { created, group } = await createKey(openConfigFile(path), wanted);
  const { platform, multiplier } = group;
  const dates = { created, ...(expires !== null && { expires: formatMoment(expires) }) };
  const added = { name, group: groupName, platform, multiplier, secret, ...dates };
  await printKeySecret(added, flags, "was created");
  printNote(
    `The key "${name}" is bound to ${groupName} (${describeGroup(group)}). The secret is shown only this once.`,
  );
}

/** What no flag gives is asked for. If nothing is, the config is read only once. */
async function chooseNames(path: string, flags: AddFlags, now: Date) {
  const { name, group } = flags;
  if (name !== undefined && group !== undefined) return { name, groupName: group };
  const { catalog } = openConfig({ config: path });
  const chosen = await chooseName(name, catalog);
  return { name: chosen, groupName: await chooseGroup(group, catalog, now) };
}

async function chooseName(flag: string | undefined, catalog: Catalog): Promise<string> {
  if (flag !== undefined) return flag;
  if (!canPrompt()) return refuseUsage("--name is missing.");
  return askText({ message: "Name of the key", check: (answer) => checkKeyName(answer, catalog) });
}

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

/** Why a key does not work now; null: it does. */
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

type Spent = ReturnType<ReturnType<typeof readSpending>>;

export function listKeys(flags: ListFlags & { readonly group?: string }) {
  const { catalog } = openConfig(flags);
  const group = flags.group === undefined ? null : findGroup(catalog, flags.group);
  const use = readSpending(catalog, Date.now());
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
    return { document: describeKey(key, spent, now), state: judgeKey(key, now), uses, ...moments };
  });
  const where = group === null ? "" : ` in the group "${group.name}"`;
  return {
    rows: rows.map(({ document, ...shown }) => ({ ...document, ...shown })),
    document: rows.map(({ document }) => document),
    empty: `There are no keys${where} yet. \`gateway keys add\` creates one.`,
  };
}

export function showKey(name: string, flags: ListFlags): void {
  const { catalog } = openConfig(flags);
  const { key } = findKey(catalog, name);
  const spent = readSpending(catalog, Date.now())(key.name);
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
      "old secret works": `until ${describeMoment(key.previous?.until ?? null, now)}`,
    }),
    "last used": describeMoment(spent.lastUsed, now) || "never",
    "spent today": `$${spent.spentToday}`,
    "spent in total": `$${spent.spentTotal}`,
    ...describeLimits(key, spent, now),
  };
  printLines(
    Object.entries(facts).map(
      ([title, fact]) => `${paint("dim", title.padEnd(20))}${escapeUnprintable(fact || "-")}`,
    ),
  );
}

/** By its name in the config: `$1.25 of $5 per day, resets in 3 h`, `9 requests per minute`. */
function describeLimits({ limits }: Key, { limits: used }: Spent, now: Date): Record<string, string> {
  const all = Object.entries(listLimits(limits)).map(([name, value]) => {
    const found = used.find(({ limit }) => limit === name);
    const words = name.replaceAll("_", " ");
    const [, span] = /^usd (.*)$/.exec(words) ?? [];
    const set = span === undefined ? `${value} ${words}` : `$${value} ${span}`;
    return [
      name,
      found === undefined ? set : `${describeUse(found)} of ${set}, ${describeReset(found, now)}`,
    ];
  });
  return Object.fromEntries(all);
}

/** Limits count an estimate for requests whose cost is not known. */
function describeUse({ spent, estimated }: LimitSpending): string {
  return `$${spent}${estimated === "0" ? "" : ` + $${estimated} estimated`}`;
}

function describeReset({ resets }: LimitSpending, now: Date): string {
  return resets === null ? "never resets" : `resets ${formatAgo(resets, now)}`;
}

/** `2 min ago (2026-11-20 21:15)`. */
function describeMoment(moment: Date | null, now: Date): string {
  if (moment === null) return "";
  const [ago, minute] = [formatAgo(moment, now), formatLocalMinute(moment)];
  return minute.startsWith(ago) ? minute : `${ago} (${minute})`;
}

function describeKey(key: Key, use: Spent, now: Date) {
  const format = (moment: Date | null | undefined) => (moment ? formatMoment(moment) : null);
  const { previous } = key;
  return {
    name: key.name,
    group: key.group.name,
    platform: key.group.platform,
    disabled: key.disabled,
    created: format(key.created),
    expires: format(key.expires),
    // Whether the secret before the last rotation still works.
    ...(previous !== null && now < previous.until && { previous_until: format(previous.until) }),
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
