// `keys add --limit`, `keys limit` and `groups limit`: limits without an editor.

import { changeLimits, findLimits, type LimitHolder, readLimits } from "../../config/changes/limits.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { printNote } from "../terminal/terminal.ts";

export function limitKeys(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  return limit({ kind: "key", name }, words, flags);
}

export function limitGroup(name: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  return limit({ kind: "group", name }, words, flags);
}

async function limit(holder: LimitHolder, words: readonly string[], flags: ConfigFlags): Promise<void> {
  const changes = readLimits(words);
  const catalog = await changeLimits(openConfig(flags), holder, changes);
  const left = Object.entries(findLimits(catalog, holder).limits);
  const now = left.map(([name, value]) => `${name} ${value}`).join(", ");
  const subject = `The ${holder.kind} "${holder.name}"`;
  printNote(`${subject} ${now === "" ? "has no limits" : `is limited to ${now}`}.`);
}
