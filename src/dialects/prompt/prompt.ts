// A prompt as a cache sees it: a hash of each part. Known parts are not read.

import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { readString } from "../../lib/json/scanner.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { hashBytes, type Head, type ListPart, MAX_PART_BYTES, type Scan } from "../../lib/scan.ts";
import {
  ATTRIBUTION_SHAPE,
  type BlockMark,
  type PromptBlock,
  hashText,
  type NamedPiece,
  type PartFacts,
  type Piece,
  readLifetime,
  readMark,
  readPart,
} from "./blocks.ts";
import { type Layout, type Role, type Section, UNCACHED } from "./layouts.ts";

export interface CacheMark extends BlockMark {
  /** The number of parts before the mark. */
  readonly at: number;
}

export interface Prompt {
  readonly parts: readonly number[];
  /** The parts before `messages`: tools, then the system prompt's. */
  readonly tools: number;
  readonly messages: number;
  /** Hashes of the system prompt's parts that ignore digits. */
  readonly shapes: readonly number[];
  /** Each message's number in the request, from 1. */
  readonly numbers: readonly number[];
  /** Claude Code's line about itself, which changes.
   *  In `parts`, it is fixed. */
  readonly attribution: number;
  /** Cached settings: a hash by name. */
  readonly settings: ReadonlyMap<string, number>;
  /** All other members that may be cached, by name. */
  readonly others: ReadonlyMap<string, number>;
  /** The requested service tier, as a hash. */
  readonly tier: number;
  readonly marks: readonly CacheMark[];
  /** Null: the upstream's own. */
  readonly lifetimeMs: number | null;
  /** A hash of the upstream's id. Null: the prompt is complete. */
  readonly continues: number | null;
  /** The upstream keeps part of the prompt under a name. */
  readonly named: boolean;
  /** The upstream removes old thinking, or more. */
  readonly edited: boolean;
}

/** Agents send a few thousand. Larger prompts are not read. */
const MAX_PARTS = 10_240;
const MAX_MARKS = 256;
/** First messages that may be part of the system prompt. */
const MAX_OPENING = 64;
/** This much takes less than a millisecond to read. */
const STEP_BYTES = 64 * 1024;
/** A shorter prompt is read on demand, which is rare. */
export const SHORT_BYTES = 16 * 1024;

export interface ScannedBody {
  readonly bytes: Uint8Array;
  readonly scan: Scan<PartFacts>;
}

export interface ReadPrompt {
  readonly prompt: Prompt;
  readonly pieces: readonly Piece[];
}

/** It is read in steps, between other work. */
export class SentPrompt {
  readonly layout: Layout;
  readonly isShort: boolean;
  /** Null: it has been read. */
  #body: ScannedBody | null;
  readonly #bytes: Uint8Array;
  #read: ReadPrompt | null = null;

  constructor(body: ScannedBody, layout: Layout) {
    this.layout = layout;
    this.isShort = body.bytes.length <= SHORT_BYTES;
    this.#body = body;
    this.#bytes = body.bytes;
    // The request leaves first.
    if (!this.isShort) setImmediate(() => this.#advance());
  }

  /** Null: the body has no readable prompt. */
  read(): ReadPrompt | null {
    while (this.#body !== null) this.#step(this.#body);
    return this.#read;
  }

  /** The next body gets the memory without a garbage collection. */
  free(): void {
    const { buffer, length } = this.#bytes;
    this.#body = null;
    if (!this.isShort && buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
  }

  #advance(): void {
    if (this.#body !== null) this.#step(this.#body);
    if (this.#body !== null) setImmediate(() => this.#advance());
  }

  #step(body: ScannedBody): void {
    if (!readParts(body, this.layout)) return;
    this.#read = joinPrompt(body, this.layout);
    this.#body = null;
  }
}

/** False: some parts are left. */
export function readParts({ bytes, scan }: ScannedBody, layout: Layout): boolean {
  let left = STEP_BYTES;
  for (const [name, { starts, parts }] of scan.lists) {
    const role = layout.members.get(name);
    if (role === undefined || !isSection(role)) continue;
    const head = scan.known.get(name);
    for (let at = findRow(head)?.count ?? 0; at < parts.length; at += 1) {
      const part = parts[at];
      if (part === undefined || part.about !== null || part.length > MAX_PART_BYTES) continue;
      if (left < 0) return false;
      left -= part.length;
      const start = starts[at] ?? 0;
      part.about = readPart(asBuffer(bytes).subarray(start, start + part.length), role, layout);
    }
  }
  return true;
}

/** Null: the body has no prompt, or too many parts. */
export function joinPrompt(body: ScannedBody, layout: Layout): ReadPrompt | null {
  const { bytes, scan } = body;
  const rows: PartRow[] = [];
  const settings = new Settings();
  for (const [name, role] of layout.members) {
    const span = scan.get(name);
    if (isSection(role)) {
      if (!joinList(scan, name, role, rows)) return null;
    } else if (span !== undefined)
      settings.add(role, name, asBuffer(bytes).toString("utf8", span.start, span.end));
  }
  const isOther = (name: string): boolean =>
    !UNCACHED.has(name) && !scan.lists.has(name) && PLAIN_NAME.test(name);
  for (const [name, { start, end }] of scan.members)
    if (isOther(name) && end - start < MAX_PART_BYTES)
      // A copy: a part of a text keeps the whole text in memory.
      settings.others.set(Buffer.from(name).toString(), hashBytes(bytes.subarray(start, end)));
  const previous = readPrevious(body, layout);
  if (previous !== null) settings.continues = hashText(previous);
  return settings.isHeld ? null : buildPrompt(rows, settings);
}

function buildPrompt(rows: readonly PartRow[], settings: Settings): ReadPrompt | null {
  const tools = join(rows, (row) => row.sections.tools);
  const system = join(rows, (row) => row.sections.system);
  const opening = tools.length + system.length;
  const messages = join(rows, (row) => row.sections.messages);
  const parts = tools.concat(system, messages);
  const marks = joinMarks(rows, { tools: 0, system: tools.length, messages: opening });
  if (settings.mark !== undefined) marks.push({ at: parts.length, ...settings.mark });
  const endsWithText = rows.at(-1)?.endsWithText === true;
  const hasThinking = rows.some((row) => row.hasThinking);
  const isLong = parts.length > MAX_PARTS || marks.length > MAX_MARKS;
  if (parts.length === tools.length || isLong) return null;
  const prompt = {
    parts,
    tools: tools.length,
    messages: opening,
    shapes: join(rows, (row) => row.shapes),
    numbers: join(rows, (row) => row.numbers),
    attribution: rows.reduce((hash, row) => hash + row.attribution, 0),
    settings: settings.hashes,
    others: settings.others,
    tier: settings.tier,
    marks,
    lifetimeMs: settings.lifetimeMs,
    continues: settings.continues,
    named: settings.isNamed,
    // After new text of the user, earlier thinking is removed.
    edited: settings.isEdited || (!settings.keepsThinking && endsWithText && hasThinking),
  };
  return { prompt, pieces: join(rows, (row) => row.pieces) };
}

/** `places`: the number of each section's next part in the prompt. */
function joinMarks(rows: readonly PartRow[], places: Record<Section, number>): CacheMark[] {
  const all: CacheMark[] = [];
  for (const { marks, sections } of rows) {
    for (const { section, at, lifetimeMs, hash } of marks)
      all.push({ at: at + places[section], lifetimeMs, hash });
    for (const section of SECTIONS) places[section] += sections[section].length;
  }
  return all;
}

/** Makes a copy, because rows grow later. */
function join<T>(rows: readonly PartRow[], read: (row: PartRow) => readonly T[]): readonly T[] {
  let all: readonly T[] = [];
  for (const row of rows) if (read(row).length > 0) all = all.concat(read(row));
  return all;
}

const SECTIONS: readonly Section[] = ["tools", "system", "messages"];

function isSection(role: Role): role is Section {
  return role === "tools" || role === "system" || role === "messages";
}

/** A row grows with its conversation. */
const headRows = new WeakMap<Head, PartRow>();

/** False: too many or too long parts. */
function joinList(scan: Scan<PartFacts>, name: string, section: Section, rows: PartRow[]): boolean {
  const list = scan.lists.get(name);
  if (list === undefined) return scan.get(name) === undefined;
  const { parts, head } = list;
  const row = findRow(scan.known.get(name)) ?? new PartRow();
  rows.push(row);
  if (!addParts(row, parts, head?.count ?? 0, section)) return false;
  if (head !== null) headRows.set(head, row);
  if (row.count === parts.length) return true;
  const rest = new PartRow(row);
  rows.push(rest);
  return addParts(rest, parts, parts.length, section);
}

/** Undefined also if another request has continued from this head. */
function findRow(known: Head | undefined): PartRow | undefined {
  const row = known && headRows.get(known);
  return row?.count === known?.count ? row : undefined;
}

function addParts(
  row: PartRow,
  parts: readonly ListPart<PartFacts>[],
  count: number,
  section: Section,
): boolean {
  for (let at = row.count; at < count; at += 1) {
    const about = parts[at]?.about ?? null;
    if (about === null) return false;
    row.addPart(about, section);
  }
  return true;
}

/** Pieces between a call and its result that are searched. */
const MAX_PIECES_BETWEEN = 256;

class PartRow {
  readonly sections: Readonly<Record<Section, number[]>> = { tools: [], system: [], messages: [] };
  readonly shapes: number[] = [];
  readonly numbers: number[] = [];
  readonly pieces: NamedPiece[] = [];
  readonly marks: (CacheMark & { readonly section: Section })[] = [];
  attribution = 0;
  hasThinking = false;
  /** Includes the parts before this row. */
  count: number;
  /** The last message is the user's new text, not a tool's result. */
  endsWithText: boolean;
  #isOpening: boolean;
  readonly #before: PartRow | null;

  constructor(before: PartRow | null = null) {
    this.#before = before;
    this.count = before?.count ?? 0;
    this.endsWithText = before?.endsWithText ?? false;
    this.#isOpening = before === null || before.#isOpening;
  }

  addPart({ blocks, opening, isText, isThinking }: PartFacts, listed: Section): void {
    this.count += 1;
    const section = listed === "messages" && this.#isOpening ? opening : listed;
    this.#isOpening &&= section !== "messages" && this.count < MAX_OPENING;
    for (const block of blocks) {
      this.#addBlock(block, section);
      if (section === "messages") this.numbers.push(this.count);
      for (const piece of block.pieces) this.#addPiece(piece);
    }
    this.endsWithText = isText;
    this.hasThinking ||= isThinking;
  }

  #addBlock({ hash, shape, mark }: PromptBlock, section: Section): void {
    const parts = this.sections[section];
    const isLine = section === "system" && shape === ATTRIBUTION_SHAPE;
    if (isLine) this.attribution += hash;
    parts.push(isLine ? shape : hash);
    if (section === "system") this.shapes.push(shape);
    if (mark !== undefined)
      this.marks.push({ section, at: parts.length, lifetimeMs: mark.lifetimeMs, hash: mark.hash });
  }

  #addPiece(piece: NamedPiece): void {
    if (piece.of !== undefined && piece.name === "") piece.name = this.#findCalled(piece.of) ?? "";
    this.pieces.push(piece);
  }

  #findCalled(called: string, most = MAX_PIECES_BETWEEN): string | undefined {
    const { pieces } = this;
    const least = Math.max(0, pieces.length - most);
    for (let at = pieces.length - 1; at >= least; at -= 1) {
      const call = pieces[at]?.calls?.find(({ id }) => id === called);
      if (call !== undefined) return call.name;
    }
    return this.#before === null ? undefined : this.#before.#findCalled(called, most - pieces.length);
  }
}

const PLAIN_NAME = /^[a-z][\w.-]{0,39}$/i;

/** What a body says of its prompt outside of the parts. */
class Settings {
  readonly hashes = new Map<string, number>();
  readonly others = new Map<string, number>();
  tier = 0;
  isHeld = false;
  isNamed = false;
  isEdited = false;
  keepsThinking = false;
  lifetimeMs: number | null = null;
  continues: number | null = null;
  mark: BlockMark | undefined;

  add(role: Role, name: string, json: string): void {
    if (json === "null") return;
    if (role === "held" || role === "thread") this.isHeld = true;
    else if (role === "tier") this.tier += hashText(json);
    else if (role === "mark") this.mark = readMark(json);
    else if (role === "lifetime") this.lifetimeMs = readLifetime(json) ?? this.lifetimeMs;
    else if (role === "named" || role === "setting") this.hashes.set(name, hashText(json));
    else if (role === "edits") this.#addEdits(json);
    if (role === "named") this.isNamed = true;
  }

  #addEdits(json: string): void {
    // Claude Code's rule keeps all thinking.
    this.keepsThinking = /"keep"\s*:\s*"all"/.test(json);
    this.isEdited =
      /clear_tool|compact/.test(json) || (json.includes("clear_thinking") && !this.keepsThinking);
  }
}

/** The continued response. Null: none. */
export function readPrevious({ bytes, scan }: ScannedBody, { members }: Layout): string | null {
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

export function listWanted({ members }: Layout): { names: string[]; lists: Set<string> } {
  const lists = [...members].flatMap(([name, role]) => (isSection(role) ? name : []));
  return { names: [...members.keys()], lists: new Set(lists) };
}
