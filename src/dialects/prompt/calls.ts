// Tool calls and their results, in the words of each dialect.

import { getField, getText, isObject } from "../../lib/json/json.ts";

export interface ToolCall {
  /** The name of the tool in dialects without ids. */
  readonly id: string;
  /** The tool definition's name. Empty if unknown. */
  readonly name: string;
  readonly input: unknown;
}

export interface ToolResult {
  readonly id: string;
  /** Empty if only the call has a name. */
  readonly name: string;
  readonly output: unknown;
  readonly isError: boolean;
}

const CALLS = ["function", "custom", "functionCall", "function_call"];
const RESULTS = ["functionResponse", "function_response"];
const RESULT_IDS = ["tool_use_id", "call_id", "tool_call_id", "id", "name"];

function findAny(from: unknown, names: readonly string[]): unknown {
  if (!isObject(from)) return undefined;
  for (const name of names) if (from[name] !== undefined) return from[name];
  return undefined;
}

export function findCall(part: unknown): ToolCall | null {
  const type = getText(getField(part, "type"));
  const kind = type.endsWith("_call") ? type.slice(0, -"_call".length) : "";
  const call = kind !== "" || type.endsWith("tool_use") ? part : findAny(part, CALLS);
  if (!isObject(call)) return null;
  const name = nameTool(call) || kind;
  const id = getText(findAny(part, ["call_id", "id"])) || getText(call["id"]) || name;
  return { id, name, input: findAny(call, ["input", "arguments", "args", "action"]) };
}

export function findResult(part: unknown): ToolResult | null {
  const type = getText(getField(part, "type"));
  const isTyped =
    type.endsWith("tool_result") || type.endsWith("_output") || getField(part, "role") === "tool";
  const result = isTyped ? part : findAny(part, RESULTS);
  if (!isObject(result)) return null;
  let id = "";
  for (const name of RESULT_IDS) id ||= getText(result[name]);
  return {
    id,
    name: isTyped ? "" : nameTool(result),
    output: findAny(result, ["content", "output", "response"]),
    isError: result["is_error"] === true,
  };
}

const MAX_NAME_LENGTH = 128;

/** Returns "" without a name. In `responses`, an MCP server is a namespace. */
export function nameTool(tool: unknown, namespace = getText(getField(tool, "namespace"))): string {
  const name = getText(getField(tool, "name"));
  const isServer = name !== "" && namespace.startsWith("mcp__") && !name.startsWith("mcp__");
  return (isServer ? `${namespace.replace(/_+$/, "")}__${name}` : name).slice(0, MAX_NAME_LENGTH);
}

const MAX_TOOLS = 128;

export class CalledTools {
  readonly #names = new Set<string>();

  add(part: unknown): void {
    const name = findCall(part)?.name ?? "";
    if (name !== "" && this.#names.size < MAX_TOOLS) this.#names.add(name);
  }

  list(): readonly string[] | undefined {
    return this.#names.size === 0 ? undefined : [...this.#names];
  }
}
