// The output items of a whole reply → the parts of a chat answer. The deltas of a stream add up to the same.

import type { BridgeContext } from "../context.ts";
import { type OutputItem, Logprobs } from "./events.ts";

export interface ToolCall {
  readonly id: string;
  readonly kind: "function" | "custom";
  readonly name: string;
  /** JSON text of a function's arguments, or a custom tool's free text. */
  readonly input: string;
}

export interface ChatAnswer {
  readonly text: string;
  readonly refusal: string | null;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
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

/** Between the texts of several items. */
export const ITEM_SEPARATOR = "\n\n";

export function readAnswer(output: readonly OutputItem[], context: BridgeContext): ChatAnswer {
  const messages = chooseMessages(output, context);
  const refusal = messages.map(readRefusal).join("");
  const calls = output.map(readCall).filter((call) => call !== null);
  return {
    text: messages.map(readText).filter(Boolean).join(ITEM_SEPARATOR),
    refusal: refusal === "" ? null : refusal,
    reasoning: output.flatMap(readReasoning).filter(Boolean).join(ITEM_SEPARATOR),
    calls: context.legacy ? calls.slice(0, 1) : calls,
    annotations: readCitations(messages),
    logprobs: messages.flatMap((item) => item.content.flatMap((part) => readLogprobs(part.logprobs))),
  };
}

/** With a JSON format only the first message counts: models repeat the same JSON, and two concatenated copies are not
 *  valid JSON. A commentary is not in the requested format. */
function chooseMessages(output: readonly OutputItem[], context: BridgeContext): readonly OutputItem[] {
  const messages = output.filter((item) => item.type === "message");
  return context.json ? messages.filter((item) => !isCommentary(item.phase)).slice(0, 1) : messages;
}

export function isCommentary(phase: string): boolean {
  return phase === "commentary";
}

export function readCall(item: OutputItem): ToolCall | null {
  const { call_id: id, name } = item;
  if (item.type === "function_call") return { id, kind: "function", name, input: item.arguments };
  if (item.type === "custom_tool_call") return { id, kind: "custom", name, input: item.input };
  return null;
}

export function readText(item: OutputItem): string {
  return item.content.map((part) => part.text).join("");
}

export function readRefusal(item: OutputItem): string {
  return item.content.map((part) => part.refusal).join("");
}

/** Summaries, or the reasoning itself if the model shows it. */
export function readReasoning(item: OutputItem): string[] {
  if (item.type !== "reasoning") return [];
  return [...item.summary, ...item.content].map((part) => part.text);
}

/** `bytes` is null if the upstream sent none. */
export function readLogprobs(value: unknown): TokenLogprob[] {
  return Logprobs.parse(value).map(({ token, logprob, bytes, top_logprobs }) => ({
    token,
    logprob,
    bytes,
    top_logprobs: top_logprobs.map((top) => ({ token: top.token, logprob: top.logprob, bytes: top.bytes })),
  }));
}

/** Responses counts indices from the start of the part, chat from the start of the whole text. Chat has no citations of
 *  files. */
function readCitations(messages: readonly OutputItem[]): Citation[] {
  const citations: Citation[] = [];
  let before = "";
  for (const item of messages) {
    if (before !== "" && readText(item) !== "") before += ITEM_SEPARATOR;
    for (const part of item.content) {
      const offset = countCharacters(before);
      for (const { type, start_index, end_index, title, url } of part.annotations) {
        if (type !== "url_citation") continue;
        const range = { start_index: start_index + offset, end_index: end_index + offset };
        citations.push({ type, url_citation: { ...range, title, url } });
      }
      before += part.text;
    }
  }
  return citations;
}

/** The upstream counts code points. */
function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
