// Expands `${NAME}` and `${NAME:-default}` in the values of the config file. `$${`
// is a plain `${`. Names of settings are not expanded.

import { getField, isObject } from "../../lib/json/json.ts";
import { looksSecret } from "../../lib/secret.ts";
import type { Path } from "./source.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Expansion {
  readonly tree: unknown;
  /** The references that could not be expanded, and why. They are still in the tree as text. */
  readonly unset: ReadonlyArray<{ readonly path: Path; readonly message: string }>;
  /** Values that contain text from the environment. They may be secrets, in whichever setting they are. */
  readonly fromEnvironment: ReadonlySet<string>;
}

export function expandTree(tree: unknown, env: Environment): Expansion {
  // Own variables only: a process's environment inherits `constructor`, `toString` and the like.
  return expandWith(tree, (name) => (Object.hasOwn(env, name) ? env[name] : undefined));
}

type Lookup = (name: string) => string | undefined;

function expandWith(tree: unknown, lookUp: Lookup): Expansion {
  const unset: Array<{ path: Path; message: string }> = [];
  const taken = new Set<string>();
  const expand = (value: unknown, path: Path): unknown => {
    if (typeof value === "string") {
      const text = expandText(value, lookUp, (reference, message) => {
        unset.push({ path, message });
        return reference;
      });
      if (text !== value) taken.add(text);
      return text;
    }
    if (Array.isArray(value)) return value.map((item, index) => expand(item, [...path, index]));
    if (typeof value !== "object" || value === null) return value;
    // An empty entry (`keys:` with nothing after it) is the same as no entry.
    const entries = Object.entries(value).map(([name, item]) => [
      name,
      item === null ? undefined : expand(item, [...path, name]),
    ]);
    return Object.fromEntries(entries);
  };
  return { tree: expand(tree, []), unset, fromEnvironment: taken };
}

// ── The system's keychain ────────────────────────────────────────────────────
// Only what the file itself says is a reference to it: the value of a variable is a credential, however it begins.

export const KEYCHAIN = "keychain:";
/** Before the name: a variable that says why the keychain gave no credential. */
export const LACK = "keychain lacks:";

/** The channels whose credential is there, each with its name there. `source` is not expanded yet. */
export function listKeychainChannels(
  source: unknown,
): ReadonlyArray<readonly [channel: string, name: string]> {
  const channels = getField(source, "channels");
  return Object.entries(isObject(channels) ? channels : {}).flatMap(([channel, settings]) => {
    const credential = getField(settings, "credential");
    const isThere = typeof credential === "string" && credential.startsWith(KEYCHAIN);
    return isThere ? [[channel, credential.slice(KEYCHAIN.length)] as const] : [];
  });
}

export interface KeychainFilling {
  readonly tree: unknown;
  readonly secrets: readonly string[];
  /** By channel, why it has no credential. */
  readonly lacking: ReadonlyMap<string, string>;
}

/** `env` has what the keychain gave, if it was asked. `isUsed`: a channel without its credential cannot be used. */
export function fillFromKeychain(
  source: unknown,
  tree: unknown,
  env: Environment,
  isUsed: boolean,
): KeychainFilling {
  const lacking = new Map<string, string>();
  const secrets: string[] = [];
  const channels = getField(tree, "channels");
  const filled: Record<string, unknown> = isObject(channels) ? { ...channels } : {};
  for (const [channel, name] of listKeychainChannels(source)) {
    const secret = env[KEYCHAIN + name];
    const reason = env[LACK + name] ?? (isUsed ? "the keychain was not asked for its credential" : undefined);
    const settings = filled[channel];
    if (secret !== undefined && isObject(settings)) {
      secrets.push(secret);
      filled[channel] = { ...settings, credential: secret };
    } else if (reason !== undefined) lacking.set(channel, reason);
  }
  return {
    tree: secrets.length === 0 || !isObject(tree) ? tree : { ...tree, channels: filled },
    secrets,
    lacking,
  };
}

type Refuse = (reference: string, message: string) => string;

function expandText(text: string, lookUp: Lookup, refuse: Refuse): string {
  if (!text.includes("${")) return text;
  return text.replaceAll(/\$?\$\{([^}]*)\}?/g, (reference: string, inside: string) => {
    if (reference.startsWith("$$")) return reference.slice(1);
    const [, name = "", fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inside) ?? [];
    if (name === "" || !reference.endsWith("}")) {
      return refuse(reference, "expected ${NAME} or ${NAME:-default}; a plain ${ is written $${");
    }
    const value = lookUp(name);
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback !== undefined) return fallback;
    // A secret may have been written where its name belongs.
    const shown = looksSecret(name) ? "of this name" : name;
    const advice = looksSecret(name) ? "${NAME:-default}" : `\${${name}:-default}`;
    return refuse(
      reference,
      `the environment variable ${shown} is not set (set it, add it to gateway.env beside the config, or write ${advice})`,
    );
  });
}

/** The variables that a config needs: those in its text, outside comments, without a default. */
export function listReferences(text: string): string[] {
  const plain = text.replaceAll(/^\s*#.*$/gm, "");
  const names = [...plain.matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name ?? "");
  return [...new Set(names)];
}

/** Every variable that these values read, with a default or without. */
export function listVariables(tree: unknown): string[] {
  const names = new Set<string>();
  expandWith(tree, (name) => {
    names.add(name);
    return undefined;
  });
  return [...names];
}
