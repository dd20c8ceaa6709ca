// How often the conversation of a request ends with the same tool call and the same result: an agent in a loop. Read from
// the request's bytes in one pass. A client's retry has the same conversation, so that it does not count. Where the upstream
// keeps the conversation, the calls and the count until then come from the response that the request continues.

import { type CallChain, hashId, type LastPairs } from "../../billing/limits/call-chains.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { readString, scanTopLevel, type Span } from "../../lib/json/json-spans.ts";
import { findStart, skipValue, walkElements, walkMembers } from "../../lib/json/json-walk.ts";
import { ItemReader } from "./item.ts";
import type { Layout } from "./layouts.ts";

/** Names and ids are shorter. */
const MAX_TEXT_BYTES = 512;
const MAX_NAME_BYTES = 40;
const OPEN_BRACE = 0x7b;

/** The members of a message that have its parts. */
const LISTS: ReadonlySet<string> = new Set(["content", "parts", "tool_calls"]);

/** What a tool was called with, and what it returned, in the words of each dialect. */
export const CALL_INPUTS = ["input", "arguments", "args", "action"] as const;
const OUTPUTS = ["content", "output", "response"] as const;

/** What tools add to a result that differs each time: how long a command took, and the number of its process. Codex:
 *  `"chunk_id":"3c9d10"` and `Wall time 0.4 seconds`, Copilot: `<shellId: 310 completed`, Gemini CLI: `PGID: 26330`. */
const NOISE =
  /(?:chunk[_ ]id|wall[_ ]time(?:_seconds)?|duration_seconds)\W{1,6}[\w.-]+|(?:shellId|PGID): \d+/gi;
/** A longer result is compared as it is. */
const MAX_CLEANED_BYTES = 64 * 1024;

/** How many equal pairs of call and result end the conversation. 0: it does not end with a result. `before`: the
 *  conversation that the request continues, as far as it is known. */
export function countSameCalls(
  body: Uint8Array,
  { members, mark }: Layout,
  before: CallChain | null = null,
): LastPairs {
  return new CallReader(body, mark, before).read(members);
}

/** The id of the response that the request continues. */
export function findPrevious(body: Uint8Array, { members }: Layout): string | null {
  for (const [name, role] of members) {
    if (role !== "continues" || !asBuffer(body).includes(`"${name}"`)) continue;
    const scan = scanTopLevel(body, [name]);
    const span = scan.kind === "object" ? scan.spans.get(name) : undefined;
    return span === undefined ? null : readString(body, span);
  }
  return null;
}

/** The same for a call in a request and for the same call in a response. */
export function hashCall(name: string, input: unknown): string {
  return `${name} ${addHash("", Bun.hash.wyhash(JSON.stringify(input)))}`;
}

function addHash(hashes: string, hash: bigint): string {
  return String(Bun.hash.wyhash(`${hashes} ${hash}`));
}

const NO_PAIRS: LastPairs = { hash: "", count: 0 };

type Members = ReadonlyMap<string, Span>;

interface Call {
  readonly name: string;
  readonly input: Span | undefined;
}

/** The hash of a call in an earlier response. */
type EarlierCall = string;

interface Pair {
  readonly call: Call | EarlierCall;
  readonly output: Span | undefined;
  readonly isError: string;
}

class CallReader {
  readonly #bytes: Uint8Array;
  readonly #item: ItemReader;
  /** The calls without a result, by id, or by name where calls have no id. */
  readonly #open = new Map<string, Call[]>();
  /** Since the user's last text. */
  #pairs: Pair[] = [];
  readonly #before: CallChain | null;
  /** Nothing in the request ended the pairs of the conversation that it continues. */
  #continues = true;
  /** The message that is being read has a result. */
  #hasResult = false;

  constructor(bytes: Uint8Array, mark: string, before: CallChain | null) {
    this.#bytes = bytes;
    this.#before = before;
    this.#item = new ItemReader(bytes, mark);
  }

  read(roles: Layout["members"]): LastPairs {
    const end = walkMembers(this.#bytes, findStart(this.#bytes), (keyStart, keyEnd, value) => {
      if (roles.get(this.#readKey(keyStart, keyEnd)) !== "messages") return skipValue(this.#bytes, value);
      // Of two lists, most parsers take the last.
      this.#pairs = [];
      this.#continues = true;
      return walkElements(this.#bytes, value, (message) => this.#readMessage(message));
    });
    return end < 0 ? NO_PAIRS : this.#countEqual();
  }

  #countEqual(): LastPairs {
    const last = this.#pairs.at(-1);
    const before = this.#continues && this.#before !== null ? this.#before.pairs : NO_PAIRS;
    if (last === undefined) return before;
    const hash = this.#hashPair(last);
    const different = this.#pairs.findLastIndex((pair) => pair !== last && this.#hashPair(pair) !== hash);
    const count = this.#pairs.length - 1 - different;
    const isSame = different < 0 && hash === before.hash;
    return { hash, count: isSame ? before.count + count : count };
  }

  #readMessage(start: number): number {
    if (this.#bytes[start] !== OPEN_BRACE) {
      this.#break();
      return skipValue(this.#bytes, start);
    }
    const parts: Members[] = [];
    const { members, end } = this.#readMembers(start, parts);
    if (end < 0) return -1;
    const role = this.#text(members, "role");
    this.#hasResult = false;
    if (role === "tool") this.#noteResult(members, this.#text(members, "tool_call_id"));
    else if (role === "") this.#readItem(members);
    if (role !== "tool") for (const part of parts) this.#readPart(part);
    const isUser = role === "user" || (role === "" && members.has("parts"));
    // The text beside a result is the tool's own reminder. Text alone is the user's.
    if (isUser && !this.#hasResult) this.#break();
    return end;
  }

  #readPart(part: Members): void {
    const id = this.#text(part, "id");
    const type = this.#text(part, "type");
    if (type === "tool_use") this.#noteCall(part, id);
    else if (type === "tool_result") this.#noteResult(part, this.#text(part, "tool_use_id"));
    else this.#readNested(part, id);
  }

  /** Two dialects have the call in an object of its own. */
  #readNested(part: Members, id: string): void {
    const nested = (...names: string[]): Members | null => {
      const span = names.map((name) => part.get(name)).find((each) => each !== undefined);
      return span === undefined ? null : this.#readMembers(span.start).members;
    };
    const call = nested("function", "custom", "functionCall", "function_call");
    if (call !== null) this.#noteCall(call, id === "" ? this.#idOf(call) : id);
    const result = nested("functionResponse", "function_response");
    if (result !== null) this.#noteResult(result, this.#idOf(result));
  }

  #idOf(members: Members): string {
    const id = this.#text(members, "id");
    return id === "" ? this.#text(members, "name") : id;
  }

  /** An item of the responses dialect. */
  #readItem(item: Members): void {
    const type = this.#text(item, "type");
    const id = this.#text(item, "call_id");
    if (id === "") return;
    if (type.endsWith("_call")) this.#noteCall(item, id);
    else if (type.endsWith("_call_output")) this.#noteResult(item, id);
  }

  #noteCall(call: Members, id: string): void {
    const known = this.#open.get(id) ?? [];
    known.push({ name: this.#text(call, "name"), input: findAny(call, CALL_INPUTS) });
    this.#open.set(id, known);
  }

  #noteResult(result: Members, id: string): void {
    this.#hasResult = true;
    const call = this.#open.get(id)?.shift() ?? this.#before?.calls.get(hashId(id));
    // The call is not in this request: nothing shows what it was.
    if (call === undefined) return this.#break();
    const isError = this.#text(result, "is_error");
    this.#pairs.push({ call, output: findAny(result, OUTPUTS), isError });
  }

  #break(): void {
    this.#pairs = [];
    this.#continues = false;
  }

  #hashPair({ call, output, isError }: Pair): string {
    const earlier = typeof call === "string";
    const called = earlier ? call : `${call.name} ${this.#hashParts(call.input, Bun.hash.wyhash)}`;
    return String(Bun.hash.wyhash(`${called} ${this.#hashParts(output, hashCleaned)} ${isError}`));
  }

  /** A value's parts, without marks for the cache. */
  #hashParts(value: Span | undefined, hash: (bytes: Uint8Array) => bigint): string {
    if (value === undefined) return "";
    let hashes = "";
    walkElements(this.#bytes, value.start, (element) => {
      const end = skipValue(this.#bytes, element);
      if (end >= 0) hashes = addHash(hashes, hash(this.#item.cut(element, end)));
      return end;
    });
    return hashes;
  }

  /** `parts` gets the members of each part of a message: of blocks, parts, or the calls of the chat dialect. */
  #readMembers(
    start: number,
    parts: Members[] | null = null,
  ): { readonly members: Members; readonly end: number } {
    const members = new Map<string, Span>();
    const end = walkMembers(this.#bytes, start, (keyStart, keyEnd, value) => {
      const name = this.#readKey(keyStart, keyEnd);
      const valueEnd =
        parts !== null && LISTS.has(name) ? this.#readList(value, parts) : skipValue(this.#bytes, value);
      if (valueEnd >= 0) members.set(name, { start: value, end: valueEnd });
      return valueEnd;
    });
    return { members, end };
  }

  #readList(start: number, parts: Members[]): number {
    return walkElements(this.#bytes, start, (part) => {
      if (this.#bytes[part] !== OPEN_BRACE) return skipValue(this.#bytes, part);
      const { members, end } = this.#readMembers(part);
      parts.push(members);
      return end;
    });
  }

  #readKey(keyStart: number, keyEnd: number): string {
    if (keyEnd - keyStart > MAX_NAME_BYTES) return "";
    return asBuffer(this.#bytes).toString("latin1", keyStart + 1, keyEnd - 1);
  }

  /** A string without its quotes, or a literal as it is. Empty: there is none. */
  #text(members: Members, name: string): string {
    const span = members.get(name);
    if (span === undefined || span.end - span.start > MAX_TEXT_BYTES) return "";
    const text = asBuffer(this.#bytes).toString("latin1", span.start, span.end);
    return text.startsWith('"') ? text.slice(1, -1) : text;
  }
}

function findAny(members: Members, names: readonly string[]): Span | undefined {
  return names.map((name) => members.get(name)).find((each) => each !== undefined);
}

/** The same for results that differ only in their noise. */
function hashCleaned(bytes: Uint8Array): bigint {
  if (bytes.length > MAX_CLEANED_BYTES) return Bun.hash.wyhash(bytes);
  return Bun.hash.wyhash(asBuffer(bytes).toString("latin1").replace(NOISE, ""));
}
