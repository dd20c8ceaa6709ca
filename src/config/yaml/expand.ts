// Expands `${NAME}` and `${NAME:-default}` in the values of the config file. `$${`
// is a plain `${`. Names of settings are not expanded.

import { isObject } from "../../lib/json/json.ts";
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
    if (isPlain(value)) return value;
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

/** A map of texts without references, as each of ten thousand keys may be. */
function isPlain(value: unknown): boolean {
  if (!isObject(value)) return false;
  for (const name in value) {
    const item = value[name];
    if (typeof item !== "string" || item.includes("${")) return false;
  }
  return true;
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
