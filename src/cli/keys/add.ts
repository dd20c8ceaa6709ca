// `gateway keys add`: a new secret, shown once, its hash in the config file.

import { resolve } from "node:path";
import type { Catalog } from "../../config/catalog.ts";
import { createKey } from "../../config/changes/keys.ts";
import { findConfig } from "../../config/file/find.ts";
import { newSecret } from "../../lib/secret.ts";
import { chooseGroup } from "./group-choice.ts";
import { checkKeyName, formatMoment, readExpiry } from "../../config/changes/names.ts";
import { type ConfigFlags, describeGroup, openConfig, openConfigFile } from "../access/config.ts";
import { type GivenSecretFlags, printKeySecret, readGivenSecret } from "./secrets.ts";
import { readNewLimits } from "../../config/changes/limits.ts";
import { askText, canPrompt, refuseUsage, printNote } from "../terminal/terminal.ts";

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
