// Puts the parts of a request's body together into its prompt. A part that is known from an earlier request is not read
// again.

import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { readString, Scanner, type Span } from "../../lib/json/scanner.ts";
import { hashBytes, MAX_PART_BYTES, type Part, type Scan } from "../../lib/scan.ts";
import type { Layout, Part as PartRole, Role } from "./layouts.ts";
import { type Block, type NamedPiece, type PartFacts, readLifetime, readPart } from "./parts.ts";
import type { Piece } from "./pieces.ts";
import { type Mark, MESSAGES, type Prompt, type Section, SYSTEM, TOOLS } from "./prompt.ts";

/** Agents send some thousand parts at most, and mark four of them. A prompt with more is not read. */
const MAX_PARTS = 10_240;
const MAX_MARKS = 256;
/** Of a system prompt in more parts, or of a longer one, only the beginning has a shape. */
const MAX_SHAPED_PARTS = 64;
const MAX_SHAPED_BYTES = 64 * 1024;
/** Messages at the beginning that may be part of the system prompt. */
const MAX_OPENING = 64;
/** To read parts of this many bytes takes less than a millisecond. */
const STEP_BYTES = 64 * 1024;

const SECTION_OF: Readonly<Record<PartRole, Section>> = { tools: TOOLS, system: SYSTEM, messages: MESSAGES };

/** A body, and the parts of its prompt. */
export interface ScannedBody {
  readonly bytes: Uint8Array;
  readonly scan: Scan<PartFacts>;
}

/** Reads the parts that nobody has read. True: all are read. False: it has stopped after some of them. */
export function readParts({ bytes, scan }: ScannedBody, layout: Layout): boolean {
  const json = new Scanner(bytes);
  let left = STEP_BYTES;
  for (const [name, { starts, parts }] of scan.lists) {
    const section = sectionOf(layout, name);
    if (section === null) continue;
    for (let at = 0; at < parts.length; at += 1) {
      const part = parts[at];
      if (part === undefined || part.about !== null || part.length > MAX_PART_BYTES) continue;
      if (left < 0) return false;
      left -= part.length;
      json.rewind(starts[at] ?? 0);
      part.about = readPart(json, section, layout);
    }
  }
  return true;
}

/** Null if the body has no prompt, or more than is read. All its parts have been read. `pieces`: what they are. */
export function joinPrompt(body: ScannedBody, layout: Layout, pieces: Piece[] = []): Prompt | null {
  return new PromptWriter(body, layout, pieces).write();
}

function sectionOf({ members }: Pick<Layout, "members">, name: string): Section | null {
  const role = members.get(name);
  return role !== undefined && isPart(role) ? SECTION_OF[role] : null;
}

function isPart(role: Role): role is PartRole {
  return Object.hasOwn(SECTION_OF, role);
}

class PromptWriter {
  readonly #body: ScannedBody;
  readonly #layout: Layout;
  readonly #pieces: Piece[];
  /** The tools of calls by their ids. A result follows its call. */
  readonly #called = new Map<string, string>();
  readonly #parts: [number[], number[], number[]] = [[], [], []];
  readonly #shapes: number[] = [];
  readonly #numbers: number[] = [];
  readonly #settings = new Map<string, number>();
  readonly #marks: Mark[] = [];
  #tier = 0;
  #named = false;
  #edited = false;
  #keepsThinking = false;
  #lifetimeMs: number | null = null;
  /** The lifetime of a mark for the whole prompt; undefined: there is none. */
  #wholeMark: number | null | undefined;
  /** The upstream has the conversation, and nothing here shows what is in it; or it is too long. */
  #isUnread = false;
  #shapedBytes = 0;
  #hasThinking = false;
  /** The last message is new text of the user, and not the result of a tool. */
  #endsWithText = false;

  constructor(body: ScannedBody, layout: Layout, pieces: Piece[]) {
    this.#body = body;
    this.#layout = layout;
    this.#pieces = pieces;
  }

  write(): Prompt | null {
    for (const [name, role] of this.#layout.members)
      if (isPart(role)) this.#addList(name, SECTION_OF[role]);
      else this.#addValue(name, role);
    if (this.#wholeMark !== undefined) this.#mark(MESSAGES, this.#wholeMark);
    const previous = readPrevious(this.#body, this.#layout);
    if (this.#isUnread || this.#marks.length > MAX_MARKS || !this.#hasParts()) return null;
    return {
      parts: this.#parts,
      shapes: this.#shapes,
      numbers: this.#numbers,
      settings: this.#settings,
      tier: this.#tier,
      marks: this.#marks,
      lifetimeMs: this.#lifetimeMs,
      continues: previous === null ? null : hashId(previous),
      named: this.#named,
      edited: this.#edited || (this.#hasThinking && this.#endsWithText && !this.#keepsThinking),
    };
  }

  #hasParts(): boolean {
    const [{ length: tools }, { length: system }, { length: messages }] = this.#parts;
    return system + messages > 0 && Math.max(tools, system, messages) <= MAX_PARTS;
  }

  #addList(name: string, role: Section): void {
    const { scan } = this.#body;
    const { parts } = scan.lists.get(name) ?? {};
    // It has more parts than are read, or a longer one.
    if (parts?.some(({ about }) => about === null) ?? scan.get(name) !== undefined) this.#isUnread = true;
    if (parts === undefined) return;
    if (role === MESSAGES) this.#addMessages(parts);
    else for (const { about } of parts) for (const block of about?.blocks ?? []) this.#addBlock(block, role);
  }

  #addMessages(parts: readonly Part<PartFacts>[]): void {
    let isOpening = true;
    let number = 0;
    for (const { about } of parts) {
      number += 1;
      if (about === null) continue;
      const section: Section = isOpening ? about.opening : MESSAGES;
      isOpening &&= section !== MESSAGES && number < MAX_OPENING;
      const isMoved = section !== about.opening;
      for (const block of about.blocks) this.#addBlock(isMoved ? asText(block) : block, section, number);
      this.#endsWithText = about.isText;
      this.#hasThinking ||= about.isThinking;
    }
  }

  /** `message`: the number of the one that has the block. */
  #addBlock({ hash, size, mark, shape, pieces }: Block, section: Section, message = 0): void {
    this.#parts[section].push(hash);
    if (section === SYSTEM) {
      const isShaped = this.#shapes.length < MAX_SHAPED_PARTS && this.#shapedBytes < MAX_SHAPED_BYTES;
      this.#shapedBytes += size;
      this.#shapes.push(isShaped ? shape : hash);
    }
    if (section === MESSAGES) this.#numbers.push(message);
    if (mark !== undefined) this.#mark(section, mark);
    for (const piece of pieces) this.#addPiece(piece);
  }

  #addPiece(piece: NamedPiece): void {
    for (const [id, tool] of piece.calls ?? []) this.#called.set(id, tool);
    if (piece.of !== undefined && piece.name === "") piece.name = this.#called.get(piece.of) ?? "";
    this.#pieces.push(piece);
  }

  #addValue(name: string, role: Exclude<Role, PartRole>): void {
    const span = this.#body.scan.get(name);
    const bytes = asBuffer(this.#body.bytes);
    if (isNothing(bytes, span)) return;
    switch (role) {
      case "held":
        this.#isUnread = true;
        break;
      case "tier":
        this.#tier += hashSpan(bytes, span);
        break;
      case "edits":
        this.#noteEdits(bytes.toString("latin1", span.start, span.end));
        break;
      case "mark":
        this.#wholeMark = readLifetime(bytes, span);
        break;
      case "lifetime":
        this.#lifetimeMs = readLifetime(bytes, span) ?? this.#lifetimeMs;
        break;
      case "named":
        this.#named = true;
        this.#settings.set(name, hashSpan(bytes, span));
        break;
      case "setting":
        this.#settings.set(name, hashSpan(bytes, span));
        break;
      case "continues":
      case "thread":
    }
  }

  /** Claude Code always sends a rule for old thinking, which keeps all of it. */
  #noteEdits(text: string): void {
    this.#keepsThinking = /"keep"\s*:\s*"all"/.test(text);
    this.#edited =
      /clear_tool|compact/.test(text) || (text.includes("clear_thinking") && !this.#keepsThinking);
  }

  #mark(section: Section, lifetimeMs: number | null): void {
    this.#marks.push({ section, parts: this.#parts[section].length, lifetimeMs });
  }
}

const NULL_START = 0x6e;

/** Of a response. */
export function hashId(id: string): number {
  return hashBytes(Buffer.from(id));
}

/** A message of the system, or one with tools, after the conversation has begun. */
function asText(block: Block): Block {
  const { hash, size } = block;
  return { ...block, pieces: [{ kind: "user", name: "", hash, size }] };
}

function isNothing(bytes: Buffer, span: Span | undefined): span is undefined {
  return span === undefined || bytes[span.start] === NULL_START;
}

function hashSpan(bytes: Buffer, { start, end }: Span): number {
  return hashBytes(bytes.subarray(start, end));
}

/** The id of the response that the request continues. A thread that goes on holds only what is new. Null: it is whole, or
 *  names no response. */
export function readPrevious(
  { bytes, scan }: ScannedBody,
  { members }: Pick<Layout, "members">,
): string | null {
  for (const [name, role] of members) {
    const span = role === "continues" || role === "thread" ? scan.get(name) : undefined;
    if (span === undefined) continue;
    if (role === "continues") return readString(bytes, span);
    const thread = parseJson(asBuffer(bytes).toString("utf8", span.start, span.end));
    const id = getField(thread, "previous_message_id");
    return getField(thread, "type") === "continue" ? getText(id) : null;
  }
  return null;
}

/** Whether an upstream leaves Claude Code's line about itself out of the prompt. */
export function dropsAttribution({ hostname }: URL): boolean {
  return hostname === "api.anthropic.com";
}

/** What is read of a request's body: the members of its prompt, and of these the lists whose elements are its parts. */
export function listWanted({ members }: Layout): { names: string[]; lists: Set<string> } {
  const names = [...members.keys()];
  return { names, lists: new Set(names.filter((name) => sectionOf({ members }, name) !== null)) };
}
