// `${NAME}` and `${NAME:-default}` in the values of the config file. `$${` is a
// plain `${`. Names of settings are left alone.

import type { Path } from "./source.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Expansion {
  readonly tree: unknown;
  readonly problems: ReadonlyArray<{ readonly path: Path; readonly message: string }>;
  /** Values that the environment had a part in: they may be secrets wherever they stand. */
  readonly taken: ReadonlySet<string>;
}

/** `missing`: what an unset variable without a default does. A command that only looks at keys and groups keeps the
 *  reference as it stands, so that it works in a shell without the credentials; a gateway must not start so. */
export function expandTree(tree: unknown, env: Environment, missing: "refuse" | "keep"): Expansion {
  const problems: Array<{ path: Path; message: string }> = [];
  const taken = new Set<string>();
  const expand = (value: unknown, path: Path): unknown => {
    if (typeof value === "string") {
      const text = expandText(value, env, (reference, message) => {
        if (missing === "refuse") problems.push({ path, message });
        return reference;
      });
      if (text !== value) taken.add(text);
      return text;
    }
    if (Array.isArray(value)) return value.map((item, index) => expand(item, [...path, index]));
    if (typeof value !== "object" || value === null) return value;
    // An empty entry (`keys:` with nothing behind it) is the same as none.
    const entries = Object.entries(value).map(([name, item]) => [
      name,
      item === null ? undefined : expand(item, [...path, name]),
    ]);
    return Object.fromEntries(entries);
  };
  return { tree: expand(tree, []), problems, taken };
}

type Refuse = (reference: string, message: string) => string;

function expandText(text: string, env: Environment, refuse: Refuse): string {
  if (!text.includes("${")) return text;
  return text.replaceAll(/\$?\$\{([^}]*)\}?/g, (reference: string, inside: string) => {
    if (reference.startsWith("$$")) return reference.slice(1);
    const [, name = "", fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inside) ?? [];
    if (name === "" || !reference.endsWith("}")) {
      return refuse(reference, "expected ${NAME} or ${NAME:-default}; a plain ${ is written $${");
    }
    const value = env[name];
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback !== undefined) return fallback;
    return refuse(
      reference,
      `the environment variable ${name} is not set (set it, or write \${${name}:-default})`,
    );
  });
}

/** The variables without which a config cannot be used: those that its text names, outside comments, without a default. */
export function listReferences(text: string): string[] {
  const plain = text.replaceAll(/^\s*#.*$/gm, "");
  const names = [...plain.matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name ?? "");
  return [...new Set(names)];
}

/** Every variable that these values would read, with a default or without. */
export function listVariables(tree: unknown): string[] {
  const names = new Set<string>();
  const nothing: Environment = {};
  const watched = new Proxy(nothing, {
    get: (_, name) => {
      names.add(String(name));
      return undefined;
    },
  });
  expandTree(tree, watched, "keep");
  return [...names];
}
