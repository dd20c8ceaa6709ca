// The input of tools. Without custom tools, a function takes one text.

import { getField, isObject, parseFlatJson } from "../../lib/json/json.ts";
import { parseExact } from "../../lib/exact.ts";
import type { Json } from "./strict-json.ts";
import { completeSchema } from "../provider-rules.ts";
import type { DialectName } from "../../dialects/dialect.ts";
import type { Call, Tool, ToolMembers } from "./conversation.ts";
import { nameTool } from "./names.ts";
import type { Block } from "./sequence.ts";

const CUSTOM_SCHEMA: Json = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};

const HINT = "Put the raw text into `input`: no JSON inside, no Markdown fence.";

export function describeFunction(
  { kind, name, description, schema, format, settings }: Tool,
  dialect: DialectName,
): ToolMembers {
  const own = nameTool(name, dialect);
  if (kind !== "custom") {
    return { name: own, description, parameters: completeSchema(parseSchema(schema)), ...settings };
  }
  const grammar = getField(format, "definition");
  const rules = typeof grammar === "string" ? `\n\nThe text must fit this grammar:\n${grammar}` : "";
  return { name: own, description: `${description}\n\n${HINT}${rules}`.trim(), parameters: CUSTOM_SCHEMA };
}

export function parseSchema(text: string): Json {
  const schema = parseExact(text);
  return isObject(schema) ? schema : {};
}

/** As the text of a JSON object. */
export function writeArguments({ custom, input }: Call): string {
  return custom ? JSON.stringify({ input }) : input.trim() === "" ? "{}" : input;
}

export function parseArguments(call: Call): Json {
  return call.custom ? { input: call.input } : parseInput(unwrapObject(call.input));
}

/** Empty if the text is not an object. */
export function parseInput(text: string): Json {
  const value = parseExact(text);
  return isObject(value) ? value : {};
}

/** Some models write the object as a text inside a text. */
function unwrapObject(text: string): string {
  const inside = text.trimStart().startsWith('"') ? parseExact(text) : undefined;
  return typeof inside === "string" && isObject(parseExact(inside)) ? inside : text;
}

/** Models do not keep to `input`. */
function unwrapInput(text: string, { name }: Tool): string {
  const value = parseFlatJson(text);
  const found = ["input", "patch", "command"].map((name) => getField(value, name));
  const inside = typeof value === "string" ? value : found.find((each) => typeof each === "string");
  const input = typeof inside === "string" ? inside : text;
  // Other tools may take Markdown.
  return name === "apply_patch" ? removeFence(input) : input;
}

function removeFence(text: string): string {
  const fenced = /^\s*```[\w-]*\n([\s\S]*?)\n?```\s*$/.exec(text);
  return fenced?.[1] ?? text;
}

/** Some models fill this optional argument with an empty value. */
const REPAIRED: ReadonlyMap<string, string> = new Map([["Read", "pages"]]);

/** It is sent only when all of its input is known. */
export function isHeld(tool: Tool | null): boolean {
  return tool !== null && (tool.kind === "custom" || tool.form !== undefined || REPAIRED.has(tool.name));
}

export function finishInput(tool: Tool | null, { text, isFree }: Block): string {
  if (isFree) return text;
  if (tool?.kind === "custom") return unwrapInput(text, tool);
  const input = text === "" ? "{}" : unwrapObject(text);
  const optional = tool === null ? undefined : REPAIRED.get(tool.name);
  const value = optional === undefined ? undefined : parseExact(input);
  if (optional === undefined || !isObject(value) || value[optional] !== "") return input;
  const { [optional]: _, ...rest } = value;
  return JSON.stringify(rest);
}
