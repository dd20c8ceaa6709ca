// Reads the parts of a prompt from a request. Each part becomes a hash; nothing else is kept.

import { getField, isObject, parseJson } from "../../lib/json/json.ts";
import type { Layout, Part, Role } from "./layouts.ts";
import type { PieceReader } from "./pieces.ts";
import { type Mark, type Prompt, SECTIONS } from "./prompt.ts";

/** Agents send some thousand parts at most, and mark four of them. A prompt with more is not read. */
const MAX_PARTS = 10_240;
const MAX_MARKS = 256;
/** A longer body is not read: it would block the event loop for too long. No model has room for as much text. */
const MAX_PROMPT_BYTES = 8 * 1024 * 1024;
/** Nor is a deeper one: to write it takes time that grows with the square of the depth. */
const MAX_DEPTH = 500;

/** Of a longer system prompt, or of one in more parts, only the beginning is read for its shape. */
const MAX_SHAPED_PARTS = 64;
const MAX_SHAPED_LENGTH = 64 * 1024;
/** Messages at the beginning that may be part of the system prompt. */
const MAX_OPENING = 64;

const [TOOLS, SYSTEM, MESSAGES] = [0, 1, 2] as const;
const HOUR_MS = 3_600_000;

const SYSTEM_ROLES: ReadonlySet<unknown> = new Set(["system", "developer"]);
const THOUGHTS: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);
/** The content dialect groups its functions. */
const FUNCTION_LISTS = ["functionDeclarations", "function_declarations"];

/** Claude Code's line about itself, which Anthropic's own API leaves out of the prompt. */
const ATTRIBUTION = "x-anthropic-billing-header";
export const ATTRIBUTION_SHAPE = -1;
/** The line is a text or the text of a block, so that it begins near the start of the part. */
const MAX_FRAME_LENGTH = 64;

/** Null if the body is not a JSON object with a prompt, or is beyond a limit. `pieces` gets what its parts are. */
export function readPrompt(
  body: Uint8Array,
  layout: Layout,
  pieces: PieceReader | null = null,
): Prompt | null {
  if (body.length > MAX_PROMPT_BYTES) return null;
  const request = parseJson(new TextDecoder().decode(body));
  if (!isObject(request) || isDeep(request)) return null;
  return new PromptReader(layout, pieces).read(request);
}

function isDeep(value: unknown, left = MAX_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (left === 0) return true;
  // Loops, because this looks at every value of every prompt.
  if (Array.isArray(value)) {
    for (const inner of value) if (isDeep(inner, left - 1)) return true;
  } else if (isObject(value)) {
    for (const name in value) if (isDeep(value[name], left - 1)) return true;
  }
  return false;
}

class PromptReader {
  readonly #layout: Layout;
  readonly #pieces: PieceReader | null;
  readonly #parts: [number[], number[], number[]] = [[], [], []];
  readonly #shapes: number[] = [];
  readonly #numbers: number[] = [];
  readonly #settings = new Map<string, number>();
  readonly #marks: Mark[] = [];
  #tier = 0;
  #continues: number | null = null;
  #named = false;
  #edited = false;
  #keepsThinking = false;
  #lifetimeMs: number | null = null;
  /** The lifetime of a mark for the whole prompt; undefined: there is none. */
  #wholeMark: number | null | undefined;
  /** The upstream has the conversation, and nothing here shows what is in it. */
  #isHeld = false;
  /** Messages that were read so far. */
  #count = 0;
  #isOpening = true;
  #shapedLength = 0;
  #hasThinking = false;
  /** The last message is new text of the user, and not the result of a tool. */
  #endsWithText = false;

  constructor(layout: Layout, pieces: PieceReader | null) {
    this.#layout = layout;
    this.#pieces = pieces;
  }

  read(request: Readonly<Record<string, unknown>>): Prompt | null {
    for (const [name, role] of this.#layout.members) {
      const value = request[name] ?? null;
      if (value !== null) this.#readMember(role, name, value);
    }
    if (this.#wholeMark !== undefined) this.#mark(MESSAGES, this.#wholeMark);
    const [{ length: tools }, { length: system }, { length: messages }] = this.#parts;
    if (this.#isHeld || system + messages === 0 || this.#marks.length > MAX_MARKS) return null;
    if (Math.max(tools, system, messages) > MAX_PARTS) return null;
    return {
      parts: this.#parts,
      shapes: this.#shapes,
      numbers: this.#numbers,
      settings: this.#settings,
      tier: this.#tier,
      marks: this.#marks,
      lifetimeMs: this.#lifetimeMs,
      continues: this.#continues,
      named: this.#named,
      edited: this.#edited || (this.#hasThinking && this.#endsWithText && !this.#keepsThinking),
    };
  }

  #readMember(role: Role, name: string, value: unknown): void {
    if (role === "tools") for (const tool of listOf(value)) this.#readTool(tool);
    else if (role === "system") for (const part of listOf(value)) this.#readPart(part, SYSTEM);
    else if (role === "messages") for (const message of listOf(value)) this.#readMessage(message);
    else this.#noteValue(role, name, value);
  }

  #noteValue(role: Exclude<Role, Part>, name: string, value: unknown): void {
    switch (role) {
      case "held":
        this.#isHeld = true;
        break;
      case "tier":
        this.#tier += hash(value);
        break;
      case "continues":
        this.#continues = hash(value);
        break;
      case "edits":
        this.#noteEdits(JSON.stringify(value));
        break;
      case "mark":
        this.#wholeMark = readLifetime(value);
        break;
      case "lifetime":
        this.#lifetimeMs = readLifetime(value) ?? this.#lifetimeMs;
        break;
      case "named":
        this.#named = true;
        this.#settings.set(name, hash(value));
        break;
      case "setting":
        this.#settings.set(name, hash(value));
    }
  }

  /** Claude Code always sends a rule for old thinking, which keeps all of it. */
  #noteEdits(text: string): void {
    this.#keepsThinking = text.includes('"keep":"all"');
    this.#edited =
      /clear_tool|compact/.test(text) || (text.includes("clear_thinking") && !this.#keepsThinking);
  }

  /** A tool, or a list of functions inside one. */
  #readTool(tool: unknown): void {
    const isGroup = FUNCTION_LISTS.some((name) => Array.isArray(getField(tool, name)));
    const tools = isGroup && isObject(tool) ? Object.values(tool).flatMap(listOf) : [tool];
    for (const each of tools) this.#readPart(each, TOOLS);
  }

  #readMessage(message: unknown): void {
    this.#count += 1;
    if (this.#layout.byBlock && isObject(message)) return this.#readBlocks(message);
    const section = this.#isOpening ? findSection(message) : MESSAGES;
    this.#isOpening = section !== MESSAGES && this.#count < MAX_OPENING;
    this.#readPart(message, section);
  }

  /** A message of the messages dialect, which is cached block by block. */
  #readBlocks({ role, content }: Readonly<Record<string, unknown>>): void {
    const blocks = content === undefined ? [] : listOf(content);
    for (const block of blocks) this.#readPart(block, MESSAGES, role);
    const first = getField(blocks[0], "type");
    // Results and thoughts come first in their messages.
    this.#endsWithText = role === "user" && first !== "tool_result";
    this.#hasThinking ||= role !== "user" && THOUGHTS.has(first);
  }

  #readPart(part: unknown, section: 0 | 1 | 2, role?: unknown): void {
    const { bare, mark } = takeMark(part, this.#layout.mark);
    const text = writePart(bare);
    const hash = hashText(text);
    this.#pieces?.add(part, { section: SECTIONS[section], role, size: text.length, hash });
    this.#parts[section].push(hash);
    if (section === SYSTEM) this.#shapes.push(this.#readShape(text, hash));
    if (section === MESSAGES) this.#numbers.push(this.#count);
    if (mark !== null) this.#mark(section, readLifetime(mark));
  }

  /** What stays the same when only the part's digits change: a date, a time, a counter. */
  #readShape(text: string, hash: number): number {
    const isShaped = this.#shapes.length < MAX_SHAPED_PARTS && this.#shapedLength < MAX_SHAPED_LENGTH;
    this.#shapedLength += text.length;
    if (!isShaped) return hash;
    const place = text.indexOf(ATTRIBUTION);
    if (place >= 0 && place < MAX_FRAME_LENGTH) return ATTRIBUTION_SHAPE;
    return hashText(text.slice(0, MAX_SHAPED_LENGTH).replace(/\d+/g, "0"));
  }

  #mark(section: 0 | 1 | 2, lifetimeMs: number | null): void {
    this.#marks.push({ section, parts: this.#parts[section].length, lifetimeMs });
  }
}

/** A system message at the beginning is the system prompt. Codex sends its tools before it, as an item of the input. */
function findSection(message: unknown): 0 | 1 | 2 {
  if (getField(message, "type") === "additional_tools") return TOOLS;
  return SYSTEM_ROLES.has(getField(message, "role")) ? SYSTEM : MESSAGES;
}

/** A part without its marks for the cache, which move from turn to turn, and the last of them. What a part contains in a
 *  list may be marked too: the content of a message or of a tool's result. */
function takeMark(part: unknown, name: string): { bare: unknown; mark: unknown } {
  if (!holdsMark(part, name)) return { bare: part, mark: null };
  let mark: unknown = null;
  const strip = (value: unknown): unknown => {
    if (!isObject(value) || !Object.hasOwn(value, name)) return value;
    const { [name]: found, ...others } = value;
    mark = found ?? mark;
    return others;
  };
  const own = strip(part);
  if (!isObject(own)) return { bare: own, mark };
  const members = Object.entries(own).map(([key, value]) => [
    key,
    isMarkedList(value, name) ? value.map(strip) : value,
  ]);
  return { bare: Object.fromEntries(members), mark };
}

/** Nearly all parts hold none, and are not copied. */
function holdsMark(part: unknown, name: string): boolean {
  if (!isObject(part)) return false;
  if (Object.hasOwn(part, name)) return true;
  for (const member in part) if (isMarkedList(part[member], name)) return true;
  return false;
}

function isMarkedList(value: unknown, name: string): value is unknown[] {
  return Array.isArray(value) && value.some((each) => isObject(each) && Object.hasOwn(each, name));
}

/** The same for a text and for a block that holds only this text. */
function writePart(part: unknown): string {
  if (typeof part === "string") return part;
  const text = getField(part, "text");
  if (typeof text !== "string" || !isObject(part)) return JSON.stringify(part);
  const isPlain = Object.keys(part).every((name) => name === "text" || name === "type");
  return isPlain && (part["type"] ?? "text") === "text" ? text : JSON.stringify(part);
}

function hash(value: unknown): number {
  return hashText(JSON.stringify(value));
}

function hashText(text: string): number {
  return Number(Bun.hash.wyhash(text));
}

/** A list, or any other value as the only element of one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** `"24h"`, or an object with a `ttl`. Null: the upstream's own. */
function readLifetime(value: unknown): number | null {
  const [, hours] = /"(\d{1,2})h"/.exec(JSON.stringify(value)) ?? [];
  return hours === undefined ? null : Number(hours) * HOUR_MS;
}

/** Whether an upstream leaves Claude Code's line about itself out of the prompt. */
export function dropsAttribution({ hostname }: URL): boolean {
  return hostname === "api.anthropic.com";
}
