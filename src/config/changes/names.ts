// Checks what a user gives for a change of the config: names and dates.

import { fail, readGiven, refuseUsage } from "../../lib/refusal.ts";
import type { Catalog, Group, Limits } from "../catalog.ts";
import { COUNT_LIMITS, USD_LIMITS } from "../limit-names.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { toCamel } from "../schema.ts";
import { readDuration, readMoment, readName } from "../yaml/scalars.ts";

export function findGroup(catalog: Catalog, name: string): Group {
  return catalog.groups.get(name) ?? refuseUnknown("group", name, catalog.groups);
}

export function findKey(catalog: Catalog, name: string) {
  const key = catalog.keys.get(name) ?? refuseUnknown("key", name, catalog.keys);
  return { key, index: [...catalog.keys.keys()].indexOf(name) };
}

const MAX_NAMES_SHOWN = 12;

function listKnown(what: string, known: ReadonlyMap<string, unknown>): string {
  if (known.size === 0) return `There are no ${what}s yet.`;
  const more = known.size > MAX_NAMES_SHOWN ? ` and ${known.size - MAX_NAMES_SHOWN} more` : "";
  return `Known ${what}s: ${[...known.keys()].slice(0, MAX_NAMES_SHOWN).join(", ")}${more}.`;
}

export function refuseUnknown(what: string, name: string, known: ReadonlyMap<string, unknown>): never {
  return fail(`There is no ${what} "${name}"${didYouMean(name, known.keys())}. ${listKnown(what, known)}`);
}

export function requireNewName(what: string, name: string, known: ReadonlyMap<string, unknown>): void {
  if (known.has(name)) fail(`There is already a ${what} "${name}". Choose another name.`);
  readGiven(() => readName(name), `"${name}" cannot be a name`);
}

export function readExpiry(text: string | undefined, now: Date, flag = "--expires"): Date | null {
  if (text === undefined || text === "never") return null;
  const moment = readFuture(text, now);
  if (moment === null)
    return refuseUsage(`${flag}: expected a duration or a date, such as 30d or 2027-01-31.`);
  if (moment <= now) return refuseUsage(`${flag}: ${text} has passed.`);
  return moment;
}

/** Null: the text is not a time, or its year has five digits. */
export function readFuture(text: string, now: Date): Date | null {
  try {
    if (!/^\d+(\.\d+)?[a-z]+$/.test(text)) return readMoment(text);
    return readMoment(new Date(now.getTime() + readDuration(text)).toISOString());
  } catch {
    return null;
  }
}

export function formatMoment(moment: Date): string {
  return moment.toISOString().replace(/\.\d+Z$/, "Z");
}

export function listLimits(limits: Limits): Record<string, string | number> {
  const set = [...USD_LIMITS, ...COUNT_LIMITS].flatMap((name) => {
    const limit = limits[toCamel(name)];
    return limit === null ? [] : [[name, limit] as const];
  });
  return { ...Object.fromEntries(set), ...(limits.allowUnpriced && { unpriced: "allow" }) };
}
