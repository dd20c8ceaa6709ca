// What the parts of a prompt are: their kind, the tool that they are about, and how long they are; and which tools an answer
// calls. No text is kept.

import { getField, getName, getText, isObject } from "../../lib/json/json.ts";
import type { Section } from "./prompt.ts";

export type PieceKind = "tool" | "system" | "user" | "assistant" | "thinking" | "call" | "result";

export interface Piece {
  readonly kind: PieceKind;
  /** Of a tool, or of the tool that a call or a result is of. Empty for all others. */
  readonly name: string;
  /** In characters. */
  readonly size: number;
  readonly hash: number;
}

const THOUGHTS: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking", "reasoning"]);
const MAX_NAME_LENGTH = 128;

interface PieceFacts extends Pick<Piece, "size" | "hash"> {
  readonly section: Section;
  /** Of the message that has the part; undefined: the part says it. */
  readonly role: unknown;
}

/** Collects the pieces of one prompt, in the order in which they are sent. */
export class PieceReader {
  readonly pieces: Piece[] = [];
  /** The names of tools by the ids of their calls. */
  readonly #called = new Map<unknown, string>();

  add(part: unknown, { section, role, size, hash }: PieceFacts): void {
    if (section === "messages") {
      const [kind, name] = this.#describe(part, role);
      this.pieces.push({ kind, name: name.slice(0, MAX_NAME_LENGTH), size, hash });
    } else if (section === "system") this.pieces.push({ kind: "system", name: "", size, hash });
    else this.#addTool(part, { size, hash });
  }

  /** A tool, or several in one: Codex groups its own. */
  #addTool(tool: unknown, { size, hash }: Pick<Piece, "size" | "hash">, namespace = ""): void {
    const inner = getField(tool, "tools");
    if (!Array.isArray(inner) || inner.length === 0) {
      const name =
        nameTool(tool, namespace) || nameTool(getField(tool, "function")) || getText(getField(tool, "type"));
      this.pieces.push({ kind: "tool", name, size, hash });
      return;
    }
    for (const each of inner) {
      const text = JSON.stringify(each);
      this.#addTool(
        each,
        { size: text.length, hash: Number(Bun.hash.wyhash(text)) },
        getText(getField(tool, "name")),
      );
    }
  }

  /** A block of a message, an item of the responses dialect, or a whole message of the others. */
  #describe(part: unknown, outer: unknown): [PieceKind, string] {
    const type = getText(getField(part, "type"));
    const role = outer ?? getField(part, "role");
    if (THOUGHTS.has(type)) return ["thinking", ""];
    if (type.endsWith("tool_use") || type.endsWith("_call")) return ["call", this.#noteCall(part, type)];
    const id = getField(part, "tool_use_id") ?? getField(part, "call_id") ?? getField(part, "tool_call_id");
    if (type.endsWith("tool_result") || type.endsWith("_output") || role === "tool")
      return ["result", this.#called.get(id) ?? ""];
    return this.#describeMessage(part, role);
  }

  #noteCall(call: unknown, type: string): string {
    const name = nameTool(call) || type.replace(/_call$/, "");
    for (const id of [getField(call, "id"), getField(call, "call_id")])
      if (typeof id === "string") this.#called.set(id, name);
    return name;
  }

  #describeMessage(message: unknown, role: unknown): [PieceKind, string] {
    const calls = getField(message, "tool_calls");
    if (Array.isArray(calls) && calls.length > 0) {
      const names = calls.map((call) => this.#noteChatCall(call));
      return ["call", names[0] ?? ""];
    }
    const parts = getField(message, "parts");
    for (const part of Array.isArray(parts) ? parts : []) {
      const [call, result] = [findAny(part, "functionCall"), findAny(part, "functionResponse")];
      if (call !== undefined) return ["call", getText(getField(call, "name"))];
      if (result !== undefined) return ["result", getText(getField(result, "name"))];
    }
    return [role === "assistant" || role === "model" ? "assistant" : "user", ""];
  }

  #noteChatCall(call: unknown): string {
    const name = getText(getField(getField(call, "function") ?? getField(call, "custom"), "name"));
    this.#called.set(getField(call, "id"), name);
    return name;
  }
}

/** As its definition and its calls name it. Empty: they do not. Responses have MCP servers as namespaces. */
function nameTool(tool: unknown, group = getText(getField(tool, "namespace"))): string {
  const name = getText(getField(tool, "name"));
  const isServer = name !== "" && group.startsWith("mcp__") && !name.startsWith("mcp__");
  return (isServer ? `${group.replace(/_+$/, "")}__${name}` : name).slice(0, MAX_NAME_LENGTH);
}

/** The content dialect writes names in two ways. */
function findAny(part: unknown, name: string): unknown {
  return isObject(part)
    ? (part[name] ?? part[name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)])
    : undefined;
}

/** More tools in one answer are not noted: memory is bounded. */
const MAX_TOOLS = 128;

/** The tools that an answer calls: only names are kept. */
export class CalledTools {
  #names: Set<string> | null = null;

  /** `call`: what has the name of the tool. */
  add(call: unknown, type = ""): void {
    const name = nameTool(call) || type;
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
