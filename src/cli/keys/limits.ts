// `keys add --limit`, `keys limit` and `groups limit`: limits without an editor.

import type { Catalog } from "../../config/catalog.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { editConfig } from "../../config/replace.ts";
import { type ConfigFlags, findGroup, findKey, listLimits, openConfig } from "../config-access.ts";
import { refuseUsage, printNote } from "../terminal/terminal.ts";

const USD_LIMITS = ["usd_per_day", "usd_per_month", "usd_total", "usd_per_session"] as const;
const COUNT_LIMITS = [
  "requests_per_minute",
  "requests_per_minute_per_session",
  "concurrent_requests",
] as const;
export const LIMIT_NAMES: readonly string[] = [...USD_LIMITS, ...COUNT_LIMITS];

/** By name; null removes the limit. */
export type LimitChanges = Readonly<Record<string, string | null>>;

/** `usd_per_day=5`, or `usd_per_day=none`. */
function readLimits(words: readonly string[]): LimitChanges {
  return Object.fromEntries(words.map(readLimit));
}

function readLimit(word: string): [name: string, value: string | null] {
  const mark = word.indexOf("=");
  const [name, value] =
    mark < 0 ? [word, ""] : [word.slice(0, mark), word.slice(mark + 1).replace(/^\$/, "")];
  if (!LIMIT_NAMES.includes(name))
    return refuseUsage(
      `There is no limit "${name}"${suggestNearest(name, LIMIT_NAMES)}. Limits: ${LIMIT_NAMES.join(", ")}.`,
    );
  if (value === "none") return [name, null];
  const isUsd = USD_LIMITS.some((each) => each === name);
  if (isUsd ? !/^\d+(\.\d+)?$/.test(value) : !/^[1-9]\d*$/.test(value))
    return refuseUsage(
      `${name}: expected ${isUsd ? "an amount in USD, such as 5 or 0.50" : "a number from 1"}, or none.`,
    );
  return [name, value];
}

/** For a new key, which has no limits to remove. */
export function readNewLimits(words: readonly string[] | undefined): Readonly<Record<string, string>> {
  const set = Object.entries(readLimits(words ?? [])).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const],
  );
  return Object.fromEntries(set);
}

export function limitKeys(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  return changeLimits(words, flags, `The key "${name}"`, (catalog) => {
    const { key, index } = findKey(catalog, name);
    return { path: ["keys", index], limits: listLimits(key.limits) };
  });
}

export function limitGroup(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  return changeLimits(words, flags, `The group "${name}"`, (catalog) => ({
    path: ["groups", name],
    limits: listLimits(findGroup(catalog, name).limits),
  }));
}

interface Holder {
  readonly path: ReadonlyArray<string | number>;
  readonly limits: Readonly<Record<string, string | number | boolean>>;
}

async function changeLimits(
  words: readonly string[],
  flags: ConfigFlags,
  subject: string,
  find: (catalog: Catalog) => Holder,
): Promise<void> {
  const changes = readLimits(words);
  const { path } = openConfig(flags);
  const catalog = await editConfig(path, process.env, (current) => planEdits(find(current), changes));
  const left = Object.entries(find(catalog).limits);
  const now = left.map(([name, value]) => `${name} ${value}`).join(", ");
  printNote(`${subject} ${now === "" ? "has no limits" : `is limited to ${now}`}.`);
}

function planEdits({ path }: Holder, changes: LimitChanges): Edit[] {
  return Object.entries(changes).map(([name, value]): Edit => {
    const place = [...path, "limits", name];
    return value === null ? { kind: "remove", path: place } : { kind: "set", path: place, value };
  });
}
