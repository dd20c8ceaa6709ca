// Creates and changes keys in the config file.
// The file gets only hashes of secrets.

import { sha256Hex } from "../../lib/secret.ts";
import { fail } from "../../lib/refusal.ts";
import { adviseActivation, type Catalog, type Group, isGroupOpen } from "../catalog.ts";
import type { ConfigFile } from "../file/replace.ts";
import { changeSetting, type Edit } from "../yaml/edit.ts";
import { findGroup, findKey, formatMoment, requireNewName } from "./names.ts";
import { removeToolSecrets, replaceToolSecret } from "./tool-secrets.ts";

export function listSelectableGroups(catalog: Catalog, now: Date): Group[] {
  return [...catalog.groups.values()].filter((group) => isGroupOpen(group, now));
}

export function requireSelectable(catalog: Catalog, name: string, now: Date): Group {
  const group = findGroup(catalog, name);
  return isGroupOpen(group, now) ? group : fail(explainClosed(group, now));
}

export function explainClosed({ name, plans: [plan] }: Group, now: Date): string {
  const advice =
    plan === undefined ? "No plan includes it" : `\`${adviseActivation(plan, now)}\` activates the plan`;
  return `The group "${name}" is exclusive to a plan that is not active. ${advice}.`;
}

export interface NewKey {
  readonly name: string;
  readonly group: string;
  readonly secret: string;
  /** Null: the key never expires. */
  readonly expires: Date | null;
  readonly limits: Readonly<Record<string, string>>;
  readonly now: Date;
}

export async function createKey(file: ConfigFile, { name, group, secret, expires, limits, now }: NewKey) {
  // Charges before this time do not count: a removed key may have had this name.
  const created = now.toISOString();
  const { groups } = await file.edit((current) => {
    requireNewName("key", name, current.keys);
    requireSelectable(current, group, now);
    const value = {
      name,
      group,
      secret_sha256: requireUnusedSecret(secret, current),
      created,
      ...(expires !== null && { expires: formatMoment(expires) }),
      ...(Object.keys(limits).length > 0 && { limits }),
    };
    return [{ kind: "append", path: ["keys"], values: [value] }];
  });
  return { created, group: groups.get(group) ?? fail(`The group "${group}" is gone.`) };
}

function requireUnusedSecret(secret: string, catalog: Catalog): string {
  const digest = sha256Hex(secret);
  const other = catalog.keysBySha256.get(digest);
  return other === undefined ? digest : fail(`The key "${other.name}" already has that secret.`);
}

export async function removeKeys(file: ConfigFile, names: readonly string[]): Promise<void> {
  await file.edit((current) => {
    const edits = names
      .map((name) => findKey(current, name).index)
      // From the end: the remaining indexes stay valid.
      .sort((a, b) => b - a)
      .map((index): Edit => ({ kind: "remove", path: ["keys", index] }));
    removeToolSecrets(names, file.path);
    return edits;
  });
}

export async function switchKeys(
  file: ConfigFile,
  names: readonly string[],
  disabled: boolean,
): Promise<void> {
  await file.edit((current) =>
    [...new Set(names)].flatMap((name) => {
      const { key, index } = findKey(current, name);
      if (key.disabled === disabled) return [];
      return [changeSetting(["keys", index, "disabled"], disabled ? "true" : null)];
    }),
  );
}

export interface Rotation {
  /** Null: never. Undefined: unchanged. */
  readonly expires?: Date | null | undefined;
  readonly grace: Date | null;
}

export async function replaceSecret(
  file: ConfigFile,
  name: string,
  secret: string,
  { expires, grace }: Rotation,
): Promise<void> {
  await file.edit((current) => {
    const { key, index } = findKey(current, name);
    const promised = key.previous?.until;
    if (grace !== null && promised !== undefined && promised > new Date())
      fail(
        `--grace: "${name}" has an earlier secret until ${formatMoment(promised)}. ` +
          "Rotate after that, or without --grace.",
      );
    const at = (setting: string) => ["keys", index, setting];
    const edits = [
      changeSetting(at("previous"), grace && { secret_sha256: key.secretSha256, until: formatMoment(grace) }),
      changeSetting(at("secret_sha256"), requireUnusedSecret(secret, current)),
      changeSetting(at("secret"), null),
      ...(expires === undefined ? [] : [changeSetting(at("expires"), expires && formatMoment(expires))]),
    ];
    replaceToolSecret(name, secret, file.path);
    return edits;
  });
}

export async function bindKey(file: ConfigFile, name: string, group: string, now: Date): Promise<void> {
  await file.edit((current) => {
    requireSelectable(current, group, now);
    const { key, index } = findKey(current, name);
    return key.group.name === group ? [] : [{ kind: "set", path: ["keys", index, "group"], value: group }];
  });
}
