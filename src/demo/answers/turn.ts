// What a simulated model does with a request, in no dialect's words: it thinks,
// speaks or calls tools, and is counted. One word is one token. The dialects'
// files read an Ask from their wire format and write a Turn into it.

import { makeInstance } from "../instance.ts";

export interface Tool {
  readonly name: string;
  readonly schema: unknown;
  /** A tool that takes text instead of JSON arguments. */
  readonly custom: boolean;
}

/** A prefix of the request that the client (or the upstream by itself) wants cached. */
export interface CachePoint {
  readonly key: string;
  readonly tokens: number;
  readonly ttl: "5m" | "1h";
}

export interface Ask {
  readonly model: string;
  readonly stream: boolean;
  /** The user's last words. */
  readonly prompt: string;
  /** What the tool said, when that is the last thing in the conversation. */
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

/** Disjoint counts, except that `reasoning` is a part of `output`. */
interface Counts {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  readonly output: number;
  readonly reasoning: number;
}

export interface Turn {
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
  /** The next number of this upstream; ids are made of it. */
  next(): number;
  /** Keys of prefixes that are cached. */
  readonly cached: Set<string>;
}

const LONGEST_ECHO = /^.{0,200}/su;
const MOST_CACHED = 10_000;
const ASKS_FOR_A_TOOL = /\b(use|using|call)\b/i;

export function composeTurn(ask: Ask, memory: Memory, words?: number): Turn {
  const serial = memory.next().toString().padStart(12, "0");
  const chosen = words === undefined ? chooseTools(ask) : [];
  const calls = chosen.map((tool, index) => makeCall(tool, `${serial}${index}`));
  const thinking = ask.thinks ? splitWords(`The user says: ${shorten(ask.prompt)} I answer briefly.`) : [];
  const speech = calls.length > 0 ? [] : splitWords(speak(ask));
  const whole =
    words === undefined ? speech : Array.from({ length: words }, (_, i) => speech[i % speech.length] ?? "");
  const text = whole.slice(0, Math.max(1, ask.maxTokens - thinking.length));
  const spoken = calls.length > 0 ? "tool" : "end";
  return {
    serial,
    model: ask.model,
    created: Math.floor(Date.now() / 1000),
    thinking,
    text,
    calls,
    stop: text.length < whole.length ? "length" : spoken,
    counts: {
      ...countInput(ask, memory.cached),
      output:
        thinking.length + text.length + calls.reduce((sum, call) => sum + 8 + countTokens(call.input), 0),
      reasoning: thinking.length,
    },
  };
}

export function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** Pieces that a model would stream; joined they are the text. */
function splitWords(text: string): string[] {
  return text.match(/\S{1,16}\s*|\s+/gu) ?? [];
}

/** The prefixes that the texts add up to, each the end of a cacheable part. */
export function markPrefixes(parts: readonly { text: string; ttl: "5m" | "1h" | null }[]): CachePoint[] {
  const points: CachePoint[] = [];
  let prefix = "";
  for (const { text, ttl } of parts) {
    prefix += text;
    if (ttl !== null) points.push({ key: Bun.hash(prefix).toString(36), tokens: countTokens(prefix), ttl });
  }
  return points;
}

function countInput(ask: Ask, cached: Set<string>): Omit<Counts, "output" | "reasoning"> {
  const last = ask.cachePoints.at(-1);
  const read = Math.max(
    0,
    ...ask.cachePoints.filter(({ key }) => cached.has(key)).map(({ tokens }) => tokens),
  );
  if (cached.size > MOST_CACHED) cached.clear();
  for (const { key } of ask.cachePoints) cached.add(key);
  const written = Math.max(0, (last?.tokens ?? 0) - read);
  return {
    input: Math.max(0, ask.inputTokens - read - written),
    cacheRead: read,
    cacheWrite5m: last?.ttl === "5m" ? written : 0,
    cacheWrite1h: last?.ttl === "1h" ? written : 0,
  };
}

function chooseTools(ask: Ask): readonly Tool[] {
  const { choice, tools, prompt } = ask;
  if (choice === "none" || ask.toolResult !== null) return [];
  if (typeof choice === "object") return tools.filter(({ name }) => name === choice.name);
  const asked = ASKS_FOR_A_TOOL.test(prompt);
  const named = tools.filter(({ name }) => asked && prompt.includes(name));
  if (named.length > 0) return named;
  if (asked && /\btools\b/i.test(prompt)) return tools;
  return choice === "any" || (asked && /\btool\b/i.test(prompt)) ? tools.slice(0, 1) : [];
}

function makeCall(tool: Tool, serial: string): Call {
  const input = tool.custom ? "demo input" : JSON.stringify(makeInstance(tool.schema) ?? {});
  return { id: serial, name: tool.name, input, custom: tool.custom };
}

function speak(ask: Ask): string {
  if (ask.schema !== undefined) return JSON.stringify(makeInstance(ask.schema) ?? {});
  if (ask.toolResult !== null)
    return `The tool said: ${shorten(ask.toolResult)} Thank you, that is all I needed.`;
  return `You said: "${shorten(ask.prompt)}" I am ${ask.model}, a simulated model, and I have counted every word of this answer.`;
}

function shorten(text: string): string {
  const [start = ""] = LONGEST_ECHO.exec(text) ?? [];
  return start.length < text.length ? `${start}…` : text;
}
