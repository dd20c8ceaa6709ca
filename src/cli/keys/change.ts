// `gateway keys remove`, `disable`, `enable`, `rotate` and `move`.

import type { Edit } from "../../config/yaml/edit.ts";
import { editConfig } from "../../config/replace.ts";
import { newSecret } from "../../lib/secret.ts";
import { chooseGroup, requireSelectable } from "./group-choice.ts";
import { requireUnusedSecret } from "./add.ts";
import { type GivenSecretFlags, readGivenSecret } from "./given-secret.ts";
import {
  type ConfigFlags,
  describeGroup,
  findKey,
  formatMoment,
  openConfig,
  readExpiry,
} from "../config-access.ts";
import { printSecrets } from "./print-secrets.ts";
import { removeToolSecrets, replaceToolSecret } from "../../config/changes/tool-secrets.ts";
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
  await editConfig(path, process.env, (current) => {
    const edits = unique
      .map((name) => findKey(current, name).index)
      // From the end, so that the indexes still to come stay valid.
      .sort((a, b) => b - a)
      .map((index): Edit => ({ kind: "remove", path: ["keys", index] }));
    removeToolSecrets(unique, path);
    return edits;
  });
  printNote(`Removed ${what}.`);
}

export async function setKeysDisabled(
  names: readonly string[],
  disabled: boolean,
  flags: ChangeFlags,
): Promise<void> {
  const { path } = openConfig(flags);
  await editConfig(path, process.env, (current) =>
    [...new Set(names)].flatMap((name): Edit[] => {
      const { key, index } = findKey(current, name);
      if (key.disabled === disabled) return [];
      const setting = ["keys", index, "disabled"];
      return [disabled ? { kind: "set", path: setting, value: "true" } : { kind: "remove", path: setting }];
    }),
  );
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
  await editConfig(path, process.env, (current) => {
    const { index } = findKey(current, name);
    const at = (setting: string) => ["keys", index, setting];
    const edits: Edit[] = [
      { kind: "set", path: at("secret_sha256"), value: requireUnusedSecret(secret, current) },
      { kind: "remove", path: at("secret") },
    ];
    if (expires !== null) edits.push({ kind: "set", path: at("expires"), value: formatMoment(expires) });
    else if (flags.expires === "never") edits.push({ kind: "remove", path: at("expires") });
    replaceToolSecret(name, secret, path);
    return edits;
  });
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
  await editConfig(path, process.env, (current) => {
    requireSelectable(current, group, now);
    const { key, index } = findKey(current, name);
    return key.group.name === group ? [] : [{ kind: "set", path: ["keys", index, "group"], value: group }];
  });
  printNote(
    `The key "${name}" is bound to ${group} (${describeGroup(requireSelectable(catalog, group, now))}).`,
  );
}

function listNames(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`).join(", ");
  return names.length === 1 ? `the key ${quoted}` : `the keys ${quoted}`;
}
