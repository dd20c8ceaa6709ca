// Reads the parts of a prompt from a request's bytes, in one pass. Each part becomes a hash; nothing else is kept. White
// space between the tokens of the JSON makes no difference to what is found.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { equalsAt, type Span } from "../../lib/json/json-spans.ts";
import {
  findStart,
  matchTokens,
  skipValue,
  type VisitElement,
  type VisitMember,
  walkElements,
  walkMembers,
} from "../../lib/json/json-walk.ts";
import { ItemReader } from "./item.ts";
import type { Layout, Part, Role } from "./layouts.ts";
import type { Mark, Prompt } from "./prompt.ts";

/** A prompt with more parts, or with more members beside them, is not read: that would take more than 4 ms. Agents send
 *  some thousand parts at most. */
const MAX_PARTS = 10_240;
const MAX_MEMBERS = 16_384;
/** A longer body is not read: it would block the event loop for more than 10 ms. No model has room for as much text. */
const MAX_PROMPT_BYTES = 8 * 1024 * 1024;

/** `context_management` has a few short rules. */
const MAX_EDITS_BYTES = 4096;
/** Of a longer system prompt, or of one in more parts, only the beginning is read for its shape. */
const MAX_SHAPED_PARTS = 64;
const MAX_SHAPED_BYTES = 64 * 1024;
/** Messages at the beginning that may be part of the system prompt. */
const MAX_OPENING = 64;

const [TOOLS, SYSTEM, MESSAGES] = [0, 1, 2] as const;
const HOUR_MS = 3_600_000;
const QUOTE = 0x22;

const SYSTEM_ROLES = ['"system"', '"developer"'];
/** The content dialect groups its functions. */
const FUNCTION_LISTS = ['"functionDeclarations"', '"function_declarations"'];
/** How blocks begin, as clients write them. Results and thoughts come first in their messages. */
const RESULTS = [
  ["{", '"type"', ":", '"tool_result"'],
  ["{", '"tool_use_id"', ":"],
];
const THOUGHTS = [
  ["{", '"type"', ":", '"thinking"'],
  ["{", '"type"', ":", '"redacted_thinking"'],
];

/** Claude Code's line about itself, which Anthropic's own API leaves out of the prompt. */
const ATTRIBUTION = "x-anthropic-billing-header";
export const ATTRIBUTION_SHAPE = -1;
/** The line is a text or the text of a block, so that it begins near the start of the part. */
const MAX_FRAME_BYTES = 64;

/** Null if the body is not a JSON object with a prompt, has a member twice, or has too many parts. */
export function readPrompt(body: Uint8Array, layout: Layout): Prompt | null {
  return body.length > MAX_PROMPT_BYTES ? null : new PromptReader(body, layout).read();
}

class PromptReader {
  readonly #bytes: Uint8Array;
  readonly #layout: Layout;
  readonly #item: ItemReader;
  readonly #seen = new Set<string>();
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
  /** Members that were looked at: of the request, and of messages in the messages dialect beside role and content. */
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

  constructor(bytes: Uint8Array, layout: Layout) {
    this.#bytes = bytes;
    this.#layout = layout;
    this.#item = new ItemReader(bytes, layout.mark);
  }

  read(): Prompt | null {
    const end = walkMembers(this.#bytes, findStart(this.#bytes), (keyStart, keyEnd, value) => {
      if (!this.#countMember()) return -1;
      const name = this.#findName(keyStart, keyEnd);
      const role = this.#layout.members.get(name);
      if (role === undefined) return skipValue(this.#bytes, value);
      // Parsers disagree on which of two members counts.
      if (this.#seen.has(name)) return -1;
      this.#seen.add(name);
      return this.#readMember(role, name, value);
    });
    if (end < 0 || this.#parts[SYSTEM].length + this.#parts[MESSAGES].length === 0) return null;
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

  #countMember(): boolean {
    this.#members += 1;
    return this.#members <= MAX_MEMBERS;
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
    if (role === "messages") {
      const read: VisitElement = this.#layout.byBlock
        ? (start) => this.#readBlocks(start)
        : (start) => this.#readMessage(start);
      return walkElements(this.#bytes, value, read);
    }
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
        this.#noteEdits(this.#text(start, end, MAX_EDITS_BYTES));
        break;
      case "mark":
        this.#wholeMark = readLifetime(this.#text(start, end));
        break;
      case "lifetime":
        this.#lifetimeMs = readLifetime(this.#text(start, end)) ?? this.#lifetimeMs;
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

  #text(start: number, end: number, mostBytes = 256): string {
    return asBuffer(this.#bytes).toString("latin1", start, Math.min(end, start + mostBytes));
  }

  /** A tool, or a list of functions inside one. */
  #readTool(start: number): number {
    const isGroup = FUNCTION_LISTS.some(
      (name) => matchTokens(this.#bytes, start, ["{", name, ":", "["]) >= 0,
    );
    if (!isGroup) return this.#readPart(start, TOOLS);
    return walkMembers(this.#bytes, start, (_keyStart, _keyEnd, value) =>
      walkElements(this.#bytes, value, (element) => this.#readPart(element, TOOLS)),
    );
  }

  #readSystem(start: number): number {
    const end = this.#readPart(start, SYSTEM);
    if (end >= 0) this.#addShape(start, end);
    return end;
  }

  /** What stays the same when only the part's digits change: a date, a time, a counter. */
  #addShape(start: number, end: number): void {
    const isShaped = this.#shapes.length < MAX_SHAPED_PARTS && this.#shapedBytes < MAX_SHAPED_BYTES;
    this.#shapedBytes += end - start;
    if (!isShaped) return void this.#shapes.push(this.#parts[SYSTEM].at(-1) ?? 0);
    const text = this.#text(start, end, MAX_SHAPED_BYTES);
    const place = text.indexOf(ATTRIBUTION);
    const isLine = place >= 0 && place < MAX_FRAME_BYTES;
    this.#shapes.push(isLine ? ATTRIBUTION_SHAPE : Number(Bun.hash.wyhash(text.replace(/\d+/g, "0"))));
  }

  #readMessage(start: number): number {
    this.#count += 1;
    const section = this.#isOpening ? this.#findSection(start) : MESSAGES;
    this.#isOpening = section !== MESSAGES && this.#count < MAX_OPENING;
    return section === SYSTEM ? this.#readSystem(start) : this.#readPart(start, section);
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

  /** A message of the messages dialect, which is cached block by block. */
  #readBlocks(start: number): number {
    this.#count += 1;
    if (this.#bytes[start] === QUOTE) return this.#readPart(start, MESSAGES);
    this.#firstBlock = -1;
    this.#isUser = false;
    const end = walkMembers(this.#bytes, start, this.#readBlocksMember);
    this.#endsWithText = this.#isUser && !this.#beginsWith(RESULTS);
    this.#hasThinking ||= !this.#isUser && this.#beginsWith(THOUGHTS);
    return end;
  }

  // A prompt may have thousands of messages, so that these are no new functions for each.
  readonly #readBlocksMember: VisitMember = (keyStart, _keyEnd, value) => {
    if (equalsAt(this.#bytes, keyStart, '"content"'))
      return walkElements(this.#bytes, value, this.#readBlock);
    if (equalsAt(this.#bytes, keyStart, '"role"')) this.#isUser = equalsAt(this.#bytes, value, '"user"');
    else if (!this.#countMember()) return -1;
    return skipValue(this.#bytes, value);
  };
  readonly #readBlock: VisitElement = (block) => {
    if (this.#firstBlock < 0) this.#firstBlock = block;
    return this.#readPart(block, MESSAGES);
  };

  #beginsWith(openings: readonly (readonly string[])[]): boolean {
    const first = this.#firstBlock;
    return first >= 0 && openings.some((tokens) => matchTokens(this.#bytes, first, tokens) >= 0);
  }

  #readPart(start: number, section: 0 | 1 | 2): number {
    const item = this.#item;
    const parts = this.#parts[section];
    const end = item.read(start);
    if (end < 0 || parts.length >= MAX_PARTS || item.hasTooMany) return -1;
    parts.push(item.hash);
    if (section === MESSAGES) this.#numbers.push(this.#count);
    if (item.mark !== null) this.#mark(section, readLifetime(item.mark));
    return end;
  }

  #mark(section: 0 | 1 | 2, lifetimeMs: number | null): void {
    this.#marks.push({ section, parts: this.#parts[section].length, lifetimeMs });
  }
}

/** `"24h"`, or an object with a `ttl`. Null: the upstream's own. */
function readLifetime(text: string): number | null {
  const [, hours] = /"(\d{1,2})h"/.exec(text) ?? [];
  return hours === undefined ? null : Number(hours) * HOUR_MS;
}

/** Whether an upstream leaves Claude Code's line about itself out of the prompt. */
export function dropsAttribution({ hostname }: URL): boolean {
  return hostname === "api.anthropic.com";
}
