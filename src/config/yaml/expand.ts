// Expands `${NAME}`, `${NAME:-default}` and keychain credentials. `$${` is `${`.

import { getField, isObject } from "../../lib/json/json.ts";
import { looksSecret } from "../../lib/secret.ts";
import type { Path } from "./source.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A credential `keychain:NAME` stands for the secret in the variable `keychain:NAME`. */
export const KEYCHAIN = "keychain:";
/** A variable with this prefix says why the keychain gave nothing. */
export const LACK = "keychain lacks:";

/** `isUsed`: the command needs the channels' credentials. */
export function expandTree(tree: unknown, env: Environment, isUsed = false) {
  const unset: Array<{ readonly path: Path; readonly message: string }> = [];
  /** Any of them may be a secret. */
  const fromEnvironment = new Set<string>();
  const lacking = new Map<string, string>();
  // An environment inherits `constructor` and the like.
  const lookUp = (name: string) => (Object.hasOwn(env, name) ? env[name] : undefined);
  const expandKeychain = (text: string, channel: string): string => {
    const secret = lookUp(text);
    const reason = lookUp(LACK + text.slice(KEYCHAIN.length));
    if (secret === undefined && (isUsed || reason !== undefined))
      lacking.set(channel, reason ?? "the keychain was not asked for its credential");
    return secret ?? text;
  };
  const expand = (value: unknown, path: Path): unknown => {
    if (typeof value === "string") {
      const text = isInKeychain(value, path)
        ? expandKeychain(value, String(path[1]))
        : expandText(value, lookUp, (message) => unset.push({ path, message }));
      if (text !== value) fromEnvironment.add(text);
      return text;
    }
    if (Array.isArray(value)) return value.map((item, index) => expand(item, [...path, index]));
    if (!isObject(value)) return value;
    // An empty entry counts as missing.
    const entries = Object.entries(value).map(([name, item]) => [
      name,
      item === null ? undefined : expand(item, [...path, name]),
    ]);
    return Object.fromEntries(entries);
  };
  return {
    tree: expand(tree, []),
    unset,
    fromEnvironment,
    lacking,
  };
}

/** `value` is from the file: a variable's value cannot refer to the keychain. */
function isInKeychain(value: string, [section, , setting]: Path): boolean {
  return section === "channels" && setting === "credential" && value.startsWith(KEYCHAIN);
}

export function listKeychainChannels(source: unknown) {
  return Object.entries(getField(source, "channels") ?? {}).flatMap(([channel, settings]) => {
    const credential = getField(settings, "credential");
    const isThere = typeof credential === "string" && credential.startsWith(KEYCHAIN);
    return isThere ? [[channel, credential.slice(KEYCHAIN.length)] as const] : [];
  });
}

const REFERENCE = /\$?\$\{([^}]*)\}?/g;
const INSIDE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

function expandText(
  text: string,
  lookUp: (name: string) => string | undefined,
  refuse: (message: string) => void,
): string {
  return text.replaceAll(REFERENCE, (reference: string, inside: string) => {
    if (reference.startsWith("$$")) return reference.slice(1);
    const [, name = "", fallback] = INSIDE.exec(inside) ?? [];
    const value = name === "" ? undefined : lookUp(name);
    if (name === "" || !reference.endsWith("}"))
      refuse("expected ${NAME} or ${NAME:-default}; a plain ${ is written $${");
    else if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    else if (fallback !== undefined) return fallback;
    else {
      // A user may have written a secret in place of its name.
      const [shown, advice] = looksSecret(name) ? ["of this name", "NAME"] : [name, name];
      refuse(
        `the environment variable ${shown} is not set (set it, ` +
          `add it to gateway.env, or write \${${advice}:-default})`,
      );
    }
    return reference;
  });
}

/** `isNeeded`: only variables without a default. */
export function listVariables(tree: unknown, isNeeded = false): string[] {
  if (typeof tree !== "string")
    return [...new Set(Object.values(tree ?? {}).flatMap((value) => listVariables(value, isNeeded)))];
  return [...tree.matchAll(REFERENCE)].flatMap(([reference, inside = ""]) => {
    const [, name, fallback] = INSIDE.exec(inside) ?? [];
    const isOther = reference.startsWith("$$") || (isNeeded && fallback !== undefined);
    return name === undefined || isOther ? [] : name;
  });
}
