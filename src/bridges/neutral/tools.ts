// Writes tools as upstreams accept them, and repairs the calls that models make.

import type { DialectName } from "../../dialects/dialect.ts";
import { parseExact } from "../../lib/exact.ts";
import { getField, isObject, parseFlatJson } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { completeSchema } from "../provider-rules.ts";
import type { Call, Tool, ToolMembers } from "./conversation.ts";
import type { Json } from "./notes.ts";
import type { Block } from "./sequence.ts";

// An upstream gets a name that depends only on the client's name,
// so it is the same in every request.

const HASH_LENGTH = 12;
const MAX_ID_LENGTH = 64;
const FOREIGN = /[^A-Za-z0-9_-]/g;
const PLAIN = /^[A-Za-z0-9_-]+$/;

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use */
export function nameTool(name: string, dialect: DialectName): string {
  return fit(name, dialect === "messages" ? 128 : 64);
}

/** A server of chat or responses may need the ids of its calls unchanged. */
export function nameCall(id: string, dialect: DialectName): string {
  if (dialect === "messages") return fit(id, MAX_ID_LENGTH);
  return dialect === "responses" && id.length > MAX_ID_LENGTH ? fit(id, MAX_ID_LENGTH) : id;
}

function fit(name: string, limit: number): string {
  if (name.length <= limit && PLAIN.test(name)) return name;
  const hash = sha256Hex(name).slice(0, HASH_LENGTH);
  return `${name.slice(0, limit - HASH_LENGTH - 1).replaceAll(FOREIGN, "_")}_${hash}`;
}

export type ToolTable = ReadonlyMap<string, Tool>;

export function indexTools(tools: readonly Tool[], dialect: DialectName): ToolTable {
  return new Map(tools.map((tool) => [nameTool(tool.name, dialect), tool]));
}

/** Some models add a prefix or change the case. */
export function findTool(table: ToolTable, name: string): Tool | null {
  const exact = table.get(name);
  if (exact !== undefined) return exact;
  const bare = name.slice(name.lastIndexOf(":") + 1).toLowerCase();
  for (const [known, tool] of table) if (known.toLowerCase() === bare) return tool;
  return null;
}

// A custom tool becomes a function whose only argument is its text.

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

export function writeArguments({ custom, input }: Call): string {
  return custom ? JSON.stringify({ input }) : input.trim() === "" ? "{}" : input;
}

export function parseArguments(call: Call): Json {
  return call.custom ? { input: call.input } : parseInput(unwrapObject(call.input));
}

export function parseInput(text: string): Json {
  const value = parseExact(text);
  return isObject(value) ? value : {};
}

/** Some models write the object as a JSON string. */
function unwrapObject(text: string): string {
  const inside = text.trimStart().startsWith('"') ? parseExact(text) : undefined;
  return typeof inside === "string" && isObject(parseExact(inside)) ? inside : text;
}

/** Some models use another name than `input`, or none. */
function unwrapInput(text: string, { name }: Tool): string {
  const value = parseFlatJson(text);
  const found = ["input", "patch", "command"].map((name) => getField(value, name));
  const inside = typeof value === "string" ? value : found.find((each) => typeof each === "string");
  const input = typeof inside === "string" ? inside : text;
  // In the input of another tool, a code fence may be wanted.
  return name === "apply_patch" ? removeFence(input) : input;
}

function removeFence(text: string): string {
  const fenced = /^\s*```[\w-]*\n([\s\S]*?)\n?```\s*$/.exec(text);
  return fenced?.[1] ?? text;
}

/** Some models fill this optional argument with an empty value. */
const REPAIRED: ReadonlyMap<string, string> = new Map([["Read", "pages"]]);

/** Whether a call waits until all of its input is known. */
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
