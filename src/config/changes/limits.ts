// The limits of keys and groups in the config file.

import { refuseUsage } from "../../lib/refusal.ts";
import type { Catalog } from "../catalog.ts";
import { COUNT_LIMITS, USD_LIMITS } from "../limit-names.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { limitsSchema } from "../schema.ts";
import type { ConfigFile } from "../file/replace.ts";
import { changeSetting } from "../yaml/edit.ts";
import { findGroup, findKey, listLimits } from "./names.ts";

const LIMIT_NAMES: readonly string[] = [...USD_LIMITS, ...COUNT_LIMITS, "unpriced"];

export type LimitChanges = Readonly<Record<string, string | null>>;

/** `usd_per_day=5`, or `usd_per_day=none`. */
export function readLimits(words: readonly string[]): LimitChanges {
  return Object.fromEntries(words.map(readLimit));
}

function readLimit(word: string): [name: string, value: string | null] {
  const [name = "", ...rest] = word.split("=");
  const value = rest.join("=").replace(/^\$/, "");
  if (!LIMIT_NAMES.includes(name))
    return refuseUsage(
      `There is no limit "${name}"${didYouMean(name, LIMIT_NAMES)}. Limits: ${LIMIT_NAMES.join(", ")}.`,
    );
  if (value === "none") return [name, null];
  const { error } = limitsSchema.safeParse({ [name]: value });
  return error === undefined ? [name, value] : refuseUsage(`${name}: ${error.issues[0]?.message}, or none.`);
}

export function readNewLimits(words: readonly string[] | undefined): Readonly<Record<string, string>> {
  const set = Object.entries(readLimits(words ?? [])).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const],
  );
  return Object.fromEntries(set);
}

export interface LimitHolder {
  readonly kind: "key" | "group";
  readonly name: string;
}

export function findLimits(catalog: Catalog, { kind, name }: LimitHolder) {
  if (kind === "group")
    return { path: ["groups", name], limits: listLimits(findGroup(catalog, name).limits) };
  const { key, index } = findKey(catalog, name);
  return { path: ["keys", index], limits: listLimits(key.limits) };
}

export function changeLimits(file: ConfigFile, holder: LimitHolder, changes: LimitChanges): Promise<Catalog> {
  return file.edit((current) =>
    Object.entries(changes).map(([name, value]) =>
      changeSetting([...findLimits(current, holder).path, "limits", name], value),
    ),
  );
}
