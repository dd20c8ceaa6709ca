// What an answer's output items say, in chat's terms. The whole reply is made of
// this; a stream's pieces add up to it.

import type { BridgeContext } from "../context.ts";
import { type Item, Logprobs } from "./events.ts";

export interface Call {
  readonly id: string;
  readonly kind: "function" | "custom";
  readonly name: string;
  /** JSON text of a function's arguments, or a custom tool's free text. */
  readonly input: string;
}

export interface Answer {
  readonly text: string;
  readonly refusal: string | null;
  readonly reasoning: string;
  readonly calls: readonly Call[];
  readonly annotations: readonly Citation[];
  readonly logprobs: readonly TokenLogprob[];
}

interface Citation {
  readonly type: "url_citation";
  readonly url_citation: { start_index: number; end_index: number; title: string; url: string };
}

export interface TokenLogprob extends PlainLogprob {
  readonly top_logprobs: readonly PlainLogprob[];
}

interface PlainLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
}

/** Between what several items say. */
export const GAP = "\n\n";

export function readAnswer(output: readonly Item[], context: BridgeContext): Answer {
  const messages = chooseMessages(output, context);
  const refusal = messages.map(readRefusal).join("");
  const calls = output.map(readCall).filter((call) => call !== null);
  return {
    text: messages.map(readText).filter(Boolean).join(GAP),
    refusal: refusal === "" ? null : refusal,
    reasoning: output.flatMap(readReasoning).filter(Boolean).join(GAP),
    calls: context.legacy ? calls.slice(0, 1) : calls,
    annotations: readCitations(messages),
    logprobs: messages.flatMap((item) => item.content.flatMap((part) => readLogprobs(part.logprobs))),
  };
}

/** Under a JSON format only the first message counts: models repeat the same JSON, and two of it are none.
 *  A commentary is not the answer that the format is for. */
function chooseMessages(output: readonly Item[], context: BridgeContext): readonly Item[] {
  const messages = output.filter((item) => item.type === "message");
  return context.json ? messages.filter((item) => !isCommentary(item.phase)).slice(0, 1) : messages;
}

export function isCommentary(phase: string): boolean {
  return phase === "commentary";
}

export function readCall(item: Item): Call | null {
  const { call_id: id, name } = item;
  if (item.type === "function_call") return { id, kind: "function", name, input: item.arguments };
  if (item.type === "custom_tool_call") return { id, kind: "custom", name, input: item.input };
  return null;
}

export function readText(item: Item): string {
  return item.content.map((part) => part.text).join("");
}

export function readRefusal(item: Item): string {
  return item.content.map((part) => part.refusal).join("");
}

/** Summaries, or the reasoning itself where a model shows it. */
export function readReasoning(item: Item): string[] {
  if (item.type !== "reasoning") return [];
  return [...item.summary, ...item.content].map((part) => part.text);
}

/** As chat tells it; null bytes where the upstream gave none. */
export function readLogprobs(value: unknown): TokenLogprob[] {
  return Logprobs.parse(value).map(({ token, logprob, bytes, top_logprobs }) => ({
    token,
    logprob,
    bytes,
    top_logprobs: top_logprobs.map((top) => ({ token: top.token, logprob: top.logprob, bytes: top.bytes })),
  }));
}

/** Indices count in their own part; in chat, in the whole text. Citations of files have no chat form. */
function readCitations(messages: readonly Item[]): Citation[] {
  const citations: Citation[] = [];
  let said = "";
  for (const item of messages) {
    if (said !== "" && readText(item) !== "") said += GAP;
    for (const part of item.content) {
      const offset = countCharacters(said);
      for (const { type, start_index, end_index, title, url } of part.annotations) {
        if (type !== "url_citation") continue;
        const place = { start_index: start_index + offset, end_index: end_index + offset };
        citations.push({ type, url_citation: { ...place, title, url } });
      }
      said += part.text;
    }
  }
  return citations;
}

/** Upstream counts code points. */
function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
