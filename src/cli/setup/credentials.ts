// `gateway credentials`: secrets in the system's keychain.

import { findConfig } from "../../config/file/find.ts";
import { askKeychain, listKeychainNames, systemKeychain } from "../../config/file/keychain.ts";
import { readConfigText } from "../../config/file/load.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { messageOf } from "../../lib/errors.ts";
import { fail, refuseUsage } from "../../lib/refusal.ts";
import type { ConfigFlags } from "../access/config.ts";
import { askSecret, canPrompt, complain, printNote, readAll } from "../terminal/terminal.ts";

const AFTER = "The gateway reads the keychain at its start and when its config changes.";

export async function setCredential(name: string): Promise<void> {
  requireName(name);
  const message = `The credential "${name}"`;
  const check = complain(readSecretText);
  const secret = canPrompt() ? await askSecret({ message, check }) : (await readAll()).trim();
  const fault = check(secret);
  if (fault !== undefined) refuseUsage(`The credential cannot be used: ${fault}.`);
  await reach(systemKeychain.set(name, secret));
  printNote(`The keychain has it. A channel uses it with \`credential: keychain:${name}\`. ${AFTER}`);
}

export async function removeCredential(name: string): Promise<void> {
  requireName(name);
  if (!(await reach(systemKeychain.remove(name))))
    fail(`The keychain has no credential "${name}" of the gateway.`);
  printNote(`Removed "${name}" from the keychain. ${AFTER}`);
}

/** The config has the names: keychains do not list them. */
export async function listCredentials(flags: ConfigFlags) {
  const names = listKeychainNames(readConfigText(findConfig(flags.config, process.env)));
  const faults = new Set<string>();
  const rows = await Promise.all(
    Array.from(names, async ([name, channels]) => {
      return { name, channels, stored: await isStored(name, faults) };
    }),
  );
  for (const fault of faults) printNote(`${fault}.`);
  return { rows, empty: "No channel of the config has `credential: keychain:NAME`." };
}

async function isStored(name: string, faults: Set<string>): Promise<boolean | null> {
  try {
    return (await askKeychain(systemKeychain.get(name))) !== null;
  } catch (error) {
    faults.add(messageOf(error));
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
    return fail(`${messageOf(error)}.`);
  }
}
