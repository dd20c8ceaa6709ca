// Compares a request with a recorded one, except for what rules.ts calls
// volatile, and names the first difference.

import { isObject, parseJson, textOf } from "../lib/json/json.ts";
import { VOLATILE_MEMBERS, VOLATILE_TEXTS, OWN_FOLDERS } from "./rules.ts";

type Comparable = ReturnType<typeof readComparable>;

/** At most this many folders are replaced, so that the work stays linear. */
const MAX_FOLDERS = 20;

const ESCAPED_BACKSLASHES = /(?:\\\\)+/g;

/** The first difference, after `equal` equal values. */
export interface Difference {
  readonly path: string;
  readonly equal: number;
  readonly recorded: string;
  readonly sent: string;
}

export function readComparable(bytes: Uint8Array) {
  const text = new TextDecoder().decode(bytes);
  const slashed = text.replace(ESCAPED_BACKSLASHES, "/");
  const found = OWN_FOLDERS.flatMap((rule) =>
    Array.from(slashed.matchAll(rule), ([, folder = ""]) => folder.replace(/\.$/, "")),
  );
  // The agent's working folders and homes, the longest first.
  const folders = [...new Set(found)].slice(0, MAX_FOLDERS).toSorted((a, b) => b.length - a.length);
  return { text, value: parseJson(text), folders };
}

export function findDifference(recorded: Comparable, sent: Comparable): Difference | null {
  if (recorded.text === sent.text) return null;
  if (recorded.value === undefined || sent.value === undefined)
    return describe("the body", 0, recorded.text, sent.text);
  let equal = 0;
  const compare = (one: unknown, other: unknown, path: string): Difference | null => {
    const isList = Array.isArray(one) && Array.isArray(other);
    if (isList || (isObject(one) && isObject(other))) {
      for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
        if (VOLATILE_MEMBERS.some((rule) => rule.test(name))) continue;
        const place = isList ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
        const found = compare(Reflect.get(one, name), Reflect.get(other, name), place);
        if (found !== null) return found;
      }
      return null;
    }
    if (one !== other) {
      const [stable, stableSent] = [
        removeVolatile(one, recorded.folders),
        removeVolatile(other, sent.folders),
      ];
      if (!isSameButMasked(stable, stableSent)) return describe(path, equal, stable, stableSent);
    }
    equal += 1;
    return null;
  };
  return compare(recorded.value, sent.value, "");
}

const VOLATILE = "…";

function removeVolatile(value: unknown, folders: readonly string[]): unknown {
  if (typeof value !== "string") return value;
  let stable = value.replaceAll(/\\+/g, "/");
  for (const folder of folders)
    stable = stable.replace(new RegExp(`${RegExp.escape(folder)}(?![\\w-])`, "g"), VOLATILE);
  for (const rule of VOLATILE_TEXTS) stable = stable.replace(rule, VOLATILE);
  return stable;
}

/** A recording has masks in place of secrets. */
const MASK = /\*{8,}/;

function isSameButMasked(recorded: unknown, sent: unknown): boolean {
  if (recorded === sent) return true;
  if (typeof recorded !== "string" || typeof sent !== "string") return false;
  const parts = recorded.split(MASK);
  const [first = ""] = parts;
  if (parts.length === 1 || !sent.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = sent.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  const last = parts.at(-1) ?? "";
  return sent.endsWith(last) && sent.length - last.length >= at;
}

const SHOWN_CHARACTERS = 60;

function describe(path: string, equal: number, recorded: unknown, sent: unknown): Difference {
  const [one, other] = [show(recorded), show(sent)];
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  const from = Math.max(0, same - SHOWN_CHARACTERS / 2);
  const cut = (text: string): string => text.slice(from, from + SHOWN_CHARACTERS);
  return { path, equal, recorded: cut(one), sent: cut(other) };
}

function show(value: unknown): string {
  if (value === undefined) return "(nothing)";
  return textOf(value);
}
