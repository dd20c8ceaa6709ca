// Responses events → chat chunks, one by one as they come. One row of the table
// tells one kind of event; events without a row say nothing that chat has words for.

import { GatewayError } from "../../../lib/errors.ts";
import { openSseSplitter, type SseEvent } from "../../../lib/sse/sse-parser.ts";
import { isObject, parseJson } from "../../../lib/json/json.ts";
import { readCall } from "./chat-answer.ts";
import { openCall, convertInputDelta, convertInputDone, writeUnsentCall } from "./tool-call-events.ts";
import type { BridgeContext } from "../context.ts";
import { convertLastEvent, fail, convertErrorEvent, convertFailedEvent } from "./terminal.ts";
import { blameUpstream, type ChatError, writeError } from "../errors.ts";
import { OutputItem, Reply } from "./events.ts";
import type { Json } from "../strict-json.ts";
import {
  addMessage,
  writeUnsentMessage,
  convertReasoningDelta,
  convertRefusalDelta,
  convertTextDelta,
  writeUnsentReasoning,
} from "./text-deltas.ts";
import { addItemState, findItem, noteIdentity, openState, type StreamPhase, type StreamState } from "./state.ts";

export interface Emitted {
  /** To send now. Empty while `held`, when refused, and when the event has no counterpart in chat. */
  readonly text: string;
  /** held: send no head yet. open: the head may leave. done: [DONE] is in the text. broken: an
   *  error frame is, and nothing may follow. refused: answer the refusal instead of a stream. */
  readonly phase: StreamPhase;
  /** The error, when broken or refused. */
  readonly refusal: { readonly status: number; readonly body: string } | null;
}

export interface ChatStream {
  push(chunk: Uint8Array): Emitted;
  /** The upstream has ended; with a fault when the gateway knows why. */
  end(fault?: ChatError): Emitted;
}

type EventHandler = (stream: StreamState, event: Json) => string;

const HANDLERS: Readonly<Record<string, EventHandler>> = {
  "response.created": noteReply,
  "response.in_progress": noteReply,
  "response.queued": noteReply,
  "response.output_item.added": addItem,
  "response.output_item.done": finishItem,
  "response.output_text.delta": convertTextDelta,
  "response.refusal.delta": convertRefusalDelta,
  "response.reasoning_summary_text.delta": convertReasoningDelta,
  "response.reasoning_text.delta": convertReasoningDelta,
  "response.function_call_arguments.delta": convertInputDelta,
  "response.function_call_arguments.done": convertInputDone,
  "response.custom_tool_call_input.delta": convertInputDelta,
  "response.custom_tool_call_input.done": convertInputDone,
  "response.completed": (stream, event) => convertLastEvent(stream, event, writeUnsentItems),
  "response.incomplete": (stream, event) => convertLastEvent(stream, event, writeUnsentItems),
  "response.failed": convertFailedEvent,
  "response.cancelled": convertFailedEvent,
  error: convertErrorEvent,
};

/** Come before the model has begun to answer: the status is held until another event comes. */
const HELD_TYPES = new Set([
  "response.created",
  "response.in_progress",
  "response.queued",
  "response.failed",
  "response.cancelled",
  "error",
]);

export function openChatStream(context: BridgeContext): ChatStream {
  const stream = openState(context);
  const splitter = openSseSplitter();
  const tellEnd = (fault: ChatError | undefined): string => {
    const text = fault === undefined ? convertEvents(stream, splitter.end().filter(isWhole)) : "";
    return isOver(stream) ? text : text + fail(stream, fault ?? CLOSED);
  };
  return {
    push: (chunk) => emit(stream, () => convertEvents(stream, splitter.push(chunk))),
    end: (fault) => emit(stream, () => tellEnd(fault)),
  };
}

const CLOSED = blameUpstream(
  502,
  "upstream_closed",
  "The upstream closed the stream before its answer was complete.",
);
const MALFORMED = blameUpstream(502, "upstream_invalid", "The upstream sent an event that is not JSON.");

function emit(stream: StreamState, tell: () => string): Emitted {
  let text = "";
  if (!isOver(stream)) {
    try {
      text = tell();
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      text = fail(stream, blameUpstream(error.status, "upstream_invalid", error.message));
    }
  }
  const { phase, refusal } = stream;
  return {
    text,
    phase,
    refusal: refusal && { status: refusal.status, body: writeError(refusal.error) },
  };
}

function isOver(stream: StreamState): boolean {
  return stream.phase !== "held" && stream.phase !== "open";
}

function convertEvents(stream: StreamState, events: readonly SseEvent[]): string {
  let text = "";
  for (const event of events) {
    if (isOver(stream)) break;
    text += convertEvent(stream, event);
  }
  return text;
}

function convertEvent(stream: StreamState, sse: SseEvent): string {
  const { name, data } = sse;
  // Whole texts and tool lists come again and again in events that say nothing new: those are not even parsed.
  if (name.startsWith("response.") && !Object.hasOwn(HANDLERS, name)) return "";
  const event = parseJson(data);
  if (event === undefined) return data === "[DONE]" ? "" : fail(stream, MALFORMED);
  return isObject(event) ? convertParsed(stream, event, sse) : "";
}

function convertParsed(stream: StreamState, event: Json, sse: SseEvent): string {
  const type = chooseHandler(event, sse);
  const row = type === null ? undefined : HANDLERS[type];
  if (type === null || row === undefined) return "";
  if (stream.phase === "held" && !HELD_TYPES.has(type)) stream.phase = "open";
  return row(stream, event);
}

/** Null for an event without a row. Relays send errors that don't say that they are. */
function chooseHandler(event: Json, { name }: SseEvent): string | null {
  const { type, error } = event;
  if (typeof type === "string" && Object.hasOwn(HANDLERS, type)) return type;
  return name === "error" || (type === undefined && isObject(error)) ? "error" : null;
}

function noteReply(stream: StreamState, event: Json): string {
  if (stream.identity === null && isObject(event["response"]))
    noteIdentity(stream, Reply.parse(event["response"]));
  return "";
}

function addItem(stream: StreamState, event: Json): string {
  if (!isObject(event["item"])) return "";
  const item = OutputItem.parse(event["item"]);
  const index = event["output_index"];
  if (item.type === "message") addMessage(stream, item.phase, item.id, index);
  else if (item.type === "reasoning") addItemState(stream, { type: "reasoning" }, item.id, index);
  else return openCall(stream, item, index)?.text ?? "";
  return "";
}

function finishItem(stream: StreamState, event: Json): string {
  if (!isObject(event["item"])) return "";
  const item = OutputItem.parse(event["item"]);
  stream.finished.push(item);
  return writeUnsentItem(stream, item, event["output_index"]);
}

function writeUnsentItems(stream: StreamState, items: readonly OutputItem[]): string {
  const { roleSent: opened, textSent: spoken, refusalSent: refused } = stream;
  const tell = (item: OutputItem, index: number): string => {
    // Ids and places of items may have changed since they were told; ids of calls do not.
    const named = item.call_id !== "" && readCall(item) !== null;
    if (named) return writeUnsentCall(stream, stream.byCallId.get(item.call_id), item, index);
    const told = item.type === "message" ? spoken || refused : opened;
    return told ? "" : writeUnsentItem(stream, item, index);
  };
  return items.map(tell).join("");
}

/** What of an item has not been told yet. */
function writeUnsentItem(stream: StreamState, item: OutputItem, index: unknown): string {
  const found = findItem(stream, item.id, index);
  const entry = found?.type === item.type ? found : undefined;
  if (item.type === "message") {
    return writeUnsentMessage(stream, entry ?? addMessage(stream, item.phase, item.id, index), item);
  }
  if (item.type === "reasoning") {
    return writeUnsentReasoning(stream, entry ?? addItemState(stream, { type: "reasoning" }, item.id, index), item);
  }
  return writeUnsentCall(stream, entry, item, index);
}

/** An event without its closing blank line counts when it is all there. */
function isWhole({ data }: SseEvent): boolean {
  return parseJson(data) !== undefined;
}
