// What a part of a prompt is, read from its bytes: its hash without the marks for the cache, which move from turn to turn,
// its kind, and the tool that it is about. No text is kept.

import {
  listElements,
  OPEN_BRACE,
  OPEN_BRACKET,
  readString,
  Scanner,
  type Span,
} from "../../lib/json/scanner.ts";
import { hashBytes } from "../../lib/scan.ts";
import { joinName, type Piece } from "./pieces.ts";
import { MESSAGES, type Section, SYSTEM, TOOLS } from "./prompt.ts";

/** How a dialect writes its parts. */
export interface PartForm {
  /** Messages are cached block by block. */
  readonly byBlock: boolean;
  /** The member of a part by which clients mark how far to cache. */
  readonly mark: string;
}

/** A block of a message, or another part as a whole. */
export interface Block {
  /** The same for a text and for a block that holds only this text. */
  readonly hash: number;
  /** In bytes, without marks. */
  readonly size: number;
  /** What stays the same if only its digits change: a date, a time, a counter. */
  readonly shape: number;
  /** The lifetime that its mark wants; null: the upstream's own. Undefined: it has no mark. */
  readonly mark: number | null | undefined;
  /** What it is for people: one piece, or the tools that are in it. */
  readonly pieces: readonly NamedPiece[];
}

export interface NamedPiece extends Piece {
  /** That of a result is found when its prompt is put together. */
  name: string;
  /** Of a call: its tools by the ids by which results name the call. */
  readonly calls?: readonly (readonly [id: string, tool: string])[];
  /** Of a result: the id of its call. */
  readonly of?: string;
}

export interface PartFacts {
  readonly blocks: readonly Block[];
  /** Where a message belongs if only such messages come before it. */
  readonly opening: Section;
  /** It is new text of the user, and not the result of a tool. */
  readonly isText: boolean;
  readonly isThinking: boolean;
}

const SYSTEM_ROLES: ReadonlySet<string> = new Set(["system", "developer"]);
const HOUR_MS = 3_600_000;
const THOUGHTS: ReadonlySet<string> = new Set(["thinking", "redacted_thinking"]);
/** The content dialect groups its functions. */
const FUNCTION_LISTS = ["functionDeclarations", "function_declarations"];

/** `json` stands at the part, and goes to its end. */
export function readPart(json: Scanner, section: Section, form: PartForm): PartFacts {
  if (section === MESSAGES && form.byBlock && json.peek() === OPEN_BRACE) return readMessage(json, form);
  const part = new Value(json, form.mark);
  const opening = section === MESSAGES ? findOpening(part) : section;
  const values = section === TOOLS ? listTools(part, form) : [part];
  const blocks = values.map((value) => readBlock(value, opening));
  return { blocks, opening, isText: false, isThinking: false };
}

/** A system message at the beginning is the system prompt. Codex sends its tools before it, as an item of the input. */
function findOpening(message: Value): Section {
  if (message.text("type") === "additional_tools") return TOOLS;
  return SYSTEM_ROLES.has(message.text("role")) ? SYSTEM : MESSAGES;
}

/** A tool, or a list of functions inside one. */
function listTools(tool: Value, { mark }: PartForm): readonly Value[] {
  if (!FUNCTION_LISTS.some((name) => tool.list(name).length > 0)) return [tool];
  const inner = [...tool.members.values()].flatMap((span) => listElements(tool.bytes, span));
  return inner.map(({ start }) => new Value(new Scanner(tool.bytes, start), mark));
}

/** A message of the messages dialect, which is cached block by block. */
function readMessage(json: Scanner, { mark }: PartForm): PartFacts {
  let role = "";
  let values: Value[] = [];
  for (let more = json.enter(OPEN_BRACE); more; more = json.more(OPEN_BRACE)) {
    const name = json.key();
    const { at: start } = json;
    if (name === "content") values = readContent(json, mark);
    else json.skip();
    if (name === "role") role = readWord(json.bytes, { start, end: json.at });
  }
  const first = values[0]?.text("type") ?? "";
  return {
    blocks: values.map((value) => readBlock(value, MESSAGES, role)),
    opening: MESSAGES,
    // Results and thoughts come first in their messages.
    isText: role === "user" && first !== "tool_result",
    isThinking: role !== "user" && THOUGHTS.has(first),
  };
}

function readContent(json: Scanner, mark: string): Value[] {
  if (json.peek() !== OPEN_BRACKET) return [new Value(json, mark)];
  const values: Value[] = [];
  for (let more = json.enter(OPEN_BRACKET); more; more = json.more(OPEN_BRACKET))
    values.push(new Value(json, mark));
  return values;
}

/** `role`: that of the message which has the block; undefined: the part has its own. */
function readBlock(value: Value, section: Section, role?: string): Block {
  const { hash, size } = value.measure();
  return {
    hash,
    size,
    shape: section === SYSTEM ? value.readShape() : hash,
    mark:
      value.mark === null ? undefined : readLifetime(value.bytes.subarray(value.mark.start, value.mark.end)),
    pieces: section === TOOLS ? listToolPieces(value) : [{ ...describe(value, section, role), hash, size }],
  };
}

/** `"24h"`, or an object with a `ttl`. Null: the upstream's own. */
export function readLifetime(mark: Buffer): number | null {
  const [, hours] = /"(\d{1,2})h"/.exec(mark.toString("latin1")) ?? [];
  return hours === undefined ? null : Number(hours) * HOUR_MS;
}

/** Codex groups its tools: in an item, and by namespaces. */
const MAX_GROUPS = 3;

function listToolPieces(tool: Value, namespace = "", groups = MAX_GROUPS): NamedPiece[] {
  const inner = groups === 0 ? [] : tool.list("tools");
  if (inner.length === 0) {
    const own = joinName(tool.text("name"), namespace || tool.text("namespace"));
    return [
      { kind: "tool", name: own || nameTool(tool.child("function")) || tool.text("type"), ...tool.measure() },
    ];
  }
  return inner.flatMap(({ start }) =>
    listToolPieces(new Value(new Scanner(tool.bytes, start)), tool.text("name"), groups - 1),
  );
}

type Description = Pick<NamedPiece, "kind" | "name" | "calls" | "of">;

/** A block of a message, an item of the responses dialect, or a whole message of the others. */
function describe(part: Value, section: Section, role = part.text("role")): Description {
  if (section === SYSTEM) return { kind: "system", name: "" };
  const type = part.text("type");
  if (type === "reasoning" || THOUGHTS.has(type)) return { kind: "thinking", name: "" };
  if (type.endsWith("tool_use") || type.endsWith("_call")) return describeCall(part, type);
  if (!type.endsWith("tool_result") && !type.endsWith("_output") && role !== "tool")
    return describeMessage(part, role);
  const [of] = ["tool_use_id", "call_id", "tool_call_id"].flatMap((name) => part.text(name) || []);
  return { kind: "result", name: "", ...(of !== undefined && { of }) };
}

function describeCall(call: Value, type: string): Description {
  const name = nameTool(call) || type.replace(/_call$/, "");
  const ids = ["id", "call_id"].flatMap((member) => call.text(member) || []);
  return { kind: "call", name, calls: ids.map((id) => [id, name] as const) };
}

function describeMessage(message: Value, role: string): Description {
  const calls = message.list("tool_calls").map(({ start }) => {
    const call = new Value(new Scanner(message.bytes, start));
    return [call.text("id"), (call.child("function") ?? call.child("custom"))?.text("name") ?? ""] as const;
  });
  if (calls.length > 0) return { kind: "call", name: calls[0]?.[1] ?? "", calls };
  for (const { start } of message.list("parts")) {
    const part = new Value(new Scanner(message.bytes, start));
    const call = part.child("functionCall") ?? part.child("function_call");
    const result = part.child("functionResponse") ?? part.child("function_response");
    if (call !== undefined) return { kind: "call", name: call.text("name") };
    if (result !== undefined) return { kind: "result", name: result.text("name") };
  }
  return { kind: role === "assistant" || role === "model" ? "assistant" : "user", name: "" };
}

function nameTool(tool: Value | undefined): string {
  return tool === undefined ? "" : joinName(tool.text("name"), tool.text("namespace"));
}

/** No part that means something here has more members, and no name, type or id is longer. */
const MAX_MEMBERS = 64;
const MAX_WORD_BYTES = 4096;
const NULL_START = 0x6e;
/** Of a longer system prompt, only the beginning is read for its shape. */
const MAX_SHAPED_BYTES = 64 * 1024;
/** Claude Code's line about itself, which Anthropic's own API leaves out of the prompt. */
const ATTRIBUTION = "x-anthropic-billing-header";
export const ATTRIBUTION_SHAPE = -1;
/** The line is a text or the text of a block, so that it begins near the start of the part. */
const MAX_FRAME_LENGTH = 64;

function readWord(bytes: Buffer, span: Span | undefined): string {
  if (span === undefined || span.end - span.start > MAX_WORD_BYTES) return "";
  return readString(bytes, span) ?? "";
}

/** A value, and where its members are. */
class Value {
  readonly bytes: Buffer;
  readonly members = new Map<string, Span>();
  /** The last of its marks. What a list in it contains may be marked too: a part of a message or of a tool's result. */
  mark: Span | null = null;
  readonly #start: number;
  readonly #end: number;
  /** What belongs to marks. */
  readonly #cuts: Span[] = [];
  /** Members without marks. */
  #count = 0;

  /** `mark`: the name of the member that is one. */
  constructor(json: Scanner, mark = "") {
    this.bytes = json.bytes;
    const isObject = json.peek() === OPEN_BRACE;
    this.#start = json.at;
    if (isObject) this.#read(json, mark, true);
    else json.skip();
    this.#end = json.at;
  }

  /** A string; empty for everything else. */
  text(name: string): string {
    return readWord(this.bytes, this.members.get(name));
  }

  child(name: string): Value | undefined {
    const span = this.members.get(name);
    return span === undefined || this.bytes[span.start] !== OPEN_BRACE
      ? undefined
      : new Value(new Scanner(this.bytes, span.start));
  }

  list(name: string): readonly Span[] {
    const span = this.members.get(name);
    return span === undefined || this.bytes[span.start] !== OPEN_BRACKET
      ? []
      : listElements(this.bytes, span);
  }

  measure(): { readonly hash: number; readonly size: number } {
    const bare = this.#bare();
    return { hash: hashBytes(bare), size: bare.length };
  }

  readShape(): number {
    const text = this.#bare().toString("latin1", 0, MAX_SHAPED_BYTES);
    const place = text.indexOf(ATTRIBUTION);
    if (place >= 0 && place < MAX_FRAME_LENGTH) return ATTRIBUTION_SHAPE;
    return Number(Bun.hash.xxHash3(text.replace(/\d+/g, "0")));
  }

  /** Without marks; of a block that is only a text, the text. */
  #bare(): Buffer {
    const text = this.members.get("text");
    const type = this.members.has("type") ? 1 : 0;
    if (text !== undefined && this.#count === 1 + type && (type === 0 || this.text("type") === "text"))
      return this.bytes.subarray(text.start, text.end);
    if (this.#cuts.length === 0) return this.bytes.subarray(this.#start, this.#end);
    const kept: Buffer[] = [];
    let from = this.#start;
    for (const { start, end } of this.#cuts) {
      if (start > from) kept.push(this.bytes.subarray(from, start));
      from = Math.max(from, end);
    }
    return Buffer.concat([...kept, this.bytes.subarray(from, this.#end)]);
  }

  #read(json: Scanner, mark: string, isOuter: boolean): void {
    let kept = json.at + 1;
    let marked: Span | null = null;
    for (let more = json.enter(OPEN_BRACE); more; more = json.more(OPEN_BRACE)) {
      const name = json.key();
      const { keyStart } = json;
      if (marked !== null) this.#cuts.push({ start: marked.start, end: keyStart });
      marked = null;
      const { at: start } = json;
      json.skip();
      const span = { start, end: json.at };
      if (mark !== "" && name === mark) {
        marked = { start: keyStart, end: span.end };
        if (this.bytes[start] !== NULL_START) this.mark = span;
        continue;
      }
      kept = span.end;
      if (!isOuter) continue;
      this.#count += 1;
      if (this.members.size < MAX_MEMBERS) this.members.set(name, span);
      if (mark !== "" && this.bytes[start] === OPEN_BRACKET) this.#readList(span, mark);
    }
    if (marked !== null) this.#cuts.push({ start: kept, end: marked.end });
  }

  #readList({ start, end }: Span, mark: string): void {
    if (!this.bytes.subarray(start, end).includes(`"${mark}"`)) return;
    const json = new Scanner(this.bytes, start);
    for (let more = json.enter(OPEN_BRACKET); more; more = json.more(OPEN_BRACKET))
      if (json.peek() === OPEN_BRACE) this.#read(json, mark, false);
      else json.skip();
  }
}
