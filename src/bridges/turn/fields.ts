// What becomes of each field of a client's request, and of each option at an upstream. The readers and writers have tables
// of these, which the code obeys and docs/bridges.md shows.

import { isObject, lookUp } from "../../lib/json/json.ts";
import type { Json } from "../common/strict-json.ts";
import { type Conversation, OPTION_NAMES, type OptionName, type Options } from "./conversation.ts";
import { type Notes, refuseField } from "./notes.ts";

/** `kept`: every upstream has it. `silent`: no answer depends on it. `noted`: left out, and named in `x-gateway-adjusted`. A list:
 *  options, whose upstream decides. */
export type FieldRule = "kept" | "silent" | "noted" | "refused" | readonly OptionName[];

/** By the path of the field. */
export type FieldRules = Readonly<Record<string, FieldRule>>;

/** `harmless`: a value that changes nothing, for fields where that is not the empty one. */
export function checkFields(body: Json, rules: FieldRules, notes: Notes, harmless: Json = {}): void {
  for (const [name, value] of Object.entries(body)) {
    const rule = lookUp(rules, name);
    if (rule === undefined) checkUnknown(name, value, rules, notes);
    else if (rule === "noted" || rule === "refused") {
      if (isIdle(value) || value === lookUp(harmless, name)) continue;
      if (rule === "noted") notes.add(name);
      else refuseField(name, "this group's channels speak another dialect, which has no such field.");
    }
  }
}

/** Of some fields, only members have rules. */
function checkUnknown(name: string, value: unknown, rules: FieldRules, notes: Notes): void {
  const paths = Object.keys(rules);
  const isKnown = (path: string): boolean =>
    paths.some((each) => each === path || each.startsWith(`${path}.`));
  if (!isKnown(name) || !isObject(value)) {
    if (!isIdle(value)) notes.add(name);
    return;
  }
  for (const [member, inside] of Object.entries(value))
    if (!isKnown(`${name}.${member}`) && !isIdle(inside)) notes.add(`${name}.${member}`);
}

function isIdle(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === 0 || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

/** The client's name of each option, for notes and refusals. */
export function nameOptions(rules: FieldRules): Readonly<Record<string, string>> {
  const names: Record<string, string> = {};
  for (const [path, rule] of Object.entries(rules)) {
    if (typeof rule !== "object") continue;
    for (const option of rule) names[option] ??= path;
  }
  return names;
}

/** `kept`: the same meaning. `changed`: the nearest that there is. */
export type Outcome = "kept" | "changed" | "left out" | "refused";
export type Support = Readonly<Record<OptionName, Outcome>>;

/** The options that the upstream can honour. */
export function settleOptions({ options, names, notes }: Conversation, support: Support): Options {
  const settled: Options = { ...options };
  for (const name of OPTION_NAMES) {
    if (options[name] === undefined) continue;
    const outcome = support[name];
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
