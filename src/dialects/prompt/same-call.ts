// How often the conversation of a request ends with the same tool call and the same result: an agent in a loop. Its last
// messages are parsed for it, so that it runs only for keys with this limit. A client's retry has the same conversation, so
// that it does not count. Where the upstream keeps the conversation, the calls and the count until then come from the
// response that the request continues.

import { type CallChain, hashId, type LastPairs } from "../../billing/limits/call-chains.ts";
import { getField, getText, isObject, parseJson, textOf } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Parts } from "../../lib/scan.ts";
import type { Layout } from "./layouts.ts";
import { readPrevious, type ScannedBody } from "./read-prompt.ts";

/** What a tool was called with, and what it returned, in the words of each dialect. */
export const CALL_INPUTS = ["input", "arguments", "args", "action"] as const;
const OUTPUTS = ["content", "output", "response"] as const;
/** Where parts of a message have a call or a result in an object of its own. */
const CALLS = ["function", "custom", "functionCall", "function_call"] as const;
const RESULTS = ["functionResponse", "function_response"] as const;
/** The members of a message that have its parts. */
const LISTS = ["content", "parts", "tool_calls"] as const;

/** What tools add to a result that differs each time: how long a command took, and the number of its process. Codex:
 *  `"chunk_id":"3c9d10"` and `Wall time 0.4 seconds`, Copilot: `<shellId: 310 completed`, Gemini CLI: `PGID: 26330`. */
const NOISE =
  /(?:chunk[_ ]id|wall[_ ]time(?:_seconds)?|duration_seconds)\W{1,6}[\w.-]+|(?:shellId|PGID): \d+/gi;
/** A longer result is compared as it is. */
const MAX_CLEANED_LENGTH = 64 * 1024;

/** What tools write next to results in the user's name. Claude Code and opencode: `<system-reminder>`, and Claude Code
 *  `<task-notification>`; Cline: `<environment_details>`. All other text is the user's. */
const ADDED_BY_TOOLS = /<(system-reminder|task-notification|environment_details)>/g;
/** Claude Code puts what the user writes during a turn into a reminder. */
const WRITTEN_BY_USER = /^\s*The user sent a new message while you were working:/;

const NO_PARTS: Parts<unknown> = { starts: [], parts: [], head: null };
const NO_PAIRS: LastPairs = { hash: "", count: 0 };

/** So many messages are read first; if the same pair fills them, four times as many. */
const FIRST_MESSAGES = 8;

/** How many equal pairs of call and result end the conversation. 0: it does not end with a result. `findChain` finds the
 *  conversation that the request continues by the id of its response, if it is known. */
export function countSameCalls(
  body: ScannedBody,
  layout: Layout,
  findChain: (responseId: string) => CallChain | null = () => null,
): LastPairs {
  const previous = readPrevious(body, layout);
  const before = previous === null ? null : findChain(previous);
  const names = [...layout.members.keys()].filter((name) => layout.members.get(name) === "messages");
  const list = names.flatMap((name) => body.scan.lists.get(name) ?? [])[0] ?? NO_PARTS;
  const { length } = list.starts;
  for (let count = FIRST_MESSAGES; ; count *= 4) {
    const reader = new CallReader(layout.mark, before);
    for (const message of readMessages(body, list, length - count)) reader.readMessage(message);
    if (count >= length || reader.isComplete) return reader.countEqual();
  }
}

function readMessages({ bytes }: ScannedBody, { starts, parts }: Parts<unknown>, first: number): unknown[] {
  const text = asBuffer(bytes);
  const from = Math.max(0, first);
  return starts
    .slice(from)
    .map((start, at) => parseJson(text.toString("utf8", start, start + (parts[from + at]?.length ?? 0))));
}

/** The same for a call in a request and for the same call in a response. */
export function hashCall(name: string, input: unknown): string {
  return `${name} ${Bun.hash.wyhash(writeJson(input))}`;
}

/** No tool nests its input or its result as deeply. What is deeper is not compared. */
const MAX_DEPTH = 64;

/** JSON without one member. `JSON.stringify` takes time that grows with the square of the depth. */
function writeJson(value: unknown, without?: string, depth = 0): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  if (depth === MAX_DEPTH) return "";
  const write = (inner: unknown): string => writeJson(inner, without, depth + 1);
  if (Array.isArray(value)) return `[${value.map(write).join()}]`;
  const members = Object.entries(value).filter(([name]) => name !== without);
  return `{${members.map(([name, inner]) => `${JSON.stringify(name)}:${write(inner)}`).join()}}`;
}

interface Pair {
  /** The call, or the hash of a call in an earlier response. */
  readonly call: object | string;
  readonly result: object;
}

class CallReader {
  readonly #mark: string;
  readonly #before: CallChain | null;
  /** The calls without a result, by id, or by name where calls have no id. */
  readonly #open = new Map<unknown, object[]>();
  /** Since the user's last text. */
  #pairs: Pair[] = [];
  /** Nothing in the request ended the pairs of the conversation that it continues. */
  #continues = true;
  /** The call of a result was not there. */
  #isLost = false;

  constructor(mark: string, before: CallChain | null) {
    this.#mark = mark;
    this.#before = before;
  }

  /** What was before the messages that were read changes nothing. */
  get isComplete(): boolean {
    return (!this.#continues && !this.#isLost) || this.#findDifferent() >= 0;
  }

  countEqual(): LastPairs {
    const last = this.#pairs.at(-1);
    const before = this.#continues && this.#before !== null ? this.#before.pairs : NO_PAIRS;
    if (last === undefined) return before;
    const hash = this.#hashPair(last);
    const different = this.#findDifferent();
    const count = this.#pairs.length - 1 - different;
    const isSame = different < 0 && hash === before.hash;
    return { hash, count: isSame ? before.count + count : count };
  }

  /** The last pair that is another than the last one of all. */
  #findDifferent(): number {
    const last = this.#pairs.at(-1);
    const hash = last && this.#hashPair(last);
    return this.#pairs.findLastIndex((pair) => pair !== last && this.#hashPair(pair) !== hash);
  }

  readMessage(message: unknown): void {
    if (!isObject(message)) return this.#startAnew();
    const role = message["role"];
    if (role === "tool") return this.#noteResult(message, message["tool_call_id"]);
    if (role === undefined) this.#readItem(message);
    const parts = LISTS.flatMap((name) => listOf(message[name] ?? []));
    let hasResult = false;
    for (const part of parts) if (isObject(part) && this.#readPart(part)) hasResult = true;
    const isUser = role === "user" || (role === undefined && message["parts"] !== undefined);
    if (isUser && isNew(parts, hasResult)) this.#startAnew();
  }

  /** An item of the responses dialect. */
  #readItem(item: object): void {
    const [type, id] = [getText(getField(item, "type")), getField(item, "call_id")];
    if (type.endsWith("_call")) this.#noteCall(item, id);
    else if (type.endsWith("_call_output")) this.#noteResult(item, id);
  }

  /** Whether the part is a result. */
  #readPart(part: object): boolean {
    const [type, id] = [getField(part, "type"), getField(part, "id")];
    const call = type === "tool_use" ? part : findAny(part, CALLS);
    if (isObject(call)) this.#noteCall(call, id ?? idOf(call));
    const result = type === "tool_result" ? part : findAny(part, RESULTS);
    if (!isObject(result)) return false;
    this.#noteResult(result, type === "tool_result" ? getField(part, "tool_use_id") : idOf(result));
    return true;
  }

  #noteCall(call: object, id: unknown): void {
    this.#open.getOrInsertComputed(id, () => []).push(call);
  }

  #noteResult(result: object, id: unknown): void {
    const call = this.#open.get(id)?.shift() ?? this.#before?.calls.get(hashId(textOf(id)));
    // The call is not in this request: nothing shows what it was.
    if (call === undefined) this.#startAnew(true);
    else this.#pairs.push({ call, result });
  }

  #startAnew(isLost = false): void {
    this.#pairs = [];
    this.#continues = false;
    this.#isLost = isLost;
  }

  #hashPair({ call, result }: Pair): string {
    const name = getField(call, "name");
    const called =
      typeof call === "string"
        ? call
        : hashCall(typeof name === "string" ? name : "", findAny(call, CALL_INPUTS));
    // Marks for the cache move from result to result.
    const output = writeJson(findAny(result, OUTPUTS), this.#mark);
    const clean = output.length > MAX_CLEANED_LENGTH ? output : output.replace(NOISE, "");
    return String(Bun.hash.wyhash(`${called} ${getField(result, "is_error") === true} ${clean}`));
  }
}

/** A list, or any other value as the only element of one. */
function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** Whether a message of the user is more than the results of its calls and what the tool itself adds. */
function isNew(parts: readonly unknown[], hasResult: boolean): boolean {
  const texts = parts.map((part) => (typeof part === "string" ? part : getField(part, "text")));
  const own = texts.map((text) => (typeof text === "string" ? dropAdded(text) : ""));
  if (own.some((text) => text.trim() !== "")) return true;
  return !hasResult && texts.every((text, at) => text === own[at] || text === undefined);
}

/** A text without what tools added to it. */
function dropAdded(text: string): string {
  let own = "";
  let at = 0;
  for (const { 0: opening, 1: name, index } of text.matchAll(ADDED_BY_TOOLS)) {
    if (index < at) continue;
    const start = index + opening.length;
    const end = text.indexOf(`</${name}>`, start);
    if (end < 0) break;
    own += text.slice(at, index);
    const added = text.slice(start, end);
    if (WRITTEN_BY_USER.test(added)) own += added;
    at = end + `</${name}>`.length;
  }
  return own + text.slice(at);
}

function idOf(part: object): unknown {
  return getField(part, "id") ?? getField(part, "name");
}

function findAny(from: unknown, names: readonly string[]): unknown {
  return names.map((name) => getField(from, name)).find((each) => each !== undefined);
}
