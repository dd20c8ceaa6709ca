// Responses events → chat chunks, one by one as they come. One row of the table
// tells one kind of event; events without a row say nothing that chat has words for.

import { GatewayError } from "../../../lib/errors.ts";
import { openSseSplitter, type SseEvent } from "../../../lib/sse/sse-parser.ts";
import { isObject, parseJson } from "../../../lib/json/json.ts";
import { readCall } from "./tool-call.ts";
import { openCall, tellInputDelta, tellInputDone, tellWholeCall } from "./tool-call-events.ts";
import type { BridgeContext } from "../context.ts";
import { complete, fail, failError, failResponse } from "./terminal.ts";
import { blameUpstream, type Refusal, writeError } from "../errors.ts";
import { Item, Reply } from "./events.ts";
import type { Json } from "../json.ts";
import {
  addMessage,
  tellMessage,
  tellReasoningDelta,
  tellRefusalDelta,
  tellTextDelta,
  tellWholeReasoning,
} from "./text-deltas.ts";
import { addEntry, findEntry, identify, openState, type Phase, type Stream } from "./state.ts";

export interface Emitted {
  /** To send now. Empty while `held`, when refused, and when the event has no counterpart in chat. */
  readonly text: string;
  /** held: send no head yet. open: the head may leave. done: [DONE] is in the text. broken: an
   *  error frame is, and nothing may follow. refused: answer the refusal instead of a stream. */
  readonly phase: Phase;
  /** The error, when broken or refused. */
  readonly refusal: { readonly status: number; readonly body: string } | null;
}

export interface ChatStream {
  push(chunk: Uint8Array): Emitted;
  /** The upstream has ended; with a fault when the gateway knows why. */
  end(fault?: Refusal): Emitted;
}

type Row = (stream: Stream, event: Json) => string;

const ROWS: Readonly<Record<string, Row>> = {
  "response.created": meet,
  "response.in_progress": meet,
  "response.queued": meet,
  "response.output_item.added": addItem,
  "response.output_item.done": finishItem,
  "response.output_text.delta": tellTextDelta,
  "response.refusal.delta": tellRefusalDelta,
  "response.reasoning_summary_text.delta": tellReasoningDelta,
  "response.reasoning_text.delta": tellReasoningDelta,
  "response.function_call_arguments.delta": tellInputDelta,
  "response.function_call_arguments.done": tellInputDone,
  "response.custom_tool_call_input.delta": tellInputDelta,
  "response.custom_tool_call_input.done": tellInputDone,
  "response.completed": (stream, event) => complete(stream, event, tellItems),
  "response.incomplete": (stream, event) => complete(stream, event, tellItems),
  "response.failed": failResponse,
  "response.cancelled": failResponse,
  error: failError,
};

/** Come before the model has begun to answer: the status is held until another event comes. */
const PRELUDE = new Set([
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
  const tellEnd = (fault: Refusal | undefined): string => {
    const text = fault === undefined ? tellEvents(stream, splitter.end().filter(isWhole)) : "";
    return isOver(stream) ? text : text + fail(stream, fault ?? CLOSED);
  };
  return {
    push: (chunk) => emit(stream, () => tellEvents(stream, splitter.push(chunk))),
    end: (fault) => emit(stream, () => tellEnd(fault)),
  };
}

const CLOSED = blameUpstream(
  502,
  "upstream_closed",
  "The upstream closed the stream before its answer was complete.",
);
const MALFORMED = blameUpstream(502, "upstream_invalid", "The upstream sent an event that is not JSON.");

function emit(stream: Stream, tell: () => string): Emitted {
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

function isOver(stream: Stream): boolean {
  return stream.phase !== "held" && stream.phase !== "open";
}

function tellEvents(stream: Stream, events: readonly SseEvent[]): string {
  let text = "";
  for (const event of events) {
    if (isOver(stream)) break;
    text += tellEvent(stream, event);
  }
  return text;
}

function tellEvent(stream: Stream, sse: SseEvent): string {
  const { name, data } = sse;
  // Whole texts and tool lists come again and again in events that say nothing new: those are not even parsed.
  if (name.startsWith("response.") && !Object.hasOwn(ROWS, name)) return "";
  const event = parseJson(data);
  if (event === undefined) return data === "[DONE]" ? "" : fail(stream, MALFORMED);
  return isObject(event) ? tellParsed(stream, event, sse) : "";
}

function tellParsed(stream: Stream, event: Json, sse: SseEvent): string {
  const type = nameRow(event, sse);
  const row = type === null ? undefined : ROWS[type];
  if (type === null || row === undefined) return "";
  if (stream.phase === "held" && !PRELUDE.has(type)) stream.phase = "open";
  return row(stream, event);
}

/** Null for an event without a row. Relays send errors that don't say that they are. */
function nameRow(event: Json, { name }: SseEvent): string | null {
  const { type, error } = event;
  if (typeof type === "string" && Object.hasOwn(ROWS, type)) return type;
  return name === "error" || (type === undefined && isObject(error)) ? "error" : null;
}

function meet(stream: Stream, event: Json): string {
  if (stream.identity === null && isObject(event["response"]))
    identify(stream, Reply.parse(event["response"]));
  return "";
}

function addItem(stream: Stream, event: Json): string {
  if (!isObject(event["item"])) return "";
  const item = Item.parse(event["item"]);
  const index = event["output_index"];
  if (item.type === "message") addMessage(stream, item.phase, item.id, index);
  else if (item.type === "reasoning") addEntry(stream, { type: "reasoning" }, item.id, index);
  else return openCall(stream, item, index)?.text ?? "";
  return "";
}

function finishItem(stream: Stream, event: Json): string {
  if (!isObject(event["item"])) return "";
  const item = Item.parse(event["item"]);
  stream.finished.push(item);
  return tellItem(stream, item, event["output_index"]);
}

function tellItems(stream: Stream, items: readonly Item[]): string {
  const { opened, spoken, refused } = stream;
  const tell = (item: Item, index: number): string => {
    // Ids and places of items may have changed since they were told; ids of calls do not.
    const named = item.call_id !== "" && readCall(item) !== null;
    if (named) return tellWholeCall(stream, stream.byCallId.get(item.call_id), item, index);
    const told = item.type === "message" ? spoken || refused : opened;
    return told ? "" : tellItem(stream, item, index);
  };
  return items.map(tell).join("");
}

/** What of an item has not been told yet. */
function tellItem(stream: Stream, item: Item, index: unknown): string {
  const found = findEntry(stream, item.id, index);
  const entry = found?.type === item.type ? found : undefined;
  if (item.type === "message") {
    return tellMessage(stream, entry ?? addMessage(stream, item.phase, item.id, index), item);
  }
  if (item.type === "reasoning") {
    return tellWholeReasoning(stream, entry ?? addEntry(stream, { type: "reasoning" }, item.id, index), item);
  }
  return tellWholeCall(stream, entry, item, index);
}

/** An event without its closing blank line counts when it is all there. */
function isWhole({ data }: SseEvent): boolean {
  return parseJson(data) !== undefined;
}
