// `gateway keys add`: a new secret, shown once, its hash in the config file.

import { resolve } from "node:path";
import type { Catalog } from "../../config/catalog.ts";
import { createKeys } from "../../config/changes/keys.ts";
import { findConfig } from "../../config/file/find.ts";
import { newSecret } from "../../lib/secret.ts";
import { chooseGroup } from "./group-choice.ts";
import { checkKeyName, formatMoment, readExpiry } from "../../config/changes/names.ts";
import { type ConfigFlags, describeGroup, openConfig, openConfigFile } from "../access/config.ts";
import { type GivenSecretFlags, readGivenSecret, printSecrets } from "./secrets.ts";
import { readNewLimits } from "../../config/changes/limits.ts";
import { askText, canPrompt, refuseUsage, printNote } from "../terminal/terminal.ts";

export interface AddFlags extends ConfigFlags, GivenSecretFlags {
  readonly name?: string;
  readonly group?: string;
  readonly count?: string;
  readonly expires?: string;
  readonly limit?: readonly string[];
  readonly json?: true;
}

const MAX_KEYS_AT_ONCE = 1000;

export async function addKeys(flags: AddFlags): Promise<void> {
  const now = new Date();
  const count = readCountFlag(flags);
  const expires = readExpiry(flags.expires, now);
  const limits = readNewLimits(flags.limit);
  const path = resolve(findConfig(flags.config, process.env));
  const { name, groupName } = await chooseNames(path, flags, now);
  const names =
    flags.count === undefined ? [name] : Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
  const own = await readGivenSecret(flags);
  const secrets = names.map(() => own ?? newSecret());
  const wanted = { names, group: groupName, secrets, expires, limits, now };
  const { created, group } = await createKeys(openConfigFile(path), wanted);
  const added = names.map((each, index) => ({
    name: each,
    group: groupName,
    platform: group.platform,
    multiplier: group.multiplier,
    secret: secrets[index] ?? "",
    created,
    ...(expires !== null && { expires: formatMoment(expires) }),
  }));
  const document = flags.count === undefined ? added[0] : added;
  const one = names.length === 1;
  await printSecrets({
    lines: flags.json === true ? [JSON.stringify(document)] : added.map(({ secret }) => secret),
    // A secret that came from stdin is not lost.
    names: own === null ? names : [],
    done: one
      ? `The key "${name}" was created`
      : `${count} keys were created, ${names[0]} to ${names.at(-1)}`,
  });
  const [keys, secretIs] = one
    ? [`The key "${names[0]}" is`, "The secret is"]
    : [`${count} keys are`, "The secrets are"];
  printNote(`${keys} bound to ${groupName} (${describeGroup(group)}). ${secretIs} shown only this once.`);
}

/** What no flag gives is asked for. If nothing is, the config is read only once: it may have ten thousand keys. */
async function chooseNames(path: string, flags: AddFlags, now: Date) {
  const { name, group } = flags;
  if (name !== undefined && group !== undefined) return { name, groupName: group };
  const { catalog } = openConfig({ config: path });
  const chosen = await chooseName(name, catalog);
  return { name: chosen, groupName: await chooseGroup(group, catalog, now) };
}

function readCountFlag({ count, secret }: AddFlags): number {
  if (count === undefined) return 1;
  if (secret !== undefined)
    return refuseUsage("--count and --secret exclude each other: a secret belongs to one key.");
  const number = Number(count);
  if (/^\d+$/.test(count) && number >= 1 && number <= MAX_KEYS_AT_ONCE) return number;
  return refuseUsage(`--count: expected a number from 1 to ${MAX_KEYS_AT_ONCE}.`);
}

async function chooseName(flag: string | undefined, catalog: Catalog): Promise<string> {
  if (flag !== undefined) return flag;
  if (!canPrompt()) return refuseUsage("--name is missing.");
  return askText({ message: "Name of the key", check: (answer) => checkKeyName(answer, catalog) });
}
