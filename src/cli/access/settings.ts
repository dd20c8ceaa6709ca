// `NAME=VALUE` words that change an entry of the config.

import { z } from "zod";
import { didYouMean } from "../../lib/text/nearest.ts";
import { configSchema } from "../../config/schema.ts";
import { changeSetting, type Edit } from "../../config/yaml/edit.ts";
import type { Path } from "../../config/yaml/source.ts";
import { getField, getList, isObject } from "../../lib/json/json.ts";
import { refuseUsage } from "../terminal/terminal.ts";

type Form = "text" | "list" | "map";

export interface Change {
  readonly path: readonly string[];
  readonly value: string | readonly string[] | null;
}

/** The channels decide a group's platform; limits have their own commands. */
const UNCHANGED: ReadonlySet<string> = new Set(["platform", "limits"]);

function listSettings(node: unknown, start = ""): [name: string, form: Form][] {
  const kinds = getList(getField(getField(node, "propertyNames"), "enum"));
  const properties: object = getField(node, "properties") ?? {};
  return [
    ...kinds.map((kind): [string, Form] => [String(kind), "text"]),
    ...Object.entries(properties).flatMap(([word, child]) => listSetting(start + word, child)),
  ];
}

function listSetting(name: string, node: unknown): [name: string, form: Form][] {
  if (UNCHANGED.has(name)) return [];
  if (isObject(getField(node, "properties"))) return listSettings(node, `${name}.`);
  if (isObject(getField(node, "additionalProperties"))) return [[name, "map"]];
  return [[name, getField(node, "type") === "array" ? "list" : "text"]];
}

export function readChanges(words: readonly string[], section: "channels" | "groups" | "prices"): Change[] {
  const schema = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  const entry = getField(getField(schema.properties, section), "additionalProperties");
  const required = getList(getField(entry, "required"));
  const settings = new Map(listSettings(entry));
  return words.map((word) => {
    const [name = "", ...rest] = word.split("=");
    const value = rest.join("=");
    const { path, form } = findSetting(name, settings);
    if (value === "") return refuseUsage(`${name}: expected ${name}=VALUE or ${name}=none.`);
    if (value !== "none")
      return { path, value: form === "list" ? value.split(",").map((each) => each.trim()) : value };
    return required.includes(name) ? refuseUsage(`${name} cannot be removed.`) : { path, value: null };
  });
}

function findSetting(name: string, settings: ReadonlyMap<string, Form>) {
  const form = settings.get(name);
  if (form !== undefined && form !== "map") return { form, path: name.split(".") };
  // A model's or header's name may have dots.
  const [, section = "", below = ""] = /^([^.]+)\.(.+)$/.exec(name) ?? [];
  if (settings.get(section) === "map") return { form: "text" as const, path: [section, below] };
  const known = Array.from(settings, ([each, kind]) => (kind === "map" ? `${each}.NAME` : each));
  const near = didYouMean(name, known);
  return refuseUsage(`There is no setting "${name}"${near}. Settings: ${known.join(", ")}.`);
}

export function describeChange({ path, value }: Change): string {
  const setting = path.join(".");
  if (value === null) return `no ${setting}`;
  // Credentials and headers may be secrets.
  const isHidden = ["credential", "headers"].includes(path[0] ?? "");
  return isHidden ? setting : `${setting} ${[value].flat().join(", ")}`;
}

export function planChanges(entry: Path, changes: readonly Change[]): Edit[] {
  return changes.map(({ path, value }) => changeSetting([...entry, ...path], value));
}
