// Tool calls and their results: in a message, an item, a block or a part of one, in the words of each dialect.

import { getField, getText, isObject } from "../../lib/json/json.ts";

export interface ToolCall {
  /** That by which its result names it; its name, where calls have no ids. */
  readonly id: string;
  /** As the tool's definition has it. Empty: nothing names it. */
  readonly name: string;
  readonly input: unknown;
}

export interface ToolResult {
  readonly id: string;
  /** Empty: only the call has it. */
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
  return {
    id: RESULT_IDS.map((name) => getText(getField(result, name))).find((id) => id !== "") ?? "",
    name: isTyped ? "" : nameTool(result),
    output: findAny(result, ["content", "output", "response"]),
    isError: result["is_error"] === true,
  };
}

const MAX_NAME_LENGTH = 128;

/** As a tool's definition and its calls name it. Empty: they do not. Responses have MCP servers as namespaces. */
export function nameTool(tool: unknown, namespace = getText(getField(tool, "namespace"))): string {
  const name = getText(getField(tool, "name"));
  const isServer = name !== "" && namespace.startsWith("mcp__") && !name.startsWith("mcp__");
  return (isServer ? `${namespace.replace(/_+$/, "")}__${name}` : name).slice(0, MAX_NAME_LENGTH);
}

/** More tools in one answer are not noted: memory is bounded. */
const MAX_TOOLS = 128;

/** Which tools an answer calls, for `gateway context`. Only names are kept. */
export class CalledTools {
  readonly #names = new Set<string>();

  /** `part`: what may be a call. */
  add(part: unknown): void {
    const name = findCall(part)?.name ?? "";
    if (name !== "" && this.#names.size < MAX_TOOLS) this.#names.add(name);
  }

  /** Undefined: none. */
  list(): readonly string[] | undefined {
    return this.#names.size === 0 ? undefined : [...this.#names];
  }
}
