// Tables say what a conversion does with each field of a request. Reading, writing,
// refusals, `x-gateway-adjusted` and docs/bridges.md follow from these tables.

import { getField, isObject, lookUp } from "../../lib/json/json.ts";
import type { Conversation, Destination, Options, Tool, ToolMembers } from "./conversation.ts";
import { isAbsent, type Json, type Notes, refuseField } from "./notes.ts";

/** A `kept` field is converted by code of its own. A `silent` field is left out
 *  without a note, because no answer depends on it. */
export type Rule = "kept" | "silent" | "noted" | "refused";

type Members = Options & ToolMembers;
export type MemberName = keyof Members;

export interface Writing {
  readonly conversation: Conversation;
  readonly options: Options;
  readonly to: Destination;
}

interface Field {
  /** Such as `tools[].function.name`. */
  readonly path: string;
  /** The name in notes, if options share a path. */
  readonly label?: string;
  /** Absent: the `option` decides what becomes of the field. */
  readonly rule?: Rule;
  /** The rule does not apply to these values: by default, false, 0 and empty ones. */
  readonly unless?: (value: unknown) => boolean;
}

type OptionRow<Name extends MemberName = MemberName> = {
  readonly [Option in Name]: Field & {
    readonly option: Option;
    /** Reads a client's field. Undefined if the field asks for nothing. */
    readonly read?: (value: unknown, path: string) => Members[Option] | undefined;
    /** Undefined or null: the option is left out. */
    readonly write?: (value: NonNullable<Members[Option]>, writing: Writing) => unknown;
    /** The upstream has only a value near the wanted one. */
    readonly near?: true;
  };
}[Name];

export type FieldRow = (Field & { readonly option?: undefined }) | OptionRow;

export interface FieldNode {
  readonly path: string;
  row?: FieldRow;
  readonly members: Map<string, FieldNode>;
}

/** `names` is the field's path below the object that has it. */
interface Placed {
  readonly row: OptionRow;
  readonly names: readonly string[];
}

export interface FieldTable {
  readonly rows: readonly FieldRow[];
  readonly root: FieldNode;
  readonly options: readonly OptionRow[];
  /** A key is the path of an object, such as `tools[]`, or empty for the request. */
  readonly placed: ReadonlyMap<string, readonly Placed[]>;
  readonly written: ReadonlySet<string>;
  readonly names: ReadonlyMap<string, string>;
}

export function listFields(at: string, words: { readonly [Name in Rule]?: string }): FieldRow[] {
  return (["kept", "silent", "noted", "refused"] as const).flatMap((rule) =>
    (words[rule]?.split(" ") ?? []).map((name) => ({ path: join(at, name), rule })),
  );
}

type ReadOption<Name extends MemberName> = NonNullable<OptionRow<Name>["read"]>;

/** Both sides have the option, with the same values. */
export function same<Name extends MemberName>(
  option: Name,
  path: string,
  read: ReadOption<Name>,
): OptionRow<Name>;
export function same(option: string, path: string, read: ReadOption<MemberName>): object {
  return { option, path, read, write: asIs };
}

export function nearest<Name extends MemberName>(
  option: Name,
  path: string,
  read: ReadOption<Name>,
): OptionRow<Name> {
  return { ...same(option, path, read), near: true };
}

export function openTable(rows: readonly FieldRow[]): FieldTable {
  const root: FieldNode = { path: "", members: new Map() };
  for (const row of rows) {
    let node = root;
    for (const name of row.path.replaceAll("[]", ".[]").split(".")) {
      const within = name === "[]" ? node.path + name : join(node.path, name);
      const next: FieldNode = node.members.get(name) ?? { path: within, members: new Map() };
      node.members.set(name, next);
      node = next;
    }
    node.row ??= row;
  }
  const options = rows.filter((row): row is OptionRow => row.option !== undefined);
  const places = options.map((row) => {
    const [, at = "", rest = ""] = /^(?:(.*\[\])\.)?(.*)$/.exec(row.path) ?? [];
    return { at, row, names: rest.split(".") };
  });
  return {
    rows,
    root,
    options,
    placed: Map.groupBy(places, ({ at }) => at),
    written: new Set(options.filter(({ write }) => write !== undefined).map(({ option }) => option)),
    names: new Map(options.map((row): [string, string] => [row.option, row.label ?? row.path]).toReversed()),
  };
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

// Checking.

export interface FieldCheck {
  readonly notes: Notes;
  /** If true, an unknown field is refused. If false, it is left out and noted. */
  readonly isShared: boolean;
}

export function checkFields(body: Json, { root }: FieldTable, check: FieldCheck): void {
  checkMembers(body, root, "", check);
}

function checkMembers(value: Json, { path, members }: FieldNode, at: string, check: FieldCheck): void {
  for (const [name, member] of Object.entries(value)) {
    const node = members.get(name);
    if (node !== undefined) checkField(member, node, join(at, name), check);
    else if (isIdle(member)) continue;
    else if (check.isShared) refuseUnknown(join(at, name));
    else check.notes.add(join(path, name));
  }
}

function refuseUnknown(path: string): never {
  refuseField(path, "this field is unknown.", "unknown_parameter");
}

function checkField(value: unknown, node: FieldNode, at: string, check: FieldCheck): void {
  const { rule, unless = isIdle } = node.row ?? {};
  if (rule !== "noted" && rule !== "refused") return checkInside(value, node, at, check);
  if (isAbsent(value) || unless(value)) return;
  if (rule === "noted") return check.notes.add(node.path);
  refuseField(at, "this group's channels speak another dialect, which has no such field.");
}

function checkInside(value: unknown, node: FieldNode, at: string, check: FieldCheck): void {
  const item = node.members.get("[]");
  if (item !== undefined && Array.isArray(value)) {
    for (const [index, each] of value.entries())
      if (isObject(each)) checkMembers(each, item, `${at}[${index}]`, check);
  } else if (isObject(value) && node.members.size > (item === undefined ? 0 : 1))
    checkMembers(value, node, at, check);
}

function isIdle(value: unknown): boolean {
  if (isAbsent(value) || value === false || value === 0 || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

// Reading.

/** Reads the options in `value`, which is a request or its member at the path `at`.
 *  `place` is the same path with indexes. */
export function readMembers(
  { placed }: FieldTable,
  value: unknown,
  { at, place }: { readonly at: string; readonly place: string },
  notes: Notes,
): Members {
  const members: Members = {};
  for (const { row, names } of placed.get(at) ?? []) {
    const sent = names.reduce(getField, value);
    if (row.read === undefined || isAbsent(sent)) continue;
    const read = row.read(sent, join(place, names.join(".")));
    if (read === undefined) continue;
    Object.assign(members, { [row.option]: read });
    notes.use(row.option, row.label ?? row.path);
  }
  return members;
}

// Writing.

/** What becomes of an option that the upstream lacks.
 *  Without a row here, it is noted, or refused if `isShared`. */
const WITHOUT: Readonly<Partial<Record<MemberName, Rule>>> = {
  stop: "refused",
  json: "refused",
  logprobs: "refused",
  top_logprobs: "refused",
  // A search that ignores these would be wrong.
  allowed_domains: "refused",
  blocked_domains: "refused",
  own_effort: "silent",
  user: "silent",
  safety_identifier: "silent",
  prompt_cache_key: "silent",
  prompt_cache_retention: "silent",
  prompt_cache_options: "silent",
  metadata: "silent",
};

export function judgeLost(option: string, isShared: boolean): Rule {
  return lookUp(WITHOUT, option) ?? (isShared ? "refused" : "noted");
}

export function settleOptions(
  { options, notes, isShared }: Conversation,
  tools: readonly Tool[],
  { written }: FieldTable,
): Options {
  const settled: Options = { ...options };
  if (tools.length === 0) {
    delete settled.choice;
    delete settled.parallel;
  }
  const asked = [settled, ...tools.map(({ settings }) => settings)].flatMap((each) => Object.keys(each));
  for (const option of new Set(asked).difference(written)) {
    const name = notes.nameOf(option);
    const rule = judgeLost(option, isShared);
    if (rule === "noted") notes.add(name);
    if (rule === "refused" && lookUp(WITHOUT, option) === undefined) refuseUnknown(name);
    if (rule === "refused") refuseField(name, "the channels of this group have no counterpart for it.");
  }
  return settled;
}

export function leaveOut({ notes }: Conversation, options: Options, ...left: (keyof Options)[]): void {
  for (const name of left) {
    if (options[name] !== undefined) notes.addOption(name);
    delete options[name];
  }
}

export function writeMembers({ placed }: FieldTable, at: string, members: Members, writing: Writing): Json {
  const written: Json = {};
  for (const { row, names } of placed.get(at) ?? []) {
    const value = writeRow(row, members, writing);
    if (!isAbsent(value)) setAt(written, names, value);
  }
  return written;
}

function writeRow<Name extends MemberName>(
  row: OptionRow<Name>,
  members: Members,
  writing: Writing,
): unknown {
  const value = members[row.option];
  return value === undefined || value === null ? undefined : row.write?.(value, writing);
}

function setAt(target: Json, [name = "", ...inner]: readonly string[], value: unknown): void {
  if (inner.length === 0) target[name] = value;
  else {
    const inside: Json = isObject(target[name]) ? { ...target[name] } : {};
    target[name] = inside;
    setAt(inside, inner, value);
  }
}

export function asIs(value: unknown): unknown {
  return value;
}

export function ifFilled(text: string): string | null {
  return text === "" ? null : text;
}

/** Stands for code elsewhere, because the field depends on others. */
export function byCode(): undefined {}

/** Null: the dialect `to` has no such field. */
export function translateField(path: string, from: FieldTable, to: FieldTable, notes: Notes): string | null {
  const plain = path.replaceAll(/\[\d+\]|\.\d+/g, "[]");
  const row = from.rows.find((each) => each.path === plain);
  if (row?.option !== undefined) return to.names.has(row.option) ? notes.nameOf(row.option) : null;
  return to.rows.some((each) => each.path === plain) ? plain : null;
}
