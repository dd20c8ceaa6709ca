// What the parts of a prompt are for people: their kind, and the tool that they are about; and which tools an answer calls.

import { getField, getName, getText } from "../../lib/json/json.ts";

export type PieceKind = "tool" | "system" | "user" | "assistant" | "thinking" | "call" | "result";

export interface Piece {
  readonly kind: PieceKind;
  /** Of a tool, or of the tool that a call or a result is of. Empty for all others. */
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  readonly hash: number;
}

const MAX_NAME_LENGTH = 128;

/** As a tool's definition and its calls name it. Empty: they do not. Responses have MCP servers as namespaces. */
export function joinName(name: string, namespace: string): string {
  const isServer = name !== "" && namespace.startsWith("mcp__") && !name.startsWith("mcp__");
  return (isServer ? `${namespace.replace(/_+$/, "")}__${name}` : name).slice(0, MAX_NAME_LENGTH);
}

/** More tools in one answer are not noted: memory is bounded. */
const MAX_TOOLS = 128;

/** The tools that an answer calls: only names are kept. */
export class CalledTools {
  #names: Set<string> | null = null;

  /** `call`: what has the name of the tool. */
  add(call: unknown, type = ""): void {
    if (call === undefined) return;
    const name = joinName(getText(getField(call, "name")), getText(getField(call, "namespace"))) || type;
    if (name === "" || (this.#names?.size ?? 0) >= MAX_TOOLS) return;
    this.#names ??= new Set();
    this.#names.add(name);
  }

  /** A block, or an item, that may be a call. */
  addTyped(block: unknown): void {
    const type = getName(getField(block, "type")) ?? "";
    if (type.endsWith("tool_use")) this.add(block);
    else if (type.endsWith("_call")) this.add(block, type.slice(0, -"_call".length));
  }

  /** Undefined: none. */
  list(): readonly string[] | undefined {
    return this.#names === null ? undefined : [...this.#names];
  }
}
