// `NAME=VALUE` words that change one entry of the config without an editor: `channels set`, `groups set`, `prices set`.
// What a value may be is the config's schema, which is checked before the file is written.

import type { Edit } from "../../config/yaml/edit.ts";
import type { Path } from "../../config/yaml/source.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { refuseUsage } from "../terminal/terminal.ts";

/** `list`: words with commas between them. `map`: `aliases.NAME=VALUE`. `required`: it cannot be removed. */
interface Setting {
  readonly form: "text" | "list" | "map";
  readonly required?: true;
}

/** By its name in the config; with a point, it is in a section of the entry. */
export type Settings = Readonly<Record<string, Setting>>;

export interface Change {
  /** Below the entry. */
  readonly path: readonly string[];
  /** Null removes the setting. */
  readonly value: string | readonly string[] | null;
}

export function readChanges(words: readonly string[], settings: Settings): Change[] {
  return words.map((word) => readChange(word, settings));
}

function readChange(word: string, settings: Settings): Change {
  const mark = word.indexOf("=");
  const [name, value] = mark < 0 ? [word, null] : [word.slice(0, mark), word.slice(mark + 1)];
  const { setting, path } = findSetting(name, settings);
  if (value === null || value === "") return refuseUsage(`${name}: expected ${name}=VALUE or ${name}=none.`);
  if (value === "none") {
    if (setting.required === true) refuseUsage(`${name} cannot be removed.`);
    return { path, value: null };
  }
  const isList = setting.form === "list";
  return { path, value: isList ? value.split(",").map((each) => each.trim()) : value };
}

function findSetting(name: string, settings: Settings): { setting: Setting; path: readonly string[] } {
  const exact = settings[name];
  if (exact !== undefined && exact.form !== "map") return { setting: exact, path: name.split(".") };
  const point = name.indexOf(".");
  const [section, below] = [name.slice(0, point), name.slice(point + 1)];
  const map = point < 0 ? undefined : settings[section];
  // The name of a model or header may have points of its own.
  if (map?.form === "map" && below !== "") return { setting: map, path: [section, below] };
  const known = Object.entries(settings).map(([each, { form }]) => (form === "map" ? `${each}.NAME` : each));
  return refuseUsage(
    `There is no setting "${name}"${suggestNearest(name, known)}. Settings: ${known.join(", ")}.`,
  );
}

/** `priority 2`, or `no proxy`. */
export function describeChange({ path, value }: Change): string {
  const setting = path.join(".");
  if (value === null) return `no ${setting}`;
  // A credential or a header may be a secret.
  const isHidden = ["credential", "headers"].includes(path[0] ?? "");
  return isHidden ? setting : `${setting} ${[value].flat().join(", ")}`;
}

export function planChanges(entry: Path, changes: readonly Change[]): Edit[] {
  return changes.map(({ path, value }): Edit => {
    const place = [...entry, ...path];
    return value === null ? { kind: "remove", path: place } : { kind: "set", path: place, value };
  });
}
