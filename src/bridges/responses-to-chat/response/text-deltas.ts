// What the model says: text, refusals and reasoning, as deltas of chat.

import { GAP, isCommentary, readLogprobs, readReasoning, readRefusal, readText } from "./tool-call.ts";
import { writeDelta, writeLoggedDelta } from "./chunks.ts";
import type { Item } from "./events.ts";
import type { Json } from "../json.ts";
import { addEntry, type Entry, findEventEntry, type Stream } from "./state.ts";

/** Under a JSON format only the first message that is no commentary is told. */
export function addMessage(stream: Stream, phase: string, id: unknown, index: unknown): Entry {
  const answers = !isCommentary(phase);
  const muted = stream.context.json && (!answers || stream.answering);
  if (answers) stream.answering = true;
  return addEntry(stream, { type: "message", muted }, id, index);
}

export function tellTextDelta(stream: Stream, event: Json): string {
  const { delta } = event;
  if (typeof delta !== "string" || delta === "") return "";
  return tellText(stream, findMessage(stream, event), delta, event["logprobs"]);
}

export function tellRefusalDelta(stream: Stream, event: Json): string {
  const { delta } = event;
  if (typeof delta !== "string" || delta === "") return "";
  return tellRefusal(stream, findMessage(stream, event), delta);
}

export function tellReasoningDelta(stream: Stream, event: Json): string {
  const { delta } = event;
  if (typeof delta !== "string" || delta === "") return "";
  const { item_id: id, output_index: index, summary_index: summary, content_index: content } = event;
  const found = findEventEntry(stream, event);
  const entry = found?.type === "reasoning" ? found : addEntry(stream, { type: "reasoning" }, id, index);
  return tellReasoning(
    stream,
    entry,
    delta,
    summary === undefined ? `content ${Number(content)}` : `summary ${Number(summary)}`,
  );
}

/** What a finished message says that no delta had told. */
export function tellMessage(stream: Stream, entry: Entry, item: Item): string {
  if (entry.told) return "";
  const logprobs = item.content.flatMap((part) => part.logprobs);
  const text = readText(item);
  const refusal = readRefusal(item);
  return (
    (text === "" ? "" : tellText(stream, entry, text, logprobs)) +
    (refusal === "" ? "" : tellRefusal(stream, entry, refusal))
  );
}

export function tellWholeReasoning(stream: Stream, entry: Entry, item: Item): string {
  if (entry.told) return "";
  const parts = readReasoning(item).filter(Boolean);
  return parts.map((part, index) => tellReasoning(stream, entry, part, `part ${index}`)).join("");
}

function tellText(stream: Stream, entry: Entry, text: string, logprobs: unknown): string {
  if (entry.muted) return "";
  const gap = stream.spoken && entry.part === "" ? GAP : "";
  entry.told = true;
  entry.part = "text";
  stream.spoken = true;
  const opening = stream.opened ? "" : openWith(stream, '{"role":"assistant","content":"","refusal":null}');
  const delta = `{"content":${JSON.stringify(gap === "" ? text : gap + text)}}`;
  if (!stream.context.logprobs) return opening + writeDelta(stream.frame, delta);
  return opening + writeLoggedDelta(stream.frame, delta, readLogprobs(logprobs));
}

function tellRefusal(stream: Stream, entry: Entry, refusal: string): string {
  if (entry.muted) return "";
  entry.told = true;
  stream.refused = true;
  const opening = stream.opened ? "" : openWith(stream, '{"role":"assistant","content":null,"refusal":""}');
  return opening + writeDelta(stream.frame, `{"refusal":${JSON.stringify(refusal)}}`);
}

function tellReasoning(stream: Stream, entry: Entry, text: string, part: string): string {
  const gap = stream.reasoned && entry.part !== part ? GAP : "";
  entry.told = true;
  entry.part = part;
  stream.reasoned = true;
  const opening = stream.opened ? "" : openWith(stream, '{"role":"assistant","content":null,"refusal":null}');
  return opening + writeDelta(stream.frame, `{"reasoning_content":${JSON.stringify(gap + text)}}`);
}

/** The first chunk, which bears the role. */
export function openWith(stream: Stream, delta: string): string {
  stream.opened = true;
  return stream.frame.logprobs ? writeLoggedDelta(stream.frame, delta, []) : writeDelta(stream.frame, delta);
}

function findMessage(stream: Stream, event: Json): Entry {
  const found = findEventEntry(stream, event);
  if (found?.type === "message") return found;
  return addMessage(stream, "", event["item_id"], event["output_index"]);
}
