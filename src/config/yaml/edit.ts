// Edits the config's text. Comments, order and formatting stay. The result is compared with the
// meaning of the edit.

import { isObject } from "../../lib/json/json.ts";
import { ConfigError, valueAt } from "./problems.ts";
import { parseSource, parseYaml, type Path, readTree } from "./source.ts";
import { type Edit, findSplice, type Value } from "./splice.ts";

export type { Edit } from "./splice.ts";

/** Null removes the setting. */
export function changeSetting(path: Path, value: Value | null): Edit {
  return value === null ? { kind: "remove", path } : { kind: "set", path, value };
}

/** An edit that is already true changes nothing. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  return edits.reduce(applyEdit, text);
}

function applyEdit(text: string, edit: Edit): string {
  const document = parseYaml(text);
  const tree = readTree(document);
  if (edit.kind === "remove" && valueAt(tree, edit.path) === undefined) return text;
  const step = fitStep(tree, edit);
  const wanted = changeAt(tree, step.path, step);
  if (Bun.deepEquals(tree, wanted, true)) return text;
  const splice = findSplice(text, document, step);
  if (splice !== null) {
    const changed = text.slice(0, splice.start) + splice.text + text.slice(splice.end);
    if (meansSame(changed, wanted)) return changed;
  }
  const parts = planItems(tree, step);
  if (parts !== null) return applyEdits(text, parts);
  throw new ConfigError(`The file's YAML is too unusual: please change ${String(step.path[0])} by hand.`);
}

/** A missing section begins with its first entry. An entry without settings goes. */
function fitStep(tree: unknown, edit: Edit): Edit {
  const parent = edit.path.slice(0, -1);
  if (parent.length === 0) return edit;
  const section = valueAt(tree, parent);
  if (edit.kind === "remove") {
    const isLast = isObject(section) && Object.keys(section).length === 1;
    return isLast && parent.length > 1 ? fitStep(tree, { kind: "remove", path: parent }) : edit;
  }
  if (edit.kind !== "set" || (section !== undefined && section !== null)) return edit;
  const value = { [String(edit.path.at(-1))]: edit.value };
  return fitStep(tree, { kind: "set", path: parent, value });
}

/** Comments belong to items. Items in another order are written anew. */
function planItems(tree: unknown, edit: Edit): Edit[] | null {
  const { path } = edit;
  const old = valueAt(tree, path);
  if (edit.kind !== "set" || !Array.isArray(old) || !isList(edit.value)) return null;
  const wanted = edit.value;
  const staying = old.filter((item) => wanted.includes(String(item)));
  const left = Bun.deepEquals(staying, wanted.slice(0, staying.length)) ? staying : [];
  const added = wanted.slice(left.length);
  const removals = [...old.keys()]
    .filter((index) => !left.includes(old[index]))
    .toReversed()
    .map((index): Edit => ({ kind: "remove", path: [...path, index] }));
  return added.length === 0 ? removals : [{ kind: "append", path, values: added }, ...removals];
}

function isList(value: Value): value is readonly string[] {
  return Array.isArray(value);
}

function meansSame(text: string, wanted: unknown): boolean {
  const { tree, problems } = parseSource(text);
  return problems.length === 0 && Bun.deepEquals(dropEmpty(tree), dropEmpty(wanted), true);
}

/** `keys:`, `keys: []` and `keys: {}` mean the same. */
function dropEmpty(tree: unknown): unknown {
  if (!isObject(tree)) return tree;
  const isEmpty = (value: unknown) =>
    value === null || (typeof value === "object" && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(tree).filter(([, value]) => !isEmpty(value)));
}

function changeAt(node: unknown, path: Path, edit: Edit): unknown {
  const [step, ...below] = path;
  if (step === undefined) {
    if (edit.kind !== "append") return edit.kind === "set" ? edit.value : undefined;
    return [...(Array.isArray(node) ? node : []), ...edit.values];
  }
  const isRemoval = below.length === 0 && edit.kind === "remove";
  if (Array.isArray(node)) {
    const index = Number(step);
    return isRemoval ? node.toSpliced(index, 1) : node.with(index, changeAt(node[index], below, edit));
  }
  const map = isObject(node) ? node : {};
  const name = String(step);
  if (!isRemoval) return { ...map, [name]: changeAt(map[name], below, edit) };
  return Object.fromEntries(Object.entries(map).filter(([other]) => other !== name));
}
