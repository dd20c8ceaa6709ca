// A part of a prompt as hashes of its blocks. No text is kept.

import { getField, getList, getText, isObject, parseFlatJson, textOf } from "../../lib/json/json.ts";
import { findCall, findResult, nameTool, type ToolCall, type ToolResult } from "./calls.ts";
import type { Layout, Section } from "./layouts.ts";

/** The upstream caches the prompt up to a mark.
 *  Null: the upstream's default lifetime. */
export type BlockMark = { readonly lifetimeMs: number | null; readonly hash: number };

/** A tool, a part of the system prompt, or a block of a message. */
export interface PromptBlock {
  /** A text has the same hash as a block with only this text. */
  readonly hash: number;
  /** In the system prompt, a hash that ignores digits. */
  readonly shape: number;
  readonly mark: BlockMark | undefined;
  /** One piece, or one for each tool of a group. */
  readonly pieces: readonly NamedPiece[];
}

export interface Piece {
  readonly kind: "tool" | "system" | "user" | "assistant" | "thinking" | "call" | "result";
  /** The tool's name. Empty for other pieces. */
  readonly name: string;
  /** In characters. */
  readonly size: number;
  readonly hash: number;
}

export interface NamedPiece extends Piece {
  /** A result gets its call's name later. */
  name: string;
  readonly calls?: readonly Pick<ToolCall, "id" | "name">[];
  /** The id of a result's call. */
  readonly of?: string;
}

export interface PartFacts {
  readonly blocks: readonly PromptBlock[];
  /** The section of this part, if it is at the prompt's beginning. */
  readonly opening: Section;
  /** New text of the user, not the result of a tool. */
  readonly isText: boolean;
  readonly isThinking: boolean;
}

/** A longer part would take over a millisecond. */
const MAX_PARSED_BYTES = 1024 * 1024;
const SYSTEM_ROLES: ReadonlySet<unknown> = new Set(["system", "developer"]);
const THOUGHTS: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

export function readPart(bytes: Buffer, section: Section, { byBlock }: Layout): PartFacts {
  const text = bytes.toString();
  const value = (bytes.length > MAX_PARSED_BYTES ? undefined : parseFlatJson(text)) ?? text;
  if (section === "messages" && byBlock && isObject(value)) return readMessage(value);
  const opening = section === "messages" ? findOpening(value) : section;
  const values = section === "tools" ? listFunctions(value) : [value];
  const blocks = values.map((each) => readBlock(each, opening, getField(each, "role")));
  return { blocks, opening, isText: false, isThinking: false };
}

/** The section of a leading message. Codex sends tools first. */
function findOpening(message: unknown): Section {
  if (getField(message, "type") === "additional_tools") return "tools";
  return SYSTEM_ROLES.has(getField(message, "role")) ? "system" : "messages";
}

/** The content dialect groups functions. */
function listFunctions(tool: unknown): readonly unknown[] {
  const isGroup = ["functionDeclarations", "function_declarations"].some((name) => getField(tool, name));
  return isGroup && isObject(tool) ? Object.values(tool).flat() : [tool];
}

function readMessage(message: Readonly<Record<string, unknown>>): PartFacts {
  const { content, role } = message;
  const single = content === undefined ? [] : [content];
  const values: readonly unknown[] = Array.isArray(content) ? content : single;
  const type = getField(values[0], "type");
  const frame = hashText(writeBare(message, [], "content"));
  return {
    blocks: values.map((value) => readBlock(value, "messages", role, frame)),
    opening: "messages",
    // The first block decides: results and thoughts come first.
    isText: role === "user" && type !== "tool_result",
    isThinking: role !== "user" && THOUGHTS.has(type),
  };
}

/** `frame`: a hash of the message without its blocks. */
function readBlock(value: unknown, section: Section, role: unknown, frame = 0): PromptBlock {
  const marks: unknown[] = [];
  const text = writeBare(value, marks);
  const hash = hashText(text) + frame;
  return {
    hash,
    shape: section === "system" ? readShape(text) : hash,
    mark: marks.length === 0 ? undefined : readMark(JSON.stringify(marks.at(-1))),
    pieces:
      section === "tools"
        ? listTools(value, text)
        : [describe(value, section, role, { hash, size: text.length })],
  };
}

export const MARK_NAMES: ReadonlySet<string> = new Set(["cache_control", "prompt_cache_breakpoint"]);

/** The part as JSON without its marks, which go to `marks`. */
function writeBare(part: unknown, marks: unknown[], without = ""): string {
  if (!isObject(part)) return textOf(part);
  let text = "";
  let isMore = false;
  for (const name in part) {
    const value = part[name];
    if (name === without || isMark(name, value, marks)) continue;
    isMore ||= name !== "text" && (name !== "type" || value !== "text");
    text += `${name}:${Array.isArray(value) ? writeList(value, marks) : textOf(value)}\n`;
  }
  return !isMore && typeof part["text"] === "string" ? part["text"] : text;
}

/** What a list contains may be marked too. */
function writeList(list: readonly unknown[], marks: unknown[]): string {
  const json = JSON.stringify(list);
  const drop = (name: string, value: unknown) => (isMark(name, value, marks) ? undefined : value);
  return json.includes("cache_") ? JSON.stringify(list, drop) : json;
}

function isMark(name: string, value: unknown, marks: unknown[]): boolean {
  const isOne = MARK_NAMES.has(name);
  if (isOne && value !== null) marks.push(value);
  return isOne;
}

export function readMark(json: string): BlockMark {
  return { lifetimeMs: readLifetime(json), hash: hashText(json) };
}

/** `"24h"`, or an object with a `ttl`. Null: the upstream's default. */
export function readLifetime(mark: string): number | null {
  const [, hours] = /"(\d{1,2})h"/.exec(mark) ?? [];
  return hours === undefined ? null : Number(hours) * 3_600_000;
}

/** Anthropic's API leaves this line of Claude Code out of the prompt. */
const ATTRIBUTION = "x-anthropic-billing-header";
export const ATTRIBUTION_SHAPE = -1;
/** The line is near the start of its part. */
const MAX_FRAME_LENGTH = 64;
const MAX_SHAPED_LENGTH = 64 * 1024;

function readShape(text: string): number {
  if (text.slice(0, MAX_FRAME_LENGTH + ATTRIBUTION.length).includes(ATTRIBUTION)) return ATTRIBUTION_SHAPE;
  return hashText(text.slice(0, MAX_SHAPED_LENGTH).replace(/\d+/g, "0"));
}

export function hashText(text: string): number {
  return Number(Bun.hash.xxHash3(text));
}

/** Codex groups tools: in an item, and by namespaces. */
const MAX_GROUPS = 3;

function listTools(tool: unknown, text: string, namespace = "", groups = MAX_GROUPS): NamedPiece[] {
  const inner = groups === 0 ? [] : getList(getField(tool, "tools"));
  const given = getText(getField(tool, "name"));
  if (inner.length > 0)
    return inner.flatMap((each) => listTools(each, writeBare(each, []), given, groups - 1));
  const own = nameTool(tool, namespace || undefined);
  const name = own || nameTool(getField(tool, "function")) || getText(getField(tool, "type"));
  return [{ kind: "tool", name, hash: hashText(text), size: text.length }];
}

type Hashed = Pick<Piece, "hash" | "size">;

function describe(part: unknown, section: Section, role: unknown, { hash, size }: Hashed): NamedPiece {
  if (section === "system") return { kind: "system", name: "", size, hash };
  const type = getField(part, "type");
  if (type === "reasoning" || THOUGHTS.has(type)) return { kind: "thinking", name: "", size, hash };
  const calls: Pick<ToolCall, "id" | "name">[] = [];
  let result: ToolResult | null = null;
  for (const each of [part, ...getList(getField(part, "tool_calls")), ...getList(getField(part, "parts"))]) {
    const call = findCall(each);
    if (call === null) result ??= findResult(each);
    else calls.push({ id: call.id, name: call.name });
  }
  if (calls[0] !== undefined) return { kind: "call", name: calls[0].name, size, hash, calls };
  if (result !== null) return { kind: "result", name: result.name, size, hash, of: result.id };
  const isAssistant = role === "assistant" || role === "model";
  return { kind: isAssistant ? "assistant" : "user", name: "", size, hash };
}
