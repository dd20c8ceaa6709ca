// `gateway keys` commands that change something, and `groups limit`.

import type { Catalog, Key } from "../../config/catalog.ts";
import {
  bindKey,
  createKey,
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
import { findKey, formatMoment, readExpiry, readFuture, requireNewName } from "../../config/changes/names.ts";
import { refuseUsage } from "../../lib/refusal.ts";
import { newSecret } from "../../lib/secret.ts";
import { describeGroup, openConfig, type ConfigFlags, type RemoveFlags } from "../access/config.ts";
import { askText, canPrompt, complain, confirmRemoval, printNote } from "../terminal/terminal.ts";
import { chooseGroup, explainUnusable } from "./group-choice.ts";
import { printKeySecret, readGivenSecret, type GivenSecretFlags } from "./secrets.ts";

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
  if (flags.expires === undefined && key.expires !== null && key.expires <= now)
    refuseUsage(`--expires is missing: "${name}" has expired. Give 30d, a date or never.`);
  const grace = readGrace(flags.grace, key, expires, now);
  const secret = (await readGivenSecret(flags)) ?? newSecret();
  await replaceSecret(config, name, secret, {
    ...(flags.expires !== undefined && { expires }),
    grace,
  });
  const { name: group, platform, multiplier } = key.group;
  const dates = {
    rotated: formatMoment(now),
    ...(expires !== null && { expires: formatMoment(expires) }),
    ...(grace !== null && { previous_until: formatMoment(grace) }),
  };
  const document = { name, group, platform, multiplier, secret, ...dates };
  await printKeySecret(document, flags, "has a new secret");
  const promised = key.previous !== null && key.previous.until > now;
  const ended = promised ? "Both old ones no longer work" : "The old one no longer works";
  const old = grace === null ? ended : `The old one works until ${formatMoment(grace)}`;
  printNote(`The key "${name}" has a new secret, shown only this once. ${old}.`);
}

const MAX_GRACE_MS = 366 * 86_400_000;

/** The grace ends early if the key's old or new expiry comes first. */
function readGrace(text: string | undefined, key: Key, expires: Date | null, now: Date): Date | null {
  if (text === undefined) return null;
  const end = readFuture(text, now);
  if (end === null || end <= now)
    return refuseUsage("--grace: expected a duration or a date to come, such as 1h.");
  if (end.getTime() - now.getTime() > MAX_GRACE_MS) return refuseUsage("--grace is at most 366d.");
  const unusable = explainUnusable(key, now);
  if (unusable !== null) return refuseUsage(`--grace: the old secret does not work. ${unusable}`);
  return new Date(Math.min(...[end, key.expires ?? end, expires ?? end].map(Number)));
}

export async function moveKey(name: string, flags: ConfigFlags & { readonly group?: string }): Promise<void> {
  const now = new Date();
  const config = openConfig(flags);
  const { catalog } = config;
  findKey(catalog, name);
  const group = await chooseGroup(flags.group, catalog, now);
  await bindKey(config, name, group, now);
  const described = describeGroup(requireSelectable(catalog, group, now));
  printNote(`The key "${name}" is bound to ${group} (${described}).`);
}

function listNames(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`).join(", ");
  return names.length === 1 ? `the key ${quoted}` : `the keys ${quoted}`;
}

export async function limit(
  kind: LimitHolder["kind"],
  name: string,
  words: readonly string[],
  flags: ConfigFlags,
): Promise<void> {
  const holder = { kind, name };
  const changes = readLimits(words);
  const catalog = await changeLimits(openConfig(flags), holder, changes);
  const left = Object.entries(findLimits(catalog, holder).limits);
  const now = left.map(([word, value]) => `${word} ${value}`).join(", ");
  printNote(`The ${kind} "${name}" ${now === "" ? "has no limits" : `is limited to ${now}`}.`);
}

export interface AddFlags extends ConfigFlags, GivenSecretFlags {
  readonly name?: string;
  readonly group?: string;
  readonly expires?: string;
  readonly limit?: readonly string[];
  readonly json?: true;
}

export async function addKey(word: string | undefined, flags: AddFlags): Promise<void> {
  if (word !== undefined && flags.name !== undefined) refuseUsage("--name repeats the name.");
  const now = new Date();
  const expires = readExpiry(flags.expires, now);
  const limits = readNewLimits(flags.limit);
  const config = openConfig(flags);
  const name = await chooseName(word ?? flags.name, config.catalog);
  const groupName = await chooseGroup(flags.group, config.catalog, now);
  const secret = (await readGivenSecret(flags)) ?? newSecret();
  const wanted = { name, group: groupName, secret, expires, limits, now };
  const { created, group } = await createKey(config, wanted);
  const { platform, multiplier } = group;
  const dates = { created, ...(expires !== null && { expires: formatMoment(expires) }) };
  const added = {
    name,
    group: groupName,
    platform,
    multiplier,
    secret,
    ...dates,
  };
  await printKeySecret(added, flags, "was created");
  const bound = `${groupName} (${describeGroup(group)})`;
  printNote(`The key "${name}" is bound to ${bound}. The secret is shown only this once.`);
}

async function chooseName(flag: string | undefined, catalog: Catalog): Promise<string> {
  if (flag !== undefined) return flag;
  if (!canPrompt()) return refuseUsage("--name is missing.");
  const check = complain((answer) => requireNewName("key", answer, catalog.keys));
  return askText({ message: "Name of the key", check });
}
