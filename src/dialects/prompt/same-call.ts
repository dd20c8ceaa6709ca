// How often the conversation of a request ends with the same tool call and the same result: an agent in a loop. Its last
// messages are parsed for it, so that it runs only for keys with this limit. A client's retry has the same conversation, so
// that it does not count. Where the upstream keeps the conversation, the calls and the count until then come from the
// response that the request continues.

import { type CallChain, hashId, type LastPairs } from "../../billing/limits/call-chains.ts";
import { getField, getText, isObject, parseJson, textOf } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { CALLS, findAny, MARK_NAMES, RESULTS } from "./blocks.ts";
import type { Layout } from "./layouts.ts";
import { readPrevious, type ScannedBody } from "./prompt.ts";

/** What a tool was called with, and what it returned, in the words of each dialect. */
export const CALL_INPUTS = ["input", "arguments", "args", "action"] as const;
const OUTPUTS = ["content", "output", "response"] as const;
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

const NO_PAIRS: LastPairs = { hash: "", count: 0 };

/** So many messages are read first; if the same pair fills them, four times as many. */
const FIRST_MESSAGES = 8;

/** How many equal pairs end the conversation. `findChain` finds the one that it continues, by the id of its response. */
export function countSameCalls(
  body: ScannedBody,
  layout: Layout,
  findChain: (responseId: string) => CallChain | null = () => null,
): LastPairs {
  const previous = readPrevious(body, layout);
  const before = previous === null ? null : findChain(previous);
  const messages = listMessages(body, layout);
  for (let count = FIRST_MESSAGES; ; count *= 4) {
    const isWhole = count >= messages.length;
    const counter = new PairCounter(before, isWhole);
    for (const message of messages.slice(-count)) counter.readMessage(parseJson(message.toString()));
    if (isWhole || counter.isCertain) return counter.last;
  }
}

function listMessages({ bytes, scan }: ScannedBody, { members }: Layout): Buffer[] {
  const [name = ""] = [...members].find(([, role]) => role === "messages") ?? [];
  const { starts = [], parts = [] } = scan.lists.get(name) ?? {};
  return starts.map((start, at) => asBuffer(bytes).subarray(start, start + (parts[at]?.length ?? 0)));
}

/** The same for a call in a request and for the same call in a response. */
export function hashCall(name: string, input: unknown): string {
  return `${name} ${Bun.hash.wyhash(writeJson(input))}`;
}

/** No tool nests its input or its result as deeply. What is deeper is not compared. */
const MAX_DEPTH = 64;

/** JSON without some members. `JSON.stringify` takes time that grows with the square of the depth. */
function writeJson(value: unknown, without?: ReadonlySet<string>, depth = 0): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  if (depth === MAX_DEPTH) return "";
  const write = (inner: unknown): string => writeJson(inner, without, depth + 1);
  if (Array.isArray(value)) return `[${value.map(write).join()}]`;
  const members = Object.entries(value).filter(([name]) => without?.has(name) !== true);
  return `{${members.map(([name, inner]) => `${JSON.stringify(name)}:${write(inner)}`).join()}}`;
}

class PairCounter {
  /** Since the user's last text. */
  last: LastPairs = NO_PAIRS;
  /** What was before the messages that were read changes nothing. */
  isCertain = false;
  readonly #before: CallChain | null;
  /** The calls without a result, by id, or by name where calls have no id: as hashes. */
  readonly #open = new Map<unknown, string[]>();

  constructor(before: CallChain | null, isWhole: boolean) {
    this.#before = before;
    if (isWhole && before !== null) this.last = before.pairs;
  }

  readMessage(message: unknown): void {
    if (!isObject(message)) return this.#startAnew();
    const role = message["role"];
    if (role === "tool") return this.#noteResult(message, message["tool_call_id"]);
    if (role === undefined) this.#readItem(message);
    const parts = LISTS.flatMap((name) => message[name] ?? []);
    const hasResult = parts.map((part) => isObject(part) && this.#readPart(part)).includes(true);
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
    const hash = hashCall(getText(getField(call, "name")), findAny(call, CALL_INPUTS));
    this.#open.getOrInsertComputed(id, () => []).push(hash);
  }

  #noteResult(result: object, id: unknown): void {
    const call = this.#open.get(id)?.shift() ?? this.#before?.calls.get(hashId(textOf(id)));
    // The call is not among what was read: nothing shows what it was.
    if (call === undefined) return this.#startAnew(false);
    // Marks for the cache move from result to result.
    const output = writeJson(findAny(result, OUTPUTS), MARK_NAMES);
    const clean = output.length > MAX_CLEANED_LENGTH ? output : output.replace(NOISE, "");
    const hash = String(Bun.hash.wyhash(`${call} ${getField(result, "is_error") === true} ${clean}`));
    const { last } = this;
    if (hash !== last.hash && last.count > 0) this.#startAnew();
    this.last = { hash, count: this.last.count + 1 };
  }

  #startAnew(isCertain = true): void {
    this.last = NO_PAIRS;
    this.isCertain = isCertain;
  }
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
