// Puts the parts of a request's body together into its prompt. A part that is known from an earlier request is not read
// again.

import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { readString, Scanner } from "../../lib/json/scanner.ts";
import { hashBytes, type Head, MAX_PART_BYTES, type Scan } from "../../lib/scan.ts";
import type { Layout, Part as PartRole, Role } from "./layouts.ts";
import { type Block, type NamedPiece, type PartFacts, readLifetime, readPart } from "./parts.ts";
import type { Piece } from "./pieces.ts";
import { type Mark, MESSAGES, type Prompt, Row, type Section, SYSTEM, TOOLS } from "./prompt.ts";

/** Agents send some thousand parts at most, and mark four of them. A prompt with more is not read. */
const MAX_PARTS = 10_240;
const MAX_MARKS = 256;
/** Messages at the beginning that may be part of the system prompt. */
const MAX_OPENING = 64;
/** To read parts of this many bytes takes less than a millisecond. */
const STEP_BYTES = 64 * 1024;
/** A shorter body is read when somebody asks: nearly always nobody does. */
export const SHORT_BYTES = 16 * 1024;

const SECTION_OF: Readonly<Record<PartRole, Section>> = { tools: TOOLS, system: SYSTEM, messages: MESSAGES };

/** A body, and the parts of its prompt. */
export interface ScannedBody {
  readonly bytes: Uint8Array;
  readonly scan: Scan<PartFacts>;
}

/** The prompt of a request that has been sent. It is read in steps, between which the event loop turns. */
export class SentPrompt {
  readonly layout: Layout;
  readonly #pieces: Row<Piece>[] = [];
  /** Null: it has been read. */
  #body: ScannedBody | null;
  #prompt: Prompt | null = null;

  constructor(body: ScannedBody, layout: Layout) {
    this.layout = layout;
    this.#body = body;
    // The request leaves first.
    if (body.bytes.length > SHORT_BYTES) setImmediate(() => this.#advance());
  }

  /** Null if the body has no prompt that could be read. */
  read(): Prompt | null {
    while (this.#body !== null) this.#step(this.#body);
    return this.#prompt;
  }

  /** What its parts are, by list. */
  readPieces(): readonly Row<Piece>[] {
    this.read();
    return this.#pieces;
  }

  #advance(): void {
    if (this.#body === null) return;
    this.#step(this.#body);
    setImmediate(() => this.#advance());
  }

  #step(body: ScannedBody): void {
    if (!readParts(body, this.layout)) return;
    this.#prompt = joinPrompt(body, this.layout, this.#pieces);
    this.#body = null;
  }
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

/** Null if the body has no prompt, or more than is read. All its parts have been read. `pieces`: what they are, by list. */
export function joinPrompt(body: ScannedBody, layout: Layout, pieces: Row<Piece>[] = []): Prompt | null {
  const lists = joinLists(body.scan, layout);
  const settings = new Settings(body, layout);
  if (lists === null || settings.isHeld) return null;
  const rowsOf = (section: Section): Row<number> => merge(lists.map(({ sections }) => sections[section]));
  const parts = [rowsOf(TOOLS), rowsOf(SYSTEM), rowsOf(MESSAGES)] as const;
  const [{ length: tools }, { length: system }, { length: messages }] = parts;
  const marks = joinMarks(lists);
  const { mark } = settings;
  if (mark !== undefined) marks.push({ section: MESSAGES, parts: messages, lifetimeMs: mark });
  const isLong = Math.max(tools, system, messages) > MAX_PARTS || marks.length > MAX_MARKS;
  if (system + messages === 0 || isLong) return null;
  pieces.push(...lists.map((list) => list.pieces));
  const previous = readPrevious(body, layout);
  return {
    parts,
    chain: merge(lists.map((list) => list.chain)),
    shapes: merge(lists.map((list) => list.shapes)),
    numbers: merge(lists.map((list) => list.numbers)),
    marks,
    settings: settings.hashes,
    tier: settings.tier,
    lifetimeMs: settings.lifetimeMs,
    continues: previous === null ? null : hashId(previous),
    named: settings.isNamed,
    edited: settings.isEdited || cutsThinking(lists, settings),
  };
}

/** Of earlier turns, when the user has written something new. */
function cutsThinking(lists: readonly Joined[], { keepsThinking }: Settings): boolean {
  return !keepsThinking && lists.at(-1)?.endsWithText === true && lists.some((list) => list.hasThinking);
}

/** Null: a part was not read. */
function joinLists(scan: Scan<PartFacts>, { members }: Layout): Joined[] | null {
  const lists: Joined[] = [];
  for (const [name, role] of members) {
    if (!isPart(role)) continue;
    const list = joinList(scan, name, SECTION_OF[role]);
    if (list !== null) lists.push(list);
    else if (scan.lists.has(name) || scan.get(name) !== undefined) return null;
  }
  return lists;
}

function joinMarks(lists: readonly Joined[]): Mark[] {
  const before = [0, 0, 0];
  return lists.flatMap(({ marks, sections }) => {
    const moved = marks.map((mark) => ({ ...mark, parts: mark.parts + (before[mark.section] ?? 0) }));
    for (const [section, { length }] of sections.entries()) before[section] = (before[section] ?? 0) + length;
    return moved;
  });
}

/** Nearly always, all are in one list. */
function merge<T>(rows: readonly Row<T>[]): Row<T> {
  const filled = rows.filter(({ length }) => length > 0);
  const [first] = filled;
  if (first !== undefined && filled.length === 1) return first;
  const all = new Row<T>();
  for (const row of filled) for (const item of row.slice()) all.add(item);
  return all;
}

function sectionOf({ members }: Pick<Layout, "members">, name: string): Section | null {
  const role = members.get(name);
  return role !== undefined && isPart(role) ? SECTION_OF[role] : null;
}

function isPart(role: Role): role is PartRole {
  return Object.hasOwn(SECTION_OF, role);
}

/** What the heads of lists have been put together to: the list of the next request begins with it. */
const joinedHeads = new WeakMap<Head, Joined>();

/** Null: there is none, or a part was not read. It has more parts than are read, or a longer one. */
function joinList(scan: Scan<PartFacts>, name: string, section: Section): Joined | null {
  const list = scan.lists.get(name);
  if (list === undefined) return null;
  const { parts, head } = list;
  const known = scan.known.get(name);
  const before = known && joinedHeads.get(known);
  const own = before?.fork() ?? new Joined();
  let count = before && known ? known.count : 0;
  for (const { about } of parts.slice(count)) {
    if (about === null) return null;
    own.addPart(about, section, (count += 1));
    if (count === head?.count) joinedHeads.set(head, own.fork());
  }
  return own;
}

/** A result follows its call within this many pieces. */
const MAX_PIECES_BETWEEN = 256;

function isSamePiece(a: Piece, b: Piece): boolean {
  return a.hash === b.hash && a.kind === b.kind && a.name === b.name;
}

/** Parts in a row. */
class Joined {
  sections: readonly [Row<number>, Row<number>, Row<number>] = [new Row(), new Row(), new Row()];
  chain = new Row<number>();
  shapes = new Row<number>();
  numbers = new Row<number>();
  pieces = new Row<NamedPiece>();
  marks: Mark[] = [];
  hasThinking = false;
  /** The last message is new text of the user, and not the result of a tool. */
  endsWithText = false;
  isOpening = true;

  fork(): Joined {
    const [tools, system, messages] = this.sections;
    return Object.assign(new Joined(), this, {
      sections: [tools.fork(), system.fork(), messages.fork()],
      chain: this.chain.fork(),
      shapes: this.shapes.fork(),
      numbers: this.numbers.fork(),
      pieces: this.pieces.fork(),
      marks: this.marks.slice(),
    });
  }

  /** `number`: of the part in its list, counted from 1. */
  addPart({ blocks, opening, isText, isThinking }: PartFacts, listed: Section, number: number): void {
    const section = listed === MESSAGES && this.isOpening ? opening : listed;
    this.isOpening &&= section !== MESSAGES && number < MAX_OPENING;
    // A message of the system, or one with tools, after the conversation has begun.
    const isMoved = listed === MESSAGES && section !== opening;
    for (const block of blocks) {
      this.#addBlock(block, section, number);
      if (isMoved) this.#addPiece({ kind: "user", name: "", hash: block.hash, size: block.size });
      else for (const piece of block.pieces) this.#addPiece(piece);
    }
    this.endsWithText = isText;
    this.hasThinking ||= isThinking;
  }

  #addBlock({ hash, shape, mark }: Block, section: Section, number: number): void {
    const parts = this.sections[section];
    parts.add(hash);
    if (section === SYSTEM) this.shapes.add(shape);
    if (section === MESSAGES) this.#addMessage(hash, number);
    if (mark !== undefined) this.marks.push({ section, parts: parts.length, lifetimeMs: mark });
  }

  #addMessage(hash: number, number: number): void {
    this.numbers.add(number);
    // Of the 53 bits that a hash has as a number, the upper ones.
    const bits = Math.trunc(hash / 2 ** 32) ^ (this.chain.at(this.chain.length - 1) ?? 0);
    this.chain.add(Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d) + 1);
  }

  #addPiece(piece: NamedPiece): void {
    if (piece.of !== undefined && piece.name === "") piece.name = this.#findTool(piece.of);
    this.pieces.add(piece, isSamePiece);
  }

  /** The tool that was called with this id. */
  #findTool(id: string): string {
    const { pieces } = this;
    const least = Math.max(0, pieces.length - MAX_PIECES_BETWEEN);
    for (let at = pieces.length - 1; at >= least; at -= 1)
      for (const [each, tool] of pieces.at(at)?.calls ?? []) if (each === id) return tool;
    return "";
  }
}

/** What a body says of its prompt besides the parts. */
class Settings {
  readonly hashes = new Map<string, number>();
  tier = 0;
  /** The upstream has the conversation, and nothing here shows what is in it. */
  isHeld = false;
  isNamed = false;
  isEdited = false;
  keepsThinking = false;
  lifetimeMs: number | null = null;
  /** The lifetime of a mark for the whole prompt; undefined: there is none. */
  mark: number | null | undefined;

  constructor(body: ScannedBody, { members }: Layout) {
    const bytes = asBuffer(body.bytes);
    for (const [name, role] of members) {
      const span = isPart(role) ? undefined : body.scan.get(name);
      if (span !== undefined && bytes[span.start] !== NULL_START)
        this.#read(role, name, bytes.subarray(span.start, span.end));
    }
  }

  #read(role: Role, name: string, value: Buffer): void {
    if (role === "held") this.isHeld = true;
    else if (role === "tier") this.tier += hashBytes(value);
    else if (role === "edits") this.#readEdits(value.toString("latin1"));
    else if (role === "mark") this.mark = readLifetime(value);
    else if (role === "lifetime") this.lifetimeMs = readLifetime(value) ?? this.lifetimeMs;
    else if (role === "named" || role === "setting") this.hashes.set(name, hashBytes(value));
    if (role === "named") this.isNamed = true;
  }

  /** Claude Code always sends a rule for old thinking, which keeps all of it. */
  #readEdits(text: string): void {
    this.keepsThinking = /"keep"\s*:\s*"all"/.test(text);
    this.isEdited =
      /clear_tool|compact/.test(text) || (text.includes("clear_thinking") && !this.keepsThinking);
  }
}

const NULL_START = 0x6e;

/** Of a response. */
export function hashId(id: string): number {
  return hashBytes(Buffer.from(id));
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
