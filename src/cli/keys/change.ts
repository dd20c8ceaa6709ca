// `gateway keys remove`, `disable`, `enable`, `rotate` and `move`.

import {
  bindKey,
  removeKeys as removeFromFile,
  replaceSecret,
  requireSelectable,
  switchKeys,
} from "../../config/changes/keys.ts";
import { newSecret } from "../../lib/secret.ts";
import { chooseGroup } from "./group-choice.ts";
import { type GivenSecretFlags, readGivenSecret } from "./given-secret.ts";
import { findKey, formatMoment, readExpiry } from "../../config/changes/names.ts";
import { type ConfigFlags, describeGroup, openConfig } from "../access/config.ts";
import { openConfigFile } from "../access/config-file.ts";
import { printSecrets } from "./print-secrets.ts";
import { askYes, canPrompt, fail, refuseUsage, printNote } from "../terminal/terminal.ts";

export type ChangeFlags = ConfigFlags;

export interface RemoveFlags extends ConfigFlags {
  readonly yes?: true;
}

export interface RotateFlags extends ConfigFlags, GivenSecretFlags {
  readonly expires?: string;
  readonly json?: true;
}

export interface MoveFlags extends ConfigFlags {
  readonly group?: string;
}

export async function removeKeys(names: readonly string[], flags: RemoveFlags): Promise<void> {
  const { catalog, path } = openConfig(flags);
  const unique = [...new Set(names)];
  for (const name of unique) findKey(catalog, name);
  const what = listNames(unique);
  if (flags.yes !== true) {
    if (!canPrompt()) refuseUsage(`--yes is missing: removing ${what} cannot be undone.`);
    if (!(await askYes(`Remove ${what} for good?`))) fail("Nothing was removed.");
  }
  await removeFromFile(openConfigFile(path), unique);
  printNote(`Removed ${what}.`);
}

export async function setKeysDisabled(
  names: readonly string[],
  disabled: boolean,
  flags: ChangeFlags,
): Promise<void> {
  const { path } = openConfig(flags);
  await switchKeys(openConfigFile(path), names, disabled);
  printNote(`${disabled ? "Disabled" : "Enabled"} ${listNames(names)}.`);
}

export async function rotateKey(name: string, flags: RotateFlags): Promise<void> {
  const now = new Date();
  const { catalog, path } = openConfig(flags);
  const { key } = findKey(catalog, name);
  const expires = readExpiry(flags.expires, now);
  if (flags.expires === undefined && key.expires !== null && key.expires <= now) {
    refuseUsage(`--expires is missing: "${name}" has expired. Give 30d, a date or never.`);
  }
  const own = await readGivenSecret(flags);
  const secret = own ?? newSecret();
  await replaceSecret(openConfigFile(path), name, secret, flags.expires === undefined ? undefined : expires);
  const { group } = key;
  const { platform, multiplier } = group;
  const dates = { rotated: formatMoment(now), ...(expires !== null && { expires: formatMoment(expires) }) };
  const document = { name, group: group.name, platform, multiplier, secret, ...dates };
  await printSecrets({
    lines: [flags.json === true ? JSON.stringify(document) : secret],
    names: own === null ? [name] : [],
    done: `The key "${name}" has a new secret`,
  });
  printNote(`The key "${name}" has a new secret, shown only this once. The old one no longer works.`);
}

export async function moveKey(name: string, flags: MoveFlags): Promise<void> {
  const now = new Date();
  const { catalog, path } = openConfig(flags);
  findKey(catalog, name);
  const group = await chooseGroup(flags.group, catalog, now);
  await bindKey(openConfigFile(path), name, group, now);
  printNote(
    `The key "${name}" is bound to ${group} (${describeGroup(requireSelectable(catalog, group, now))}).`,
  );
}

function listNames(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`).join(", ");
  return names.length === 1 ? `the key ${quoted}` : `the keys ${quoted}`;
}
