// A prompt as a cache sees it: a hash of each part.
// Parts of earlier requests are not read again.

import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { readString } from "../../lib/json/scanner.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { hashBytes, type ListPart, MAX_PART_BYTES, type Parts, type Scan } from "../../lib/scan.ts";
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
  /** The first `count` are this prompt's: later prompts add to the list. */
  readonly parts: readonly number[];
  readonly count: number;
  /** How many parts are tools, and how many come before the messages. */
  readonly tools: number;
  readonly messages: number;
  /** For each part of the system prompt, a hash that ignores digits. */
  readonly shapes: readonly number[];
  /** For each block, the number of its message. Later prompts add to the list. */
  readonly numbers: readonly number[];
  /** The hash of Claude Code's line about itself.
   *  This line changes, so `parts` has a constant for it. */
  readonly attribution: number;
  /** Settings on which a cache depends: a hash by name. */
  readonly settings: ReadonlyMap<string, number>;
  /** All other members that may be cached, by name. */
  readonly others: Map<string, number>;
  /** The requested service tier, as a hash. */
  readonly tier: number;
  readonly marks: readonly CacheMark[];
  /** Null: the upstream's default. */
  readonly lifetimeMs: number | null;
  /** A hash of the id of the response that is continued.
   *  Null: the prompt is complete. */
  readonly continues: number | null;
  /** The upstream keeps part of the prompt under a name. */
  readonly named: boolean;
  /** The upstream removes old thinking, or more. */
  readonly edited: boolean;
}

/** Agents send a few thousand. Larger prompts are not read. */
const MAX_PARTS = 10_240;
const MAX_MARKS = 256;
/** How many of the first messages can belong to the system prompt. */
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

/** A sent prompt is read in steps,
 *  between other work. */
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
    const read = readPrompt(body, this.layout);
    if (read === undefined) return;
    this.#read = read;
    this.#body = null;
  }
}

/** Null: there is no prompt, or it is too long. Undefined:
 *  some parts must still be read. */
export function readPrompt(body: ScannedBody, layout: Layout): ReadPrompt | null | undefined {
  const { bytes, scan } = body;
  const rows: PartRow[] = [];
  let left = STEP_BYTES;
  for (const [name, role] of layout.members) {
    if (!isSection(role)) continue;
    const list = scan.lists.get(name);
    if (list === undefined && scan.get(name) !== undefined) return null;
    if (list === undefined) continue;
    const row = openRow(list, role);
    rows.push(row);
    for (const part of list.parts.slice(row.listed.length)) {
      if (part.length > MAX_PART_BYTES) return null;
      if (left < 0) return undefined;
      if (part.about === null) {
        const start = list.starts[row.listed.length] ?? 0;
        part.about = readPart(asBuffer(bytes).subarray(start, start + part.length), role, layout);
        left -= part.length;
      }
      row.add(part, part.about);
    }
  }
  return buildPrompt(rows, readSettings(body, layout));
}

/** Continues the row of an earlier request,
 *  as far as both begin with the same parts. */
function openRow(list: Parts<PartFacts>, section: Section): PartRow {
  const row = list.kept instanceof PartRow ? list.kept.keep(list.parts) : new PartRow(section);
  list.kept = row;
  return row;
}

function readSettings(body: ScannedBody, layout: Layout): Settings {
  const { bytes, scan } = body;
  const settings = new Settings();
  for (const [name, role] of layout.members) {
    const span = isSection(role) ? undefined : scan.get(name);
    if (span !== undefined) settings.add(role, name, asBuffer(bytes).toString("utf8", span.start, span.end));
  }
  for (const [name, { start, end }] of scan.members) {
    const isOther = !UNCACHED.has(name) && !scan.lists.has(name) && PLAIN_NAME.test(name);
    // The name is copied, because a part of a text keeps the whole text in memory.
    if (isOther && end - start < MAX_PART_BYTES)
      settings.others.set(Buffer.from(name).toString(), hashBytes(bytes.subarray(start, end)));
  }
  const previous = readPrevious(body, layout);
  if (previous !== null) settings.continues = hashText(previous);
  return settings;
}

function buildPrompt(rows: readonly PartRow[], settings: Settings): ReadPrompt | null {
  const last = rows.at(-1);
  if (last === undefined) return null;
  const tools = join(rows, (row) => row.sections.tools);
  const opening = tools.concat(join(rows, (row) => row.sections.system));
  last.beginWith(opening);
  const count = opening.length + last.count;
  const marks: CacheMark[] = [];
  const places = { tools: 0, system: tools.length, messages: opening.length };
  for (const row of rows) {
    for (const { section, at, lifetimeMs, hash } of row.marks)
      marks.push({ at: at + places[section], lifetimeMs, hash });
    places.tools += row.sections.tools.length;
    places.system += row.sections.system.length;
  }
  const { mark, isHeld, isEdited, keepsThinking, ...others } = settings;
  if (mark !== undefined) marks.push({ at: count, ...mark });
  const isLong = count > MAX_PARTS || marks.length > MAX_MARKS;
  if (isHeld || isLong || count === tools.length) return null;
  const prompt = {
    ...others,
    parts: last.parts,
    count,
    tools: tools.length,
    messages: opening.length,
    shapes: join(rows, (row) => row.shapes),
    numbers: last.numbers,
    attribution: rows.reduce((hash, row) => hash + row.attribution, 0),
    marks,
    edited: isEdited || (!keepsThinking && last.dropsThinking),
  };
  return { prompt, pieces: join(rows, (row) => row.pieces) };
}

/** Much faster than `flatMap`. */
function join<T>(rows: readonly PartRow[], read: (row: PartRow) => readonly T[]): T[] {
  const none: T[] = [];
  return none.concat(...rows.map(read));
}

function isSection(role: Role): role is Section {
  return role === "tools" || role === "system" || role === "messages";
}

/** How many pieces before a result are searched for its call. */
const MAX_PIECES_BETWEEN = 256;

/** Facts about the parts of a list. The row grows with the conversation. */
class PartRow {
  readonly listed: ListPart<PartFacts>[] = [];
  readonly sections: Readonly<Record<"tools" | "system", number[]>> = { tools: [], system: [] };
  readonly shapes: number[] = [];
  readonly pieces: NamedPiece[] = [];
  marks: (CacheMark & { readonly section: Section; readonly part: number })[] = [];
  attribution = 0;
  /** Begins with the hashes of the last prompt's parts.
   *  Hashes of a longer, earlier prompt may follow. */
  parts: number[] = [];
  numbers: number[] = [];
  count = 0;
  /** How many `parts` precede the messages. */
  #opening = 0;
  /** How many of `listed` precede the first message. */
  #leading = 0;
  readonly #section: Section;

  constructor(section: Section) {
    this.#section = section;
  }

  /** After new text of the user, earlier thinking is removed. */
  get dropsThinking(): boolean {
    const { listed } = this;
    return listed.at(-1)?.about?.isText === true && listed.some(({ about }) => about?.isThinking);
  }

  /** Keeps the parts with which both lists begin.
   *  Without an equal message, a new row begins. */
  keep(parts: readonly ListPart<PartFacts>[]): PartRow {
    const { listed } = this;
    let same = 0;
    while (same < listed.length && listed[same] === parts[same]) same += 1;
    if (same === listed.length) return this;
    if (same <= this.#leading) return new PartRow(this.#section);
    for (const { about } of listed.splice(same))
      for (const { pieces } of about?.blocks ?? []) {
        this.pieces.length -= pieces.length;
        this.count -= 1;
      }
    this.marks = this.marks.filter(({ part }) => part <= same);
    // A short prompt must not keep a long one in memory.
    if (this.count < this.numbers.length / 2) this.#copy();
    return this;
  }

  beginWith(opening: number[]): void {
    const isSame = opening.length === this.#opening && opening.every((hash, at) => hash === this.parts[at]);
    if (!isSame) this.#copy(opening);
  }

  /** The lists are copied,
   *  because earlier prompts still use the old ones. */
  #copy(opening = this.parts.slice(0, this.#opening)): void {
    this.parts = opening.concat(this.parts.slice(this.#opening, this.#opening + this.count));
    this.numbers = this.numbers.slice(0, this.count);
    this.#opening = opening.length;
  }

  add(part: ListPart<PartFacts>, { blocks, opening }: PartFacts): void {
    const isLeading = this.#leading === this.listed.length && this.#leading < MAX_OPENING;
    const section = this.#section === "messages" && isLeading ? opening : this.#section;
    const number = this.listed.push(part);
    if (section !== "messages") this.#leading = number;
    for (const block of blocks) {
      if (section === "messages") this.#addMessage(block.hash, number);
      else this.#addOpening(block, section);
      const at = section === "messages" ? this.count : this.sections[section].length;
      if (block.mark !== undefined) this.marks.push({ section, part: number, at, ...block.mark });
      for (const piece of block.pieces) this.#addPiece(piece);
    }
  }

  #addMessage(hash: number, number: number): void {
    const at = this.#opening + this.count;
    const isLonger = this.count < this.numbers.length;
    if (isLonger && (this.parts[at] !== hash || this.numbers[this.count] !== number)) this.#copy();
    this.parts[at] = hash;
    this.numbers[this.count] = number;
    this.count += 1;
  }

  #addOpening({ hash, shape }: PromptBlock, section: "tools" | "system"): void {
    const isLine = section === "system" && shape === ATTRIBUTION_SHAPE;
    if (isLine) this.attribution += hash;
    this.sections[section].push(isLine ? shape : hash);
    if (section === "system") this.shapes.push(shape);
  }

  #addPiece(piece: NamedPiece): void {
    if (piece.of !== undefined && piece.name === "") piece.name = this.#findCalled(piece.of) ?? "";
    this.pieces.push(piece);
  }

  #findCalled(called: string): string | undefined {
    const { pieces } = this;
    const least = Math.max(0, pieces.length - MAX_PIECES_BETWEEN);
    for (let at = pieces.length - 1; at >= least; at -= 1) {
      const call = pieces[at]?.calls?.find(({ id }) => id === called);
      if (call !== undefined) return call.name;
    }
    return undefined;
  }
}

const PLAIN_NAME = /^[a-z][\w.-]{0,39}$/i;

/** The members of a body that are no part of its prompt,
 *  but may decide what is cached. */
class Settings {
  readonly settings = new Map<string, number>();
  readonly others = new Map<string, number>();
  tier = 0;
  isHeld = false;
  named = false;
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
    else if (role === "named" || role === "setting") this.settings.set(name, hashText(json));
    else if (role === "edits") this.#addEdits(json);
    if (role === "named") this.named = true;
  }

  #addEdits(json: string): void {
    // Claude Code's rule keeps all thinking.
    this.keepsThinking = /"keep"\s*:\s*"all"/.test(json);
    this.isEdited =
      /clear_tool|compact/.test(json) || (json.includes("clear_thinking") && !this.keepsThinking);
  }
}

/** The id of the continued response. Null: none. */
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
