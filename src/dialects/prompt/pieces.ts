// What the parts of a prompt are: their kind, the tool that they are about, and how long they are. No text is kept.

import { getField, getText, isObject } from "../../lib/json/json.ts";
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
    const [kind, name] = section === "messages" ? this.#describe(part, role) : describeFixed(part, section);
    this.pieces.push({ kind, name: name.slice(0, MAX_NAME_LENGTH), size, hash });
  }

  /** A block of a message, an item of the responses dialect, or a whole message of the others. */
  #describe(part: unknown, outer: unknown): [PieceKind, string] {
    const type = getText(getField(part, "type"));
    const role = outer ?? getField(part, "role");
    if (THOUGHTS.has(type)) return ["thinking", ""];
    if (type === "tool_use" || type.endsWith("_call")) return ["call", this.#noteCall(part, type)];
    const id = getField(part, "tool_use_id") ?? getField(part, "call_id") ?? getField(part, "tool_call_id");
    if (type === "tool_result" || type.endsWith("_output") || role === "tool")
      return ["result", this.#called.get(id) ?? ""];
    return this.#describeMessage(part, role);
  }

  #noteCall(call: unknown, type: string): string {
    const name = getText(getField(call, "name")) || type;
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

function describeFixed(part: unknown, section: Exclude<Section, "messages">): [PieceKind, string] {
  if (section === "system") return ["system", ""];
  const named = getField(part, "name") ?? getField(getField(part, "function"), "name");
  return ["tool", getText(named) || getText(getField(part, "type"))];
}

/** The content dialect writes names in two ways. */
function findAny(part: unknown, name: string): unknown {
  return isObject(part)
    ? (part[name] ?? part[name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)])
    : undefined;
}
