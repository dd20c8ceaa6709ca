// Which tools an answer calls, for `gateway context`. Only names are kept.

import { getField, getName, getText } from "../../lib/json/json.ts";

const MAX_NAME_LENGTH = 128;

/** As a tool's definition and its calls name it. Empty: they do not. Responses have MCP servers as namespaces. */
export function joinName(name: string, namespace: string): string {
  const isServer = name !== "" && namespace.startsWith("mcp__") && !name.startsWith("mcp__");
  return (isServer ? `${namespace.replace(/_+$/, "")}__${name}` : name).slice(0, MAX_NAME_LENGTH);
}

/** More tools in one answer are not noted: memory is bounded. */
const MAX_TOOLS = 128;

export class CalledTools {
  readonly #names = new Set<string>();

  /** `call`: what has the name of the tool. */
  add(call: unknown, type = ""): void {
    if (call === undefined || this.#names.size >= MAX_TOOLS) return;
    const name = joinName(getText(getField(call, "name")), getText(getField(call, "namespace"))) || type;
    if (name !== "") this.#names.add(name);
  }

  /** A block, or an item, that may be a call. */
  addTyped(block: unknown): void {
    const type = getName(getField(block, "type")) ?? "";
    if (type.endsWith("tool_use")) this.add(block);
    else if (type.endsWith("_call")) this.add(block, type.slice(0, -"_call".length));
  }

  /** Undefined: none. */
  list(): readonly string[] | undefined {
    return this.#names.size === 0 ? undefined : [...this.#names];
  }
}
