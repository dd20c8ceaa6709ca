// Text, refusals and reasoning as chat deltas.

import {
  ITEM_SEPARATOR,
  isCommentary,
  readLogprobs,
  readReasoning,
  readRefusal,
  readText,
} from "./chat-answer.ts";
import { writeDelta, writeDeltaWithLogprobs } from "./chunks.ts";
import type { OutputItem } from "./events.ts";
import type { Json } from "../strict-json.ts";
import { addItemState, type ItemState, findEventItem, type StreamState } from "./state.ts";

/** With a JSON format, only the first message is sent, and no commentary. */
export function addMessage(stream: StreamState, phase: string, id: unknown, index: unknown): ItemState {
  const answers = !isCommentary(phase);
  const muted = stream.context.json && (!answers || stream.answerBegun);
  if (answers) stream.answerBegun = true;
  return addItemState(stream, { type: "message", muted }, id, index);
}

export function convertTextDelta(stream: StreamState, event: Json): string {
  const { delta } = event;
  if (typeof delta !== "string" || delta === "") return "";
  return writeText(stream, findMessage(stream, event), delta, event["logprobs"]);
}

export function convertRefusalDelta(stream: StreamState, event: Json): string {
  const { delta } = event;
  if (typeof delta !== "string" || delta === "") return "";
  return writeRefusal(stream, findMessage(stream, event), delta);
}

export function convertReasoningDelta(stream: StreamState, event: Json): string {
  const { delta } = event;
  if (typeof delta !== "string" || delta === "") return "";
  const { item_id: id, output_index: index, summary_index: summary, content_index: content } = event;
  const found = findEventItem(stream, event);
  const entry = found?.type === "reasoning" ? found : addItemState(stream, { type: "reasoning" }, id, index);
  return writeReasoning(
    stream,
    entry,
    delta,
    summary === undefined ? `content ${Number(content)}` : `summary ${Number(summary)}`,
  );
}

/** The content of a finished message for which no delta came. */
export function writeUnsentMessage(stream: StreamState, entry: ItemState, item: OutputItem): string {
  if (entry.sent) return "";
  const logprobs = item.content.flatMap((part) => part.logprobs);
  const text = readText(item);
  const refusal = readRefusal(item);
  return (
    (text === "" ? "" : writeText(stream, entry, text, logprobs)) +
    (refusal === "" ? "" : writeRefusal(stream, entry, refusal))
  );
}

export function writeUnsentReasoning(stream: StreamState, entry: ItemState, item: OutputItem): string {
  if (entry.sent) return "";
  const parts = readReasoning(item).filter(Boolean);
  return parts.map((part, index) => writeReasoning(stream, entry, part, `part ${index}`)).join("");
}

function writeText(stream: StreamState, entry: ItemState, text: string, logprobs: unknown): string {
  if (entry.muted) return "";
  const gap = stream.textSent && entry.part === "" ? ITEM_SEPARATOR : "";
  entry.sent = true;
  entry.part = "text";
  stream.textSent = true;
  const opening = stream.roleSent
    ? ""
    : writeFirstChunk(stream, '{"role":"assistant","content":"","refusal":null}');
  const delta = `{"content":${JSON.stringify(gap === "" ? text : gap + text)}}`;
  if (!stream.context.logprobs) return opening + writeDelta(stream.frame, delta);
  return opening + writeDeltaWithLogprobs(stream.frame, delta, readLogprobs(logprobs));
}

function writeRefusal(stream: StreamState, entry: ItemState, refusal: string): string {
  if (entry.muted) return "";
  entry.sent = true;
  stream.refusalSent = true;
  const opening = stream.roleSent
    ? ""
    : writeFirstChunk(stream, '{"role":"assistant","content":null,"refusal":""}');
  return opening + writeDelta(stream.frame, `{"refusal":${JSON.stringify(refusal)}}`);
}

function writeReasoning(stream: StreamState, entry: ItemState, text: string, part: string): string {
  const gap = stream.reasoningSent && entry.part !== part ? ITEM_SEPARATOR : "";
  entry.sent = true;
  entry.part = part;
  stream.reasoningSent = true;
  const opening = stream.roleSent
    ? ""
    : writeFirstChunk(stream, '{"role":"assistant","content":null,"refusal":null}');
  return opening + writeDelta(stream.frame, `{"reasoning_content":${JSON.stringify(gap + text)}}`);
}

/** The first chunk, with the role. */
export function writeFirstChunk(stream: StreamState, delta: string): string {
  stream.roleSent = true;
  return stream.frame.logprobs
    ? writeDeltaWithLogprobs(stream.frame, delta, [])
    : writeDelta(stream.frame, delta);
}

function findMessage(stream: StreamState, event: Json): ItemState {
  const found = findEventItem(stream, event);
  if (found?.type === "message") return found;
  return addMessage(stream, "", event["item_id"], event["output_index"]);
}
