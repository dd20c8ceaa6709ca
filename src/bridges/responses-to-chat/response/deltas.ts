// Text, refusals, reasoning and tool calls as chat deltas. The first delta of a call names it, the others carry pieces of
// its input. A legacy answer can carry the first call only.

import { getText } from "../../../lib/json/json.ts";
import {
  ITEM_SEPARATOR,
  isCommentary,
  readCall,
  readLogprobs,
  readReasoning,
  readRefusal,
  readText,
} from "./chat-answer.ts";
import { writeCall } from "./completion.ts";
import type { OutputItem } from "./events.ts";
import type { Json } from "../../common/strict-json.ts";
import { addItemState, findItem, type ItemState, noteCall, type StreamState, writeDelta } from "./state.ts";

/** With a JSON format, only the first message is sent, and no commentary. */
export function addMessage(stream: StreamState, phase: string, id: unknown, index: unknown): ItemState {
  const answers = !isCommentary(phase);
  const muted = stream.context.json && (!answers || stream.answerBegun);
  if (answers) stream.answerBegun = true;
  return addItemState(stream, { type: "message", muted }, id, index);
}

export function convertTextDelta(stream: StreamState, event: Json): string {
  const delta = readDelta(event);
  return delta === "" ? "" : writeText(stream, findMessage(stream, event), delta, event["logprobs"]);
}

export function convertRefusalDelta(stream: StreamState, event: Json): string {
  const delta = readDelta(event);
  return delta === "" ? "" : writeRefusal(stream, findMessage(stream, event), delta);
}

export function convertReasoningDelta(stream: StreamState, event: Json): string {
  const { item_id: id, output_index: index, summary_index: summary, content_index: content } = event;
  const delta = readDelta(event);
  if (delta === "") return "";
  const found = findItem(stream, id, index);
  const entry = found?.type === "reasoning" ? found : addItemState(stream, { type: "reasoning" }, id, index);
  const part = summary === undefined ? `content ${Number(content)}` : `summary ${Number(summary)}`;
  return writeReasoning(stream, entry, delta, part);
}

function readDelta({ delta }: Json): string {
  return getText(delta);
}

function findMessage(stream: StreamState, { item_id: id, output_index: index }: Json): ItemState {
  const found = findItem(stream, id, index);
  return found?.type === "message" ? found : addMessage(stream, "", id, index);
}

/** The content of a finished message for which no delta came. */
export function writeUnsentMessage(stream: StreamState, entry: ItemState, item: OutputItem): string {
  if (entry.sent) return "";
  const logprobs = item.content.flatMap((part) => part.logprobs);
  return writeText(stream, entry, readText(item), logprobs) + writeRefusal(stream, entry, readRefusal(item));
}

export function writeUnsentReasoning(stream: StreamState, entry: ItemState, item: OutputItem): string {
  if (entry.sent) return "";
  const parts = readReasoning(item).filter(Boolean);
  return parts.map((part, index) => writeReasoning(stream, entry, part, `part ${index}`)).join("");
}

function writeText(stream: StreamState, entry: ItemState, text: string, logprobs: unknown): string {
  if (entry.muted || text === "") return "";
  const gap = stream.textSent && entry.part === "" ? ITEM_SEPARATOR : "";
  entry.sent = true;
  entry.part = "text";
  stream.textSent = true;
  const opening = writeOpening(stream, '{"role":"assistant","content":"","refusal":null}');
  const delta = `{"content":${JSON.stringify(gap + text)}}`;
  if (!stream.context.logprobs) return opening + writeDelta(stream, delta);
  const content = readLogprobs(logprobs);
  return opening + writeDelta(stream, delta, JSON.stringify({ content, refusal: null }));
}

function writeRefusal(stream: StreamState, entry: ItemState, refusal: string): string {
  if (entry.muted || refusal === "") return "";
  entry.sent = true;
  stream.refusalSent = true;
  const opening = writeOpening(stream, '{"role":"assistant","content":null,"refusal":""}');
  return opening + writeDelta(stream, `{"refusal":${JSON.stringify(refusal)}}`);
}

function writeReasoning(stream: StreamState, entry: ItemState, text: string, part: string): string {
  const gap = stream.reasoningSent && entry.part !== part ? ITEM_SEPARATOR : "";
  entry.sent = true;
  entry.part = part;
  stream.reasoningSent = true;
  const opening = writeOpening(stream, '{"role":"assistant","content":null,"refusal":null}');
  return opening + writeDelta(stream, `{"reasoning_content":${JSON.stringify(gap + text)}}`);
}

/** The first chunk, with the role. Empty if it has been sent. */
export function writeOpening(stream: StreamState, delta: string): string {
  if (stream.roleSent) return "";
  stream.roleSent = true;
  return writeDelta(stream, delta, '{"content":[],"refusal":null}');
}

/** Writes the name of the call. Its input follows, even if the upstream sent it along. Null: the item is not a call. */
export function openCall(
  stream: StreamState,
  item: OutputItem,
  index: unknown,
): { entry: ItemState; text: string } | null {
  const call = readCall(item);
  if (call === null) return null;
  const position = stream.calls++;
  const { legacy } = stream.context;
  const field = call.kind === "function" ? "arguments" : "input";
  const start = {
    type: item.type,
    muted: legacy && position > 0,
    before: legacy
      ? '{"function_call":{"arguments":'
      : `{"tool_calls":[{"index":${position},"${call.kind}":{"${field}":`,
    after: legacy ? "}}" : "}}]}",
  };
  const entry = addItemState(stream, start, item.id, index);
  noteCall(stream, call.id, entry);
  if (entry.muted) return { entry, text: "" };
  const named = writeCall({ ...call, input: "" });
  const delta = legacy
    ? { function_call: { name: call.name, arguments: "" } }
    : { tool_calls: [{ index: position, id: call.id, type: call.kind, ...named }] };
  const first = JSON.stringify({ role: "assistant", content: null, ...delta, refusal: null });
  return { entry, text: writeOpening(stream, first) || writeDelta(stream, JSON.stringify(delta)) };
}

export function convertInputDelta(stream: StreamState, event: Json): string {
  return writeInput(stream, findItem(stream, event["item_id"], event["output_index"]), event["delta"]);
}

/** The whole input, for upstreams that send no deltas. */
export function convertInputDone(stream: StreamState, event: Json): string {
  const entry = findItem(stream, event["item_id"], event["output_index"]);
  return entry?.sent === true ? "" : writeInput(stream, entry, event["arguments"] ?? event["input"]);
}

export function writeUnsentCall(
  stream: StreamState,
  entry: ItemState | undefined,
  item: OutputItem,
  index: unknown,
): string {
  if (entry?.sent === true) return "";
  const opened = entry === undefined ? openCall(stream, item, index) : { entry, text: "" };
  return opened === null ? "" : opened.text + writeInput(stream, opened.entry, readCall(item)?.input);
}

/** A call without a name waits for the end of its item, which carries all of it. */
function writeInput(stream: StreamState, entry: ItemState | undefined, input: unknown): string {
  if (entry === undefined || entry.before === "" || typeof input !== "string" || input === "") return "";
  entry.sent = true;
  return entry.muted ? "" : writeDelta(stream, entry.before + JSON.stringify(input) + entry.after);
}
