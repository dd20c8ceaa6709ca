// The system's keychain. The runtime reads it, so no other program sees a secret.

import { messageOf } from "../../lib/errors.ts";
import { type Environment, KEYCHAIN, LACK, listKeychainChannels } from "../yaml/expand.ts";
import { parseSource } from "../yaml/source.ts";

const SERVICE = "gateway";

export const systemKeychain = {
  /** Null: no secret has this name. */
  get: (name: string) => Bun.secrets.get({ service: SERVICE, name }),
  set: (name: string, value: string) => Bun.secrets.set({ service: SERVICE, name, value }),
  remove: (name: string) => Bun.secrets.delete({ service: SERVICE, name }),
};

/** A locked keychain asks its user, who may be away. */
const LIMIT_MS = 10_000;

const LATE: unique symbol = Symbol("late");

export async function askKeychain<T>(ask: Promise<T>, limitMs = LIMIT_MS): Promise<T> {
  const late = Promise.withResolvers<typeof LATE>();
  const timer = setTimeout(() => late.resolve(LATE), limitMs);
  const unusable = (error: unknown): never => {
    throw new Error(
      `no keychain can be used here (${messageOf(error)}): ` +
        `put the credential into gateway.env, and write \${NAME}`,
    );
  };
  const answer = await Promise.race([ask.catch(unusable), late.promise]).finally(() => clearTimeout(timer));
  if (answer !== LATE) return answer;
  throw new Error(`the keychain did not answer in ${limitMs / 1000} s: unlock it, and start again`);
}

export function listKeychainNames(text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [channel, name] of listKeychainChannels(parseSource(text).tree))
    names.set(name, [...(names.get(name) ?? []), channel]);
  return names;
}

/** Returns the secrets as variables,
 *  under names that no `${}` or shell can use. */
export async function readKeychain(
  text: string,
  keychain = systemKeychain,
  limitMs = LIMIT_MS,
): Promise<Environment> {
  const read = async (name: string): Promise<readonly [string, string]> => {
    try {
      const value = await askKeychain(keychain.get(name), limitMs);
      if (value !== null) return [KEYCHAIN + name, value];
    } catch (error) {
      return [LACK + name, messageOf(error)];
    }
    const advice = `\`gateway credentials set ${name}\` stores it`;
    return [LACK + name, `the keychain has no credential "${name}", or stays locked: ${advice}`];
  };
  return Object.fromEntries(await Promise.all([...listKeychainNames(text).keys()].map(read)));
}
