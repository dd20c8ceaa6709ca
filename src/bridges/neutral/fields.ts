// What becomes of each field of a client's request, and of each option at an upstream. The readers and writers have tables
// of these, which the code obeys and docs/bridges.md shows.

import { isObject } from "../../lib/json/json.ts";
import type { Json } from "./strict-json.ts";
import { type Conversation, OPTION_NAMES, type OptionName, type Options } from "./conversation.ts";
import { type Notes, refuseField } from "./notes.ts";

/** `kept`: every upstream has it. `silent`: no answer depends on it. `noted`: left out, and named in `x-gateway-adjusted`. */
type FieldWord = "kept" | "silent" | "noted" | "refused";

/** A list: options, whose upstream decides. `shared`: OpenAI's two dialects have it; for other upstreams, that word counts. */
export type FieldRule = FieldWord | readonly OptionName[] | { readonly shared: FieldWord };

/** By the path of the field: `tools[].function.name`. A field that stands for others has no members here. */
export type FieldRules = Readonly<Record<string, FieldRule>>;

/** The members of a table's paths, level by level. */
interface FieldNode {
  readonly path: string;
  rule?: FieldRule;
  readonly members: Map<string, FieldNode>;
}

export interface FieldTable {
  readonly rules: FieldRules;
  readonly root: FieldNode;
}

/** Rows for the fields of these names, by their rule. `at`: the object that has them; empty: the request. */
export function listFields(at: string, words: { readonly [Rule in FieldWord]?: string }): FieldRules {
  const rows: Record<string, FieldRule> = {};
  for (const rule of ["kept", "silent", "noted", "refused"] as const)
    for (const name of words[rule]?.split(" ") ?? []) rows[join(at, name)] = rule;
  return rows;
}

/** Rows for fields that OpenAI's two dialects share, by their rule elsewhere. */
export function shareFields(shared: FieldWord, names: readonly string[]): FieldRules {
  return Object.fromEntries(names.map((name) => [name, { shared }]));
}

export function openTable(rules: FieldRules): FieldTable {
  const root: FieldNode = { path: "", members: new Map() };
  for (const [path, rule] of Object.entries(rules)) {
    let node = root;
    for (const name of path.replaceAll("[]", ".[]").split(".")) {
      const within = name === "[]" ? node.path + name : node.path === "" ? name : `${node.path}.${name}`;
      const next: FieldNode = node.members.get(name) ?? { path: within, members: new Map() };
      node.members.set(name, next);
      node = next;
    }
    node.rule = rule;
  }
  return { rules, root };
}

export interface FieldCheck {
  readonly notes: Notes;
  /** The upstream speaks the other dialect of OpenAI: what it does not have there either is refused. Elsewhere an unknown field
   *  is left out: agents get new ones every few weeks. */
  readonly isShared: boolean;
  /** The name of a member as the table has it. */
  readonly spell?: (name: string) => string;
  /** Values that change nothing, for fields where that is not the empty one. */
  readonly harmless?: Json;
}

/** Nothing of a client's request is dropped in silence, at any depth. */
export function checkFields(body: Json, { root }: FieldTable, check: FieldCheck): void {
  checkMembers(body, root, "", check);
}

function checkMembers(value: Json, { path, members }: FieldNode, at: string, check: FieldCheck): void {
  for (const [sent, member] of Object.entries(value)) {
    const name = check.spell?.(sent) ?? sent;
    const node = members.get(name);
    const place = join(at, name);
    if (node !== undefined) checkField(member, node, place, check);
    else if (isIdle(member)) continue;
    else if (check.isShared) refuseField(place, "this field is unknown.", "unknown_parameter");
    else check.notes.add(join(path, name));
  }
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function checkField(value: unknown, node: FieldNode, at: string, check: FieldCheck): void {
  const { path } = node;
  const rule = chooseRule(node, check);
  if (rule === "noted" || rule === "refused") {
    if (isIdle(value) || value === check.harmless?.[path]) return;
    if (rule === "noted") return check.notes.add(path);
    refuseField(at, "this group's channels speak another dialect, which has no such field.");
  }
  checkInside(value, node, at, check);
}

function checkInside(value: unknown, node: FieldNode, at: string, check: FieldCheck): void {
  const { members } = node;
  const item = members.get("[]");
  if (item !== undefined && Array.isArray(value)) {
    for (const [index, each] of value.entries())
      if (isObject(each)) checkMembers(each, item, `${at}[${index}]`, check);
  } else if (isObject(value) && members.size > (item === undefined ? 0 : 1))
    checkMembers(value, node, at, check);
}

function chooseRule({ rule }: FieldNode, { isShared }: FieldCheck): FieldRule | undefined {
  if (typeof rule !== "object" || !("shared" in rule)) return rule;
  return isShared ? "kept" : rule.shared;
}

function isIdle(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === 0 || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

/** The client's name of each option, for notes and refusals: the one that it has used, of several. */
export function nameOptions(rules: FieldRules, body: Json): Readonly<Record<string, string>> {
  const names: Record<string, string> = {};
  for (const [path, rule] of Object.entries(rules)) {
    if (!Array.isArray(rule)) continue;
    for (const option of rule) if (names[option] === undefined || !isIdle(body[path])) names[option] = path;
  }
  return names;
}

/** A field of the upstream's request that has this path, as the client calls it. Null: it sent none. */
export function translateField(
  path: string,
  from: FieldRules,
  to: FieldRules,
  names: Conversation["names"],
): string | null {
  const rule = from[path];
  const [option] = Array.isArray(rule) ? rule : [];
  if (option !== undefined) return names[option] ?? null;
  return Object.hasOwn(to, path) ? path : null;
}

/** `kept`: the same meaning. `changed`: the nearest that there is. */
export type Outcome = "kept" | "changed" | "left out" | "refused";
export type Support = (option: OptionName) => Outcome;

/** By outcome; all others are kept. */
export function listSupport(outcomes: {
  readonly [Name in Exclude<Outcome, "kept">]?: readonly OptionName[];
}): Support {
  return (option) =>
    (["changed", "left out", "refused"] as const).find((each) => outcomes[each]?.includes(option)) ?? "kept";
}

/** The options that the upstream can honour. */
export function settleOptions({ options, names, notes }: Conversation, support: Support): Options {
  const settled: Options = { ...options };
  for (const name of OPTION_NAMES) {
    if (options[name] === undefined) continue;
    const outcome = support(name);
    if (outcome === "refused")
      refuseField(names[name] ?? name, "the channels of this group have no counterpart for it.");
    if (outcome === "left out") leaveOut({ names, notes }, settled, name);
  }
  return settled;
}

/** Removes options. `x-gateway-adjusted` names those that the client had set. */
export function leaveOut(
  { names, notes }: Pick<Conversation, "names" | "notes">,
  options: Options,
  ...left: OptionName[]
): void {
  for (const name of left) {
    if (options[name] !== undefined) notes.add(names[name] ?? name);
    delete options[name];
  }
}
