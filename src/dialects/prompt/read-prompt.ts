// Reads the parts of a prompt from a request's bytes, in one pass. Each part becomes a hash; nothing else is kept.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { equalsAt, findStringEnd, type Span } from "../../lib/json/json-spans.ts";
import {
  findStart,
  skipValue,
  type VisitElement,
  type VisitMember,
  walkElements,
  walkLaterMembers,
  walkMembers,
} from "../../lib/json/json-walk.ts";
import { ItemReader } from "./item.ts";
import type { Layout, Part, Role } from "./layouts.ts";
import type { Mark, Prompt } from "./prompt.ts";
import { MAX_SHAPED_BYTES, ShapeMemory } from "./shape.ts";

/** A prompt with more parts, or with more members beside them, is not read: that would take more than 2 ms. Agents send
 *  some thousand parts at most. */
const MAX_PARTS = 10_240;
const MAX_MEMBERS = 16_384;
/** A longer body is not read: it would block the event loop for more than 10 ms. No model has room for as much text. */
const MAX_PROMPT_BYTES = 8 * 1024 * 1024;

/** `context_management` has a few short rules. */
const MAX_EDITS_BYTES = 4096;
/** Of a longer system prompt, or of one in more parts, only the beginning is read for its shape. */
const MAX_SHAPED_PARTS = 64;
/** Messages at the beginning that may be part of the system prompt. */
const MAX_OPENING = 64;

const TOOLS = 0;
const SYSTEM = 1;
const MESSAGES = 2;
const HOUR_MS = 3_600_000;
const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;

const FUNCTIONS_FIRST = '{"function';
const FUNCTIONS = ['"functionDeclarations":', '"function_declarations":'];
const ROLE_FIRST = '{"role":"';
const USER_FIRST = 'user","content":';
const ASSISTANT_FIRST = 'assistant","content":';
const SYSTEM_ROLES = ['"system"', '"developer"'];
export class PromptReader {
  readonly #shapes = new ShapeMemory();

  /** Null if the body is not a JSON object with a prompt, has a member twice, or has too many parts. */
  read(body: Uint8Array, layout: Layout): Prompt | null {
    if (body.length > MAX_PROMPT_BYTES) return null;
    return new Reading(body, layout, this.#shapes).read();
  }
}

class Reading {
  readonly #bytes: Uint8Array;
  readonly #layout: Layout;
  readonly #shapeMemory: ShapeMemory;
  readonly #item: ItemReader;
  readonly #seen: string[] = [];
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
  /** Messages that were read so far. */
  #count = 0;
  /** Members that were looked at: of the request, and of messages in the messages dialect. */
  #members = 0;
  #isOpening = true;
  /** In parts of the system prompt. */
  #shapedBytes = 0;
  #hasThinking = false;
  /** The last message is new text of the user, and not the result of a tool. */
  #endsWithText = false;

  /** Of the message that is read now. */
  #isUser = false;
  #firstBlock = -1;
  // A prompt may have thousands of messages, so that these are no new functions for each.
  readonly #readBlocksMember: VisitMember = (keyStart, keyEnd, value) => {
    if (this.#countMember() > MAX_MEMBERS) return -1;
    if (this.#isKey(keyStart, keyEnd, '"role"')) {
      this.#isUser = equalsAt(this.#bytes, value, '"user"');
      return findStringEnd(this.#bytes, value);
    }
    if (!this.#isKey(keyStart, keyEnd, '"content"')) return skipValue(this.#bytes, value);
    return walkElements(this.#bytes, value, this.#readBlock);
  };
  readonly #readBlock: VisitElement = (block) => {
    if (this.#firstBlock < 0) this.#firstBlock = block;
    return this.#readPart(block, MESSAGES);
  };

  constructor(bytes: Uint8Array, layout: Layout, shapes: ShapeMemory) {
    this.#bytes = bytes;
    this.#layout = layout;
    this.#shapeMemory = shapes;
    this.#item = new ItemReader(bytes, layout.mark);
  }

  read(): Prompt | null {
    const end = walkMembers(this.#bytes, findStart(this.#bytes), (keyStart, keyEnd, value) => {
      if (this.#countMember() > MAX_MEMBERS) return -1;
      const name = this.#findName(keyStart, keyEnd);
      const role = this.#layout.members.get(name);
      if (role === undefined) return skipValue(this.#bytes, value);
      // Parsers disagree on which of two members counts.
      if (this.#seen.includes(name)) return -1;
      this.#seen.push(name);
      return this.#readMember(role, name, value);
    });
    if (end < 0 || !this.#hasParts()) return null;
    if (this.#wholeMark !== undefined) this.#mark(MESSAGES, this.#wholeMark);
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

  #hasParts(): boolean {
    return this.#parts[SYSTEM].length + this.#parts[MESSAGES].length > 0;
  }

  #countMember(): number {
    this.#members += 1;
    return this.#members;
  }

  #isKey(start: number, end: number, key: string): boolean {
    return end - start === key.length && equalsAt(this.#bytes, start, key);
  }

  /** The name of a member that counts; empty for others. */
  #findName(keyStart: number, keyEnd: number): string {
    for (const name of this.#layout.members.keys())
      if (keyEnd - keyStart === name.length + 2 && equalsAt(this.#bytes, keyStart + 1, name)) return name;
    return "";
  }

  #readMember(role: Role, name: string, value: number): number {
    if (role === "tools") return walkElements(this.#bytes, value, (start) => this.#readTool(start));
    if (role === "system") return walkElements(this.#bytes, value, (start) => this.#readSystem(start));
    if (role === "messages") return walkElements(this.#bytes, value, (start) => this.#readMessage(start));
    const end = skipValue(this.#bytes, value);
    if (end < 0 || equalsAt(this.#bytes, value, "null")) return end;
    // The upstream has the conversation, and nothing here shows what is in it.
    if (role === "held") return -1;
    this.#noteValue(role, name, { start: value, end });
    return end;
  }

  #noteValue(role: Exclude<Role, Part | "held">, name: string, { start, end }: Span): void {
    const hash = Number(Bun.hash.wyhash(this.#bytes.subarray(start, end)));
    switch (role) {
      case "tier":
        this.#tier += hash;
        break;
      case "continues":
        this.#continues = hash;
        break;
      case "edits":
        this.#noteEdits(
          asBuffer(this.#bytes).toString("latin1", start, Math.min(end, start + MAX_EDITS_BYTES)),
        );
        break;
      case "mark":
        this.#wholeMark = this.#readLifetime(start, end);
        break;
      case "lifetime":
        this.#lifetimeMs = this.#readLifetime(start, end) ?? this.#lifetimeMs;
        break;
      case "named":
        this.#named = true;
        this.#settings.set(name, hash);
        break;
      case "setting":
        this.#settings.set(name, hash);
    }
  }

  /** Claude Code always sends a rule for old thinking, which keeps all of it. */
  #noteEdits(text: string): void {
    this.#keepsThinking = /"keep"\s*:\s*"all"/.test(text);
    this.#edited =
      /clear_tool|compact/.test(text) || (text.includes("clear_thinking") && !this.#keepsThinking);
  }

  /** `"24h"`, or an object with a `ttl`. */
  #readLifetime(start: number, end: number): number | null {
    const text = asBuffer(this.#bytes).toString("latin1", start, Math.min(end, start + 256));
    const [, hours] = /"(\d{1,2})h"/.exec(text) ?? [];
    return hours === undefined ? null : Number(hours) * HOUR_MS;
  }

  /** A tool, or a list of functions inside one. */
  #readTool(start: number): number {
    const functions = this.#findFunctions(start);
    if (functions >= 0) return this.#readFunctions(start, functions);
    return this.#readPart(start, 0);
  }

  /** The content dialect groups its functions: `{"functionDeclarations":[…]}`. Returns the position of the list. */
  #findFunctions(start: number): number {
    if (!equalsAt(this.#bytes, start, FUNCTIONS_FIRST)) return -1;
    const name = FUNCTIONS.find((key) => equalsAt(this.#bytes, start + 1, key)) ?? "";
    const list = start + 1 + name.length;
    return this.#bytes[list] === OPEN_BRACKET ? list : -1;
  }

  #readFunctions(start: number, list: number): number {
    return walkMembers(this.#bytes, start, (_keyStart, _keyEnd, value) =>
      value === list
        ? walkElements(this.#bytes, value, (element) => this.#readPart(element, 0))
        : this.#readPart(value, 0),
    );
  }

  #readSystem(start: number): number {
    const end = this.#readPart(start, SYSTEM);
    if (end >= 0) this.#addShape(start, end);
    return end;
  }

  #addShape(start: number, end: number): void {
    const hash = this.#parts[SYSTEM].at(-1) ?? 0;
    const isShaped = this.#shapes.length < MAX_SHAPED_PARTS && this.#shapedBytes < MAX_SHAPED_BYTES;
    this.#shapedBytes += end - start;
    this.#shapes.push(isShaped ? this.#shapeMemory.find(hash, this.#bytes, { start, end }) : hash);
  }

  #readMessage(start: number): number {
    this.#count += 1;
    if (this.#layout.byBlock) return this.#readBlocks(start);
    const before = this.#parts[MESSAGES].length;
    const end = this.#readPart(start, MESSAGES);
    if (end < 0) return -1;
    const section = this.#isOpening ? this.#findSection(start) : MESSAGES;
    this.#isOpening = section !== MESSAGES && this.#count < MAX_OPENING;
    if (section !== MESSAGES) this.#moveTo(section, before);
    if (section === SYSTEM) this.#addShape(start, end);
    return end;
  }

  /** A system message at the beginning is the system prompt. Codex sends its tools before it, as an item of the input. */
  #findSection(start: number): 0 | 1 | 2 {
    let found: 0 | 1 | 2 = MESSAGES;
    walkMembers(this.#bytes, start, (keyStart, _keyEnd, value) => {
      if (equalsAt(this.#bytes, value, '"additional_tools"')) found = TOOLS;
      else if (!equalsAt(this.#bytes, keyStart, '"role"')) return skipValue(this.#bytes, value);
      else if (SYSTEM_ROLES.some((role) => equalsAt(this.#bytes, value, role))) found = SYSTEM;
      return -1;
    });
    return found;
  }

  #moveTo(section: 0 | 1, index: number): void {
    this.#parts[section].push(...this.#parts[MESSAGES].splice(index));
    this.#numbers.splice(index);
  }

  #readBlocks(start: number): number {
    if (this.#bytes[start] === QUOTE) return this.#readPart(start, MESSAGES);
    this.#firstBlock = -1;
    const content = this.#findContent(start);
    const end =
      content < 0
        ? walkMembers(this.#bytes, start, this.#readBlocksMember)
        : walkLaterMembers(
            this.#bytes,
            walkElements(this.#bytes, content, this.#readBlock),
            this.#readBlocksMember,
          );
    const isUser = this.#isUser;
    const first = this.#firstBlock;
    // Results and thoughts come first in their messages.
    this.#endsWithText = isUser && (first < 0 || !isResult(this.#bytes, first));
    this.#hasThinking ||= !isUser && first >= 0 && isThought(this.#bytes, first);
    return end;
  }

  /** The content of a message that begins as most do; -1: it begins in another way. */
  #findContent(start: number): number {
    const bytes = this.#bytes;
    const role = start + ROLE_FIRST.length;
    this.#isUser = false;
    if (!equalsAt(bytes, start, ROLE_FIRST)) return -1;
    if (equalsAt(bytes, role, ASSISTANT_FIRST)) return role + ASSISTANT_FIRST.length;
    this.#isUser = equalsAt(bytes, role, USER_FIRST);
    return this.#isUser ? role + USER_FIRST.length : -1;
  }

  #readPart(start: number, section: 0 | 1 | 2): number {
    const item = this.#item;
    const end = item.read(start);
    const parts = this.#parts[section];
    if (end < 0 || parts.length >= MAX_PARTS || item.isCrowded) return -1;
    parts.push(item.hash);
    if (section === MESSAGES) this.#numbers.push(this.#count);
    if (item.isMarked) this.#mark(section, item.isLong ? HOUR_MS : null);
    return end;
  }

  #mark(section: 0 | 1 | 2, lifetimeMs: number | null): void {
    this.#marks.push({ section, parts: this.#parts[section].length, lifetimeMs });
  }
}

/** Blocks begin so, as clients write them. */
function isResult(bytes: Uint8Array, start: number): boolean {
  return equalsAt(bytes, start, '{"type":"tool_result"') || equalsAt(bytes, start, '{"tool_use_id"');
}

function isThought(bytes: Uint8Array, start: number): boolean {
  return equalsAt(bytes, start, '{"type":"thinking"') || equalsAt(bytes, start, '{"type":"redacted_th');
}
