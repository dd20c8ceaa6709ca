// A simulated model's work, in any dialect: it thinks, writes text or calls tools, and counts tokens.
// One word of a text that it writes is one token. Each format reads a ModelRequest and writes a Completion.

import { makeInstance } from "../instance.ts";

export interface Tool {
  readonly name: string;
  readonly schema: unknown;
  /** A tool that takes text instead of JSON arguments. */
  readonly custom: boolean;
}

/** A prefix of the request that the client, or the upstream by itself, wants to cache. */
export interface CachePoint extends CachedPrefix {
  readonly ttl: "5m" | "1h";
  /** Shorter prefixes, of which one may be cached from an earlier request. */
  readonly shorter?: readonly CachedPrefix[];
}

interface CachedPrefix {
  readonly key: string;
  readonly tokens: number;
}

/** From a mark, an upstream looks back this many parts for a cached beginning. */
const LOOKBACK_PARTS = 20;

export interface ModelRequest {
  readonly model: string;
  readonly stream: boolean;
  /** The user's last message. */
  readonly prompt: string;
  /** The tool's result, if it is the last item of the conversation. */
  readonly toolResult: string | null;
  readonly tools: readonly Tool[];
  readonly choice: "none" | "auto" | "any" | { readonly name: string };
  /** Undefined: plain text. `{}`: any JSON object. */
  readonly schema: unknown;
  readonly thinks: boolean;
  readonly maxTokens: number;
  readonly inputTokens: number;
  readonly cachePoints: readonly CachePoint[];
}

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  readonly custom: boolean;
}

/** The counts are disjoint, except that `reasoning` is part of `output`. */
interface Counts {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  readonly output: number;
  readonly reasoning: number;
}

export interface Completion {
  readonly serial: string;
  readonly model: string;
  readonly created: number;
  readonly thinking: readonly string[];
  readonly text: readonly string[];
  readonly calls: readonly Call[];
  readonly stop: "end" | "tool" | "length";
  readonly counts: Counts;
}

export interface Memory {
  /** The next serial number. Ids contain it. */
  next(): number;
  /** The keys of cached prefixes. */
  readonly cached: Set<string>;
}

const ECHO = /^.{0,200}/su;
const MAX_CACHED_PREFIXES = 10_000;
const ASKS_FOR_A_TOOL = /\b(use|using|call)\b/i;

export function composeCompletion(request: ModelRequest, memory: Memory): Completion {
  const serial = memory.next().toString().padStart(12, "0");
  const calls = chooseTools(request).map((tool, index) => makeCall(tool, `${serial}${index}`));
  const thinking = request.thinks
    ? splitWords(`The user says: ${shorten(request.prompt)} I answer briefly.`)
    : [];
  const whole = calls.length > 0 ? [] : splitWords(writeText(request));
  const text = whole.slice(0, Math.max(1, request.maxTokens - thinking.length));
  const spoken = calls.length > 0 ? "tool" : "end";
  return {
    serial,
    model: request.model,
    created: Math.floor(Date.now() / 1000),
    thinking,
    text,
    calls,
    stop: text.length < whole.length ? "length" : spoken,
    counts: {
      ...countInput(request, memory.cached),
      output:
        thinking.length + text.length + calls.reduce((sum, call) => sum + 8 + countTokens(call.input), 0),
      reasoning: thinking.length,
    },
  };
}

export function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** Returns the pieces in which a model would stream the text. */
function splitWords(text: string): string[] {
  return text.match(/\S{1,16}\s*|\s+/gu) ?? [];
}

/** Returns the prefixes that end with a part that has a `ttl`. */
export function markPrefixes(parts: readonly { text: string; ttl: "5m" | "1h" | null }[]): CachePoint[] {
  const points: CachePoint[] = [];
  const prefixes: CachedPrefix[] = [];
  let hash = 0n;
  let length = 0;
  for (const { text, ttl } of parts) {
    hash = Bun.hash.wyhash(text, hash);
    length += text.length;
    const prefix = { key: hash.toString(36), tokens: Math.ceil(length / 4) };
    if (ttl !== null) points.push({ ...prefix, ttl, shorter: prefixes.slice(-LOOKBACK_PARTS) });
    prefixes.push(prefix);
  }
  return points;
}

function countInput(request: ModelRequest, cached: Set<string>): Omit<Counts, "output" | "reasoning"> {
  const last = request.cachePoints.at(-1);
  const read = Math.max(
    0,
    ...request.cachePoints
      .flatMap(({ shorter = [], ...point }) => [point, ...shorter])
      .filter(({ key }) => cached.has(key))
      .map(({ tokens }) => tokens),
  );
  if (cached.size > MAX_CACHED_PREFIXES) cached.clear();
  for (const { key } of request.cachePoints) cached.add(key);
  const written = Math.max(0, (last?.tokens ?? 0) - read);
  return {
    input: Math.max(0, request.inputTokens - read - written),
    cacheRead: read,
    cacheWrite5m: last?.ttl === "5m" ? written : 0,
    cacheWrite1h: last?.ttl === "1h" ? written : 0,
  };
}

function chooseTools(request: ModelRequest): readonly Tool[] {
  const { choice, tools, prompt } = request;
  if (choice === "none" || request.toolResult !== null) return [];
  if (typeof choice === "object") return tools.filter(({ name }) => name === choice.name);
  const wantsTool = ASKS_FOR_A_TOOL.test(prompt);
  const named = tools.filter(({ name }) => wantsTool && prompt.includes(name));
  if (named.length > 0) return named;
  if (wantsTool && /\btools\b/i.test(prompt)) return tools;
  return choice === "any" || (wantsTool && /\btool\b/i.test(prompt)) ? tools.slice(0, 1) : [];
}

function makeCall(tool: Tool, serial: string): Call {
  const input = tool.custom ? "demo input" : JSON.stringify(makeInstance(tool.schema) ?? {});
  return { id: serial, name: tool.name, input, custom: tool.custom };
}

function writeText(request: ModelRequest): string {
  if (request.schema !== undefined) return JSON.stringify(makeInstance(request.schema) ?? {});
  if (request.toolResult !== null)
    return `The tool said: ${shorten(request.toolResult)} Thank you, that is all I needed.`;
  return `You said: "${shorten(request.prompt)}" I am ${request.model}, a simulated model, and I have counted every word of this answer.`;
}

function shorten(text: string): string {
  const [start = ""] = ECHO.exec(text) ?? [];
  return start.length < text.length ? `${start}…` : text;
}
