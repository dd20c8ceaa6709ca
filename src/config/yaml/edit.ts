// Edits the config's text. Comments, order and formatting stay.

import { isObject } from "../../lib/json/json.ts";
import { ConfigError, valueAt } from "./problems.ts";
import { parseSource, parseYaml, type Path, readTree } from "./source.ts";
import { type Edit, findSplice, type Splice, type Value } from "./splice.ts";

export type { Edit } from "./splice.ts";

export function changeSetting(path: Path, value: Value | null): Edit {
  if (value === null) return { kind: "remove", path };
  return { kind: "set", path, value };
}

export function applyEdits(text: string, edits: readonly Edit[]): string {
  const document = parseYaml(text);
  const tree = readTree(document);
  const steps = edits.filter((edit) => !isTrue(tree, edit)).map((edit) => fitStep(tree, edit));
  const changed = splice(
    text,
    steps.map((step) => findSplice(text, document, step)),
  );
  const wanted = steps.reduce((node, step) => changeAt(node, step.path, step), tree);
  if (changed !== null && (steps.length === 0 || meansSame(changed, wanted))) return changed;
  // Otherwise the edits are applied one by one:
  // one may need the result of the edit before it.
  if (edits.length > 1) return edits.reduce((before, edit) => applyEdits(before, [edit]), text);
  const parts = steps[0] ? planItems(tree, steps[0]) : null;
  if (parts !== null) return applyEdits(text, parts);
  throw new ConfigError(
    `The file's YAML is too unusual: please change ${String(steps[0]?.path[0])} by hand.`,
  );
}

function isTrue(tree: unknown, edit: Edit): boolean {
  const found = valueAt(tree, edit.path);
  if (edit.kind === "remove") return found === undefined;
  return edit.kind === "set" && Bun.deepEquals(found, edit.value, true);
}

/** Null: two splices overlap, or one is missing. */
function splice(text: string, splices: ReadonlyArray<Splice | null>): string | null {
  let [changed, at] = ["", 0];
  for (const each of splices.toSorted((a, b) => (a?.start ?? 0) - (b?.start ?? 0))) {
    if (each === null || each.start < at) return null;
    changed += text.slice(at, each.start) + each.text;
    at = each.end;
  }
  return changed + text.slice(at);
}

/** An entry without settings is removed. */
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

/** Adds and removes single items, so that the others keep their comments.
 *  Items in another order are written anew. */
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
  if (added.length === 0) return removals;
  return [{ kind: "append", path, values: added }, ...removals];
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
    if (edit.kind === "set") return edit.value;
    if (edit.kind === "remove") return undefined;
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
