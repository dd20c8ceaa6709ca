// `gateway keys add`: a new secret, shown once, its hash in the config file.

import type { Catalog } from "../../config/catalog.ts";
import { editConfig } from "../../config/edit.ts";
import { readSecretText } from "../../config/scalars.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import { chooseGroup, requireSelectable } from "./group-choice.ts";
import {
  checkKeyName,
  type ConfigFlags,
  describe,
  describeGroup,
  formatMoment,
  openConfig,
  readExpiry,
} from "../config-access.ts";
import { printSecrets } from "./print.ts";
import { askSecret, askText, canAsk, fail, readAll, refuseUsage, tell } from "../terminal.ts";
import { formatCount } from "../text.ts";

export interface AddFlags extends ConfigFlags {
  readonly name?: string;
  readonly group?: string;
  readonly secret?: string;
  readonly count?: string;
  readonly expires?: string;
  readonly json?: true;
}

const MOST_AT_ONCE = 1000;

export async function addKeys(flags: AddFlags): Promise<void> {
  const now = new Date();
  const count = readCountFlag(flags);
  const expires = readExpiry(flags.expires, now);
  const { catalog, path } = openConfig(flags);
  const name = await chooseName(flags.name, catalog);
  const names =
    flags.count === undefined ? [name] : Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
  requireFree(names, catalog);
  const groupName = await chooseGroup(flags.group, catalog, now);
  const own = await readOwnSecret(flags.secret);
  const secrets = names.map(() => own ?? newSecret());
  const created = formatMoment(now);
  await editConfig(path, process.env, (current) => {
    requireFree(names, current);
    requireSelectable(current, groupName, now);
    const dates = { created, ...(expires !== null && { expires: formatMoment(expires) }) };
    const values = names.map((each, index) => ({
      name: each,
      group: groupName,
      secret_sha256: requireUnused(secrets[index] ?? "", current),
      ...dates,
    }));
    return [{ kind: "append", path: ["keys"], values }];
  });
  const group = requireSelectable(catalog, groupName, now);
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
    // Whoever brought the secret has it.
    names: own === null ? names : [],
    deed: one ? `The key "${name}" was made` : `${count} keys were made, ${names[0]} to ${names.at(-1)}`,
  });
  const [keys, secretIs] = one
    ? [`The key "${names[0]}" is`, "The secret is"]
    : [`${count} keys are`, "The secrets are"];
  tell(`${keys} bound to ${groupName} (${describeGroup(group)}). ${secretIs} shown only this once.`);
}

function readCountFlag({ count, secret }: AddFlags): number {
  if (count === undefined) return 1;
  if (secret !== undefined)
    return refuseUsage("--count and --secret do not go together: a secret belongs to one key.");
  const number = Number(count);
  if (/^\d+$/.test(count) && number >= 1 && number <= MOST_AT_ONCE) return number;
  return refuseUsage(`--count: expected a number from 1 to ${MOST_AT_ONCE}.`);
}

async function chooseName(flag: string | undefined, catalog: Catalog): Promise<string> {
  if (flag !== undefined) return flag;
  if (!canAsk()) return refuseUsage("--name is missing.");
  return askText({ message: "What is the key called?", check: (answer) => checkKeyName(answer, catalog) });
}

function requireFree(names: readonly string[], catalog: Catalog): void {
  for (const name of names) {
    const complaint = checkKeyName(name, catalog);
    if (complaint === undefined) continue;
    if (catalog.keys.has(name)) fail(complaint);
    refuseUsage(complaint);
  }
}

/** From stdin, for a secret among the arguments is seen by every process of the machine. Null: make one. */
export async function readOwnSecret(flag: string | undefined): Promise<string | null> {
  if (flag === undefined) return null;
  if (flag !== "-")
    refuseUsage("--secret takes `-` only, and reads the secret from stdin: arguments are seen by others.");
  const text = canAsk()
    ? await askSecret({ message: "The key's secret", check: checkSecret })
    : (await readAll()).trim();
  const complaint = checkSecret(text);
  if (complaint !== undefined) refuseUsage(complaint);
  warnGuessable(text, "A secret");
  return text;
}

function checkSecret(text: string): string | undefined {
  try {
    readSecretText(text);
    return undefined;
  } catch (error) {
    return `The secret cannot be used: ${describe(error)}.`;
  }
}

/** Nobody counts how often a wrong one is tried. */
const SAFE_LENGTH = 16;

export function warnGuessable({ length }: string, subject: string): void {
  if (length < SAFE_LENGTH)
    tell(
      `warning: ${subject} of ${formatCount(length, "character")} may be guessed: better ones have ${SAFE_LENGTH} or more.`,
    );
}

/** Its hash. */
export function requireUnused(secret: string, catalog: Catalog): string {
  const digest = sha256Hex(secret);
  const other = catalog.keysBySha256.get(digest);
  return other === undefined ? digest : fail(`That secret belongs to the key "${other.name}" already.`);
}
