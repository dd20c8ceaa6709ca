// Describes problems of a config file. A message never contains a secret.

import { type core, z } from "zod";
import { getField, isObject, listIn, type Table } from "../../lib/json/json.ts";
import { looksJoined } from "../../lib/secret.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { configSchema, PLATFORM_FACTS, PLATFORMS } from "../schema.ts";
import type { Path, Problem, Source } from "./source.ts";

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly exitStatus = 2;
  readonly problems: readonly Problem[];
  /** The command that fixes the problem. The message has it, too. */
  readonly fix: string | null;
  constructor(message: string, problems: readonly Problem[] = [], fix: string | null = null) {
    super(message);
    this.problems = problems;
    this.fix = fix;
  }
}

/** A thousand keys may refer to one missing group. */
const MAX_ALIKE = 10;

export function refuseProblems(file: string, problems: readonly Problem[]): ConfigError {
  const kinds = Map.groupBy(problems, ({ message }) => message);
  const sorted = [...kinds.values()]
    .flatMap((alike) => alike.slice(0, MAX_ALIKE))
    .sort((a, b) => a.line - b.line || a.column - b.column);
  const lines = sorted.map(
    ({ line, column, path, message }) =>
      `${file}:${line}:${column}: ${path.length === 0 ? "" : `${formatPath(path)}: `}${message}`,
  );
  const hidden = problems.length - sorted.length;
  if (hidden > 0) lines.push(`and ${hidden} more like these`);
  return new ConfigError(lines.join("\n"), sorted);
}

export function formatPath(path: Path): string {
  return path
    .map((step, depth) => {
      if (typeof step === "number") return `[${step}]`;
      return `${depth === 0 ? "" : "."}${looksJoined(String(step)) ? "…" : String(step)}`;
    })
    .join("");
}

export function explainIssues(issues: readonly core.$ZodIssue[], tree: unknown, source: Source): Problem[] {
  return issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") return explainUnknown(issue, tree, source);
    const onKey = issue.code === "invalid_key";
    const message = explainIssue(issue, valueAt(tree, issue.path));
    return [{ ...source.locate(issue.path, onKey ? "key" : "value"), path: issue.path, message }];
  });
}

function explainIssue(issue: core.$ZodIssue, value: unknown): string {
  if (issue.code === "invalid_key") return issue.issues[0]?.message ?? issue.message;
  if (issue.code === "invalid_type") {
    const needed = TYPE_WORDS[issue.expected] ?? issue.expected;
    return value === undefined
      ? `is missing (${needed} is needed)`
      : `expected ${needed}, found ${describeValue(value)}`;
  }
  if (issue.code === "invalid_value") {
    const known = issue.values.map(String);
    if (value === undefined) return `is missing: ${joinNames(known)}`;
    return `expected ${joinNames(known)}${typeof value === "string" ? suggestValue(value, known) : ""}`;
  }
  return issue.message;
}

/** The end of a sentence that suggests a value, or "". */
export function suggestValue(typed: string, known: readonly string[]): string {
  const word = typed.toLowerCase();
  const platform = PLATFORMS.find((each) =>
    PLATFORM_FACTS[each].alsoCalled.some((name) => word.startsWith(name)),
  );
  if (platform !== undefined && known.includes(platform)) return ` (did you mean "${platform}"?)`;
  return didYouMean(typed, known);
}

/** In `{ secret: a,b }`, YAML takes the end of the secret for a setting's name. */
const WORD = /^[a-z][a-z_-]*$/i;

function explainUnknown(issue: core.$ZodIssueUnrecognizedKeys, tree: unknown, source: Source): Problem[] {
  const known = listSettings(issue.path);
  return issue.keys.map((key) => {
    const near = didYouMean(key, known);
    const place = [...issue.path, key];
    const isShown = near !== "" || (WORD.test(key) && valueAt(tree, place) !== null);
    const path = isShown ? place : [...issue.path, "…"];
    const others = near === "" && known.length > 0 ? `; known here: ${known.join(", ")}` : "";
    return { ...source.locate(place, "key"), path, message: `unknown setting${near}${others}` };
  });
}

export function listSettings(path: Path): string[] {
  let node: unknown = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  for (const step of path)
    node =
      getField(getField(node, "properties"), String(step)) ??
      getField(node, typeof step === "number" ? "items" : "additionalProperties");
  const choices = listIn(getField(node, "propertyNames"), "enum");
  return choices.length > 0 ? choices.map(String) : Object.keys(getField(node, "properties") ?? {});
}

export function valueAt(tree: unknown, path: Path): unknown {
  let value = tree;
  for (const step of path) {
    if (Array.isArray(value)) value = value[Number(step)];
    else if (isObject(value) && Object.hasOwn(value, step)) value = value[String(step)];
    else return undefined;
  }
  return value;
}

const TYPE_WORDS: Table<string> = {
  object: "a map",
  record: "a map",
  array: "a list",
  string: "a value",
};

function describeValue(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  return isObject(value) ? "a map" : "a plain value";
}

function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
