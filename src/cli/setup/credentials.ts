// The actions of `gateway credentials`: the system's keychain, for channels with `credential: keychain:NAME`. The runtime
// talks to it, so that no secret is an argument or a variable of another program.

import { findConfig } from "../../config/file/find.ts";
import { askKeychain, listKeychainNames, systemKeychain } from "../../config/file/keychain.ts";
import { readConfigText } from "../../config/file/load.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import type { ConfigFlags } from "../access/config.ts";
import { askSecret, canPrompt, fail, printNote, readAll, refuseUsage } from "../terminal/terminal.ts";
import { complain } from "./provider.ts";
import { parseEnvFile, placeEnvFile } from "../../config/file/env-file.ts";
import { lockConfig } from "../../config/file/replace.ts";
import { readOwn, removeDrafts, replaceFile, requireOwn } from "../../lib/files/own-file.ts";

const explainSecret = complain(readSecretText);
const AFTER = "A running gateway reads it at its next start, or when its config changes.";

export async function setCredential(name: string): Promise<void> {
  requireName(name);
  const message = `The credential "${name}"`;
  const secret = canPrompt() ? await askSecret({ message, check: explainSecret }) : (await readAll()).trim();
  const fault = explainSecret(secret);
  if (fault !== undefined) refuseUsage(`The credential cannot be used: it ${fault}.`);
  await reach(systemKeychain.set(name, secret));
  printNote(`The keychain has it. A channel uses it with \`credential: keychain:${name}\`. ${AFTER}`);
}

export async function removeCredential(name: string): Promise<void> {
  requireName(name);
  if (!(await reach(systemKeychain.remove(name))))
    fail(`The keychain has no credential "${name}" of the gateway.`);
  printNote(`Removed "${name}" from the keychain. ${AFTER}`);
}

/** Keychains do not list what they have, so these are the names in the config. */
export async function listCredentials(flags: ConfigFlags) {
  const names = listKeychainNames(readConfigText(findConfig(flags.config, process.env)));
  const faults = new Set<string>();
  const rows = await Promise.all(
    Array.from(names, async ([name, channels]) => ({ name, channels, stored: await isStored(name, faults) })),
  );
  for (const fault of faults) printNote(`${fault}.`);
  return { rows, empty: "No channel of the config has `credential: keychain:NAME`." };
}

/** Null: the keychain cannot be asked. */
async function isStored(name: string, faults: Set<string>): Promise<boolean | null> {
  try {
    return (await askKeychain(systemKeychain.get(name))) !== null;
  } catch (error) {
    faults.add(getErrorMessage(error));
    return null;
  }
}

function requireName(name: string): void {
  if (!/^[\w.-]{1,64}$/.test(name))
    refuseUsage("A name has letters, digits, dots, dashes and underscores, at most 64.");
}

async function reach<T>(ask: Promise<T>): Promise<T> {
  try {
    return await askKeychain(ask);
  } catch (error) {
    return fail(`${getErrorMessage(error)}.`);
  }
}

/** Keeps the other lines as they are, and what other commands add at the same time. Null removes a variable. */
export async function changeVariables(
  configPath: string,
  variables: Readonly<Record<string, string | null>>,
): Promise<void> {
  const all = Object.entries(variables);
  const added = all.flatMap(([name, value]) => (value === null ? [] : [`${name}=${quoteValue(value)}`]));
  if (all.length === 0) return;
  requireWritable(configPath, variables);
  const { owner, lock } = await lockConfig(configPath);
  try {
    const path = placeEnvFile(configPath);
    removeDrafts(path);
    const kept = (readOwn(path) ?? "# Credentials that the config refers to.\n")
      .split("\n")
      .filter((line) => !parseEnvFile(line)?.some(({ name }) => name in variables));
    const lines = [...kept.join("\n").trimEnd().split("\n"), ...added];
    const text = lines.filter((line, index) => index > 0 || line !== "").join("\n");
    replaceFile(path, `${text}\n`, { mode: 0o600, durable: true, owner, secret: true });
  } finally {
    lock.release();
  }
}

/** A link is read, as dotfile managers make one. A file in its place would hide the variables that it leads to. */
export function requireWritable(
  configPath: string,
  variables: Readonly<Record<string, string | null>>,
): void {
  const lines = Object.keys(variables).map((name) => `${name}=…`);
  if (lines.length === 0) return;
  for (const [name, value] of Object.entries(variables)) {
    // A line break would begin another variable.
    const fault = value === null ? undefined : complain(readSecretText)(value);
    if (fault !== undefined) fail(`Nothing was changed: the credential for ${name}: ${fault}.`);
  }
  try {
    requireOwn(placeEnvFile(configPath));
  } catch (error) {
    fail(
      `The credential was not stored and nothing was changed: ${getErrorMessage(error)}. Or add ${lines.join(" and ")} to that file yourself.`,
    );
  }
}

/** As shells, systemd and this program read it. No shell runs or replaces any part of it. */
function quoteValue(value: string): string {
  if (/^[\w.:/+=-]+$/.test(value)) return value;
  return value.includes("'") ? `"${value.replaceAll(/["\\$`]/g, "\\$&")}"` : `'${value}'`;
}
