// The config, as commands read and change it. A command that changes it waits until the running gateway uses the change:
// a key works when the command that created it returns, and is dead when the command that disabled it returns. This
// module loads zod and yaml, which costs start-up time: do not import it from the files that declare flags.

import { realpathSync } from "node:fs";
import { z } from "zod";
import type { Catalog, Group } from "../../config/catalog.ts";
import { formatMoment } from "../../config/changes/names.ts";
import { findConfig } from "../../config/file/find.ts";
import { loadConfig, type LoadedConfig } from "../../config/file/load.ts";
import { editConfig, type ConfigFile } from "../../config/file/replace.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { confirmRemoval, printNote, refuseUsage } from "../terminal/terminal.ts";
import { tryGateway } from "./control.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { configSchema } from "../../config/schema.ts";
import type { Path } from "../../config/yaml/source.ts";
import { getField, getList, isObject } from "../../lib/json/json.ts";

export interface ConfigFlags {
  readonly config?: string;
}

export interface ListFlags extends ConfigFlags {
  readonly json?: true;
}

export interface RemoveFlags extends ConfigFlags {
  readonly yes?: true;
}

/** Accepts unset variables, because these commands send nothing upstream. */
export function openConfig(flags: ConfigFlags): LoadedConfig & ConfigFile {
  const loaded = loadConfig(findConfig(flags.config, process.env), process.env, { missing: "keep" });
  return { ...loaded, ...openConfigFile(loaded.path) };
}

/** Null if there is no usable config and `isOptional`, because a flag says enough. One that is named must be usable. */
export function openConfigUnless(isOptional: boolean, flags: ConfigFlags): LoadedConfig | null {
  try {
    return openConfig(flags);
  } catch (error) {
    if (!isOptional || flags.config !== undefined) throw error;
    return null;
  }
}

/** `plan` throws if something needs it. `more`: what else is said of it. */
export async function removeEntry(
  what: string,
  flags: RemoveFlags,
  plan: (catalog: Catalog) => Edit[],
  more = "",
): Promise<void> {
  const config = openConfig(flags);
  plan(config.catalog);
  await confirmRemoval(what, flags);
  await config.edit(plan);
  printNote(`Removed ${what}.${more}`);
}

const MAX_WAIT_MS = 2000;

export function openConfigFile(path: string): ConfigFile {
  return {
    path,
    edit: async (decide) => {
      const { catalog, sha256 } = await editConfig(path, process.env, decide);
      await waitForGateway(path, catalog, { kind: "config", sha256 });
      return catalog;
    },
  };
}

const replySchema = z.object({
  /** The file that the gateway uses. */
  config: z.string().nullable(),
  outcome: z
    .union([
      z.object({ kind: z.literal("applied") }),
      z.object({ kind: z.literal("refused"), message: z.string() }),
    ])
    .nullable(),
});

/** `sha256`: the hash of the text that a command has written. */
type Changed = { readonly kind: "config"; readonly sha256: string } | { readonly kind: "prices" };

/** `path`: the config file. Says so if the gateway does not use the change, which stays in its file. */
export async function waitForGateway(
  path: string,
  { ledger }: Pick<Catalog, "ledger">,
  changed: Changed,
): Promise<void> {
  try {
    const call = { ledgerPath: ledger.path, timeoutMs: MAX_WAIT_MS, body: changed };
    const reply = await tryGateway(call, "POST", `actions/apply-${changed.kind}`);
    if (reply === null) return;
    const { config, outcome } = replySchema.parse(reply);
    if (config === null || !isSameFile(config, path))
      printNote(
        `The running gateway uses another config file (${config}), so it does not follow this change.`,
      );
    else if (outcome?.kind === "refused") refuseLate(outcome.message);
  } catch (error) {
    const why = getErrorMessage(error);
    printNote(`The running gateway has not confirmed that it uses the change, and may follow later. ${why}`);
  }
}

/** The command goes on, because it may have a secret to print. */
function refuseLate(message: string): void {
  process.exitCode = 1;
  printNote(
    `The change is in the file, but the running gateway refuses the file, and goes on with what it had before: ${message}`,
  );
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return one === other;
  }
}

/** For people. In UTC, like the dates in the file. */
export function formatDay(moment: Date | null): string {
  if (moment === null) return "";
  return formatMoment(moment).replace("T00:00:00Z", "").replace("T", " ").replace("Z", " UTC");
}

export function describeGroup({ platform, multiplier }: Group): string {
  return `${platform}, ×${multiplier}`;
}

/** `list`: words with commas between them. `map`: `aliases.NAME=VALUE`. */
type Form = "text" | "list" | "map";

export interface Change {
  /** Below the entry. */
  readonly path: readonly string[];
  /** Null removes the setting. */
  readonly value: string | readonly string[] | null;
}

/** A group's platform is that of its channels, and limits have commands of their own. */
const UNCHANGED: ReadonlySet<string> = new Set(["platform", "limits"]);

/** By name; with a point, it is in a section of the entry. */
function listSettings(node: unknown, start = ""): [name: string, form: Form][] {
  const kinds = getList(getField(getField(node, "propertyNames"), "enum"));
  const properties = getField(node, "properties");
  return [
    ...kinds.map((kind): [string, Form] => [String(kind), "text"]),
    ...Object.entries(isObject(properties) ? properties : {}).flatMap(([word, child]): [string, Form][] => {
      const name = start + word;
      if (UNCHANGED.has(name)) return [];
      if (isObject(getField(child, "properties"))) return listSettings(child, `${name}.`);
      const isMap = isObject(getField(child, "additionalProperties"));
      return [[name, isMap ? "map" : getField(child, "type") === "array" ? "list" : "text"]];
    }),
  ];
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
    if (value === "none" && required.includes(name)) refuseUsage(`${name} cannot be removed.`);
    if (value === "none") return { path, value: null };
    return { path, value: form === "list" ? value.split(",").map((each) => each.trim()) : value };
  });
}

function findSetting(name: string, settings: ReadonlyMap<string, Form>) {
  const form = settings.get(name);
  if (form !== undefined && form !== "map") return { form, path: name.split(".") };
  // The name of a model or header may have points of its own.
  const [, section = "", below = ""] = /^([^.]+)\.(.+)$/.exec(name) ?? [];
  if (settings.get(section) === "map") return { form: "text" as const, path: [section, below] };
  const known = Array.from(settings, ([each, kind]) => (kind === "map" ? `${each}.NAME` : each));
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
