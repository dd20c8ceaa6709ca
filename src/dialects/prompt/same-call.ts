// Counts the equal tool calls with equal results at the end of a conversation.
// If the upstream keeps the conversation, earlier calls come from the continued response.

import { type CallChain, hashId, type LastPairs } from "../../billing/limits/call-chains.ts";
import type { CallListener } from "../../billing/usage.ts";
import { getField, getText, isObject, parseJson } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { MARK_NAMES } from "./blocks.ts";
import { findCall, findResult, type ToolCall, type ToolResult } from "./calls.ts";
import type { Layout } from "./layouts.ts";
import { readPrevious, type ScannedBody } from "./prompt.ts";

const LISTS = ["content", "parts", "tool_calls"] as const;

/** A command's time and process differ each time. Codex: `"chunk_id":"3c9d10"` or `Wall time 0.4 seconds`,
 * Copilot: `<shellId: 310 completed`, Gemini CLI: `PGID: 26330`. */
const NOISE =
  /(?:chunk[_ ]id|wall[_ ]time(?:_seconds)?|duration_seconds)\W{1,6}[\w.-]+|(?:shellId|PGID): \d+/gi;
const MAX_CLEANED_LENGTH = 64 * 1024;

/** Claude Code, opencode and Cline add such texts in the user's name. */
const ADDED_BY_TOOLS = /<(system-reminder|task-notification|environment_details)>/g;
/** Claude Code puts the user's words into a reminder. */
const WRITTEN_BY_USER = /^\s*The user sent a new message while you were working:/;

const NO_PAIRS: LastPairs = { hash: "", count: 0 };

/** How many messages are read, from the end.
 *  If all of them repeat one call, more are read. */
const FIRST_MESSAGES = 8;

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

/** Reports a call whose result the client will send. */
export function reportCall(part: unknown, listener: CallListener): void {
  const call = findCall(part);
  const type = getText(getField(part, "type"));
  const isOwn = type.endsWith("_call") ? getField(part, "call_id") === undefined : type !== "tool_use";
  if (call !== null && call.input !== undefined && !isOwn) listener.add(call.id, hashCall(call));
}

/** A call has the same hash in a request and in a response. */
function hashCall({ name, input }: ToolCall): string {
  return `${name} ${Bun.hash.wyhash(writeJson(input))}`;
}

const MAX_DEPTH = 64;

/** Writes JSON itself:
 *  `JSON.stringify` takes quadratic time in the depth. */
function writeJson(value: unknown, without?: ReadonlySet<string>, depth = 0): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  if (depth === MAX_DEPTH) return "";
  const write = (inner: unknown): string => writeJson(inner, without, depth + 1);
  if (Array.isArray(value)) return `[${value.map(write).join()}]`;
  const members = Object.entries(value).filter(([name]) => without?.has(name) !== true);
  return `{${members.map(([name, inner]) => `${JSON.stringify(name)}:${write(inner)}`).join()}}`;
}

class PairCounter {
  /** The last call with its result, and how often they came in a row since the user's last text. */
  last: LastPairs = NO_PAIRS;
  /** Unread messages cannot change `last`. */
  isCertain = false;
  readonly #before: CallChain | null;
  /** Hashes of calls without a result, by id. */
  readonly #open = new Map<string, string[]>();

  constructor(before: CallChain | null, isWhole: boolean) {
    this.#before = before;
    if (isWhole && before !== null) this.last = before.pairs;
  }

  readMessage(message: unknown): void {
    if (!isObject(message)) return this.#startAnew();
    const parts = LISTS.flatMap((name) => message[name] ?? []);
    const role = message["role"];
    let hasResult = false;
    for (const part of [message, ...parts]) {
      const call = findCall(part);
      if (call !== null) this.#open.getOrInsertComputed(call.id, () => []).push(hashCall(call));
      // Messages of the model have only results of the upstream's tools.
      const result = role === "assistant" ? null : findResult(part);
      if (result !== null) this.#noteResult(result);
      hasResult ||= result !== null;
    }
    const isUser = role === "user" || (role === undefined && message["parts"] !== undefined);
    if (isUser && isNew(parts, hasResult)) this.#startAnew();
  }

  #noteResult({ id, output, isError }: ToolResult): void {
    const call = this.#open.get(id)?.shift() ?? this.#before?.calls.get(hashId(id));
    // The message with this call was not read.
    if (call === undefined) return this.#startAnew(false);
    // Clients move their cache marks.
    const json = writeJson(output, MARK_NAMES);
    const clean = json.length > MAX_CLEANED_LENGTH ? json : json.replace(NOISE, "");
    const hash = String(Bun.hash.wyhash(`${call} ${isError} ${clean}`));
    const { last } = this;
    if (hash !== last.hash && last.count > 0) this.#startAnew();
    this.last = { hash, count: this.last.count + 1 };
  }

  #startAnew(isCertain = true): void {
    this.last = NO_PAIRS;
    this.isCertain = isCertain;
  }
}

function isNew(parts: readonly unknown[], hasResult: boolean): boolean {
  const texts = parts.map((part) => (typeof part === "string" ? part : getField(part, "text")));
  const own = texts.map((text) => (typeof text === "string" ? dropAdded(text) : ""));
  if (own.some((text) => text.trim() !== "")) return true;
  return !hasResult && texts.every((text, at) => text === own[at] || text === undefined);
}

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
