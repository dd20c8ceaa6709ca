// Keys, as the page lists and changes them.

import { z } from "zod";
import { findWarning, listLimitUses, type LimitUse } from "../../billing/limits/alerts.ts";
import { type Catalog, type Group, judgeKey, type Key } from "../../config/catalog.ts";
import {
  bindKey,
  createKey,
  listSelectableGroups,
  removeKeys,
  replaceSecret,
  switchKeys,
} from "../../config/changes/keys.ts";
import { changeLimits, readLimits, readNewLimits } from "../../config/changes/limits.ts";
import { findKey, formatMoment, listLimits, readExpiry } from "../../config/changes/names.ts";
import { loadConfig } from "../../config/file/load.ts";
import { type ConfigFile, editConfig } from "../../config/file/replace.ts";
import { ENV_TOOLS, PLATFORM_ROWS } from "../../dialects/platforms.ts";
import { isObject } from "../../lib/json/json.ts";
import { formatUsd, subtractUsd, ZERO_USD } from "../../lib/money.ts";
import { fail, refuseUsage } from "../../lib/refusal.ts";
import { newSecret } from "../../lib/secret.ts";
import type {
  GroupChoice,
  KeyChange,
  KeyRow,
  KeysChanged,
  KeysReply,
  LimitRow,
  KeyWish,
} from "./documents.ts";
import type { ApiParts } from "./parts.ts";

/** A record of zod silently leaves out the name `__proto__`. */
const readTexts = <T extends string | null>(isText: (value: unknown) => value is T) =>
  z.custom<Readonly<Record<string, T>>>((value) => isObject(value) && Object.values(value).every(isText));
const isText = (value: unknown): value is string => typeof value === "string";
const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value);

export const newKeySchema = (): z.ZodType<KeyWish> =>
  z.strictObject({
    name: z.string(),
    group: z.string(),
    expires: z.string(),
    limits: readTexts(isText),
  });

export const changeSchema = (): z.ZodType<KeyChange> =>
  z.strictObject({
    name: z.string(),
    action: z.enum(["disable", "enable", "rotate", "move", "limit", "remove"]),
    group: z.string().optional(),
    limits: readTexts(isTextOrNull).optional(),
  });

export async function addKey(wish: KeyWish, parts: ApiParts): Promise<KeysChanged> {
  const now = new Date();
  const text = newSecret();
  const { name, group } = wish;
  const { file, problem } = openFile(parts);
  const expires = readExpiry(wish.expires, now);
  const limits = readNewLimits(writeWords(wish.limits));
  await createKey(file, { name, group, secret: text, expires, limits, now });
  return { ...listKeys(parts), problem: problem(), secret: { name, text, group } };
}

export async function changeKey(change: KeyChange, parts: ApiParts): Promise<KeysChanged> {
  const { name, action, group, limits = {} } = change;
  const { file, problem } = openFile(parts);
  const text = newSecret();
  if (action === "rotate") await replaceSecret(file, name, text, { grace: null });
  else if (action === "move")
    await bindKey(file, name, group ?? refuseUsage("The group is missing."), new Date());
  else if (action === "remove") await removeKeys(file, [name]);
  else if (action === "limit")
    await changeLimits(file, { kind: "key", name }, readLimits(writeWords(limits)));
  else await switchKeys(file, [name], action === "disable");
  const changed = { ...listKeys(parts), problem: problem() };
  if (action !== "rotate") return changed;
  return {
    ...changed,
    secret: {
      name,
      text,
      group: findKey(readCatalog(parts), name).key.group.name,
    },
  };
}

export const NO_FILE = "A demo has no config file that could be changed.";

/** The gateway uses the changed file before the page gets its answer. */
function openFile({ configPath, follow }: ApiParts) {
  const path = configPath ?? fail(NO_FILE);
  let problem: string | null = null;
  const edit: ConfigFile["edit"] = async (decide) => {
    const { catalog, sha256 } = await editConfig(path, process.env, decide);
    const outcome = await follow.config(sha256);
    if (outcome?.kind === "refused")
      problem = `The change is in the file, but the gateway refuses the file: ${outcome.message}`;
    return catalog;
  };
  return { file: { path, edit }, problem: () => problem };
}

/** Reads the file, which the gateway may have refused. */
function readCatalog({ gateway, configPath }: ApiParts): Catalog {
  if (configPath === null) return gateway.catalog;
  return loadConfig(configPath, process.env, { missing: "keep" }).catalog;
}

function writeWords(changes: Readonly<Record<string, string | null>>): string[] {
  return Object.entries(changes).map(([name, value]) => `${name}=${value ?? "none"}`);
}

export function listKeys(parts: ApiParts): KeysReply {
  const catalog = readCatalog(parts);
  const now = new Date(parts.gateway.now());
  return {
    keys: [...catalog.keys.values()].map((key) => describeKey(key, parts, now)),
    groups: listSelectableGroups(catalog, now).map(describeGroup),
    fixed: parts.configPath === null ? NO_FILE : null,
  };
}

function describeGroup({ name, platform, multiplier, description }: Group): GroupChoice {
  return {
    name,
    platform,
    multiplier,
    description,
    tools: PLATFORM_ROWS[platform].tools.filter((tool) => !ENV_TOOLS.has(tool)),
  };
}

function describeKey(key: Key, { gateway }: ApiParts, now: Date): KeyRow {
  const { ledger, catalog } = gateway;
  const { name, group } = key;
  const holder = { kind: "key", name } as const;
  const uses = listLimitUses([key], ledger.sums, now.getTime()).filter((use) => use.holder.kind === "key");
  const limitTexts = Object.entries(listLimits(key.limits)).map(([limit, value]) => [limit, String(value)]);
  return {
    name,
    group: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    state: judgeKey(key, now),
    created: key.created && formatMoment(key.created),
    expires: key.expires && formatMoment(key.expires),
    last_used: ledger.sums.lastUsed(name),
    spent_today_usd: formatUsd(ledger.sums.spentOf(holder, "day").charged),
    spent_total_usd: formatUsd(ledger.sums.spentOf(holder, "total").charged),
    limits: Object.fromEntries(limitTexts),
    limits_used: uses.map((use) => describeLimit(use, catalog.alerts.at)),
  };
}

export function describeLimit(use: LimitUse, percentages: readonly number[]): LimitRow {
  const { holder, limit, usd, spent, resets } = use;
  const left = spent < usd ? subtractUsd(usd, spent) : ZERO_USD;
  return {
    holder: { kind: holder.kind, name: holder.name },
    limit,
    usd: formatUsd(usd),
    spent_usd: formatUsd(spent),
    left_usd: formatUsd(left),
    resets: resets === null ? null : new Date(resets).toISOString(),
    warning: findWarning(use, percentages)?.percent ?? null,
  };
}
