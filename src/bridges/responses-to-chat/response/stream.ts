// Responses events → chat chunks, one by one as they come. HANDLERS has one row for each event type that chat can
// express. Other events are skipped.

import { GatewayError } from "../../../lib/errors.ts";
import { openSseParser, type SseEvent } from "../../../lib/sse/sse-parser.ts";
import { isObject, parseJson } from "../../../lib/json/json.ts";
import type { BridgeContext } from "../context.ts";
import { blameUpstream, type ChatError, convertFailure, writeError } from "../errors.ts";
import type { AnswerOutput, AnswerStream, StreamFault } from "../../common/answer-stream.ts";
import type { Json } from "../../common/strict-json.ts";
import { readAnswer, readCall } from "./chat-answer.ts";
import { writeExtras } from "./completion.ts";
import {
  addMessage,
  convertInputDelta,
  convertInputDone,
  convertReasoningDelta,
  convertRefusalDelta,
  convertTextDelta,
  openCall,
  writeOpening,
  writeUnsentCall,
  writeUnsentMessage,
  writeUnsentReasoning,
} from "./deltas.ts";
import { OutputItem, Reply, ReplyError } from "./events.ts";
import { chooseFinishReason, convertUsage } from "./finish-reason.ts";
import {
  addItemState,
  findItem,
  keepFinished,
  noteIdentity,
  openState,
  type StreamState,
  writeDelta,
  writeFinish,
  writeUsage,
} from "./state.ts";

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
  "response.completed": convertLastEvent,
  "response.incomplete": convertLastEvent,
  "response.failed": convertFailedEvent,
  "response.cancelled": convertFailedEvent,
  error: convertErrorEvent,
};

/** These come before the model begins to answer. The status is held until another event comes. */
const HELD_TYPES = new Set([
  "response.created",
  "response.in_progress",
  "response.queued",
  "response.failed",
  "response.cancelled",
  "error",
]);

const DONE = "data: [DONE]\n\n";

export function openChatStream(context: BridgeContext): AnswerStream {
  const stream = openState(context);
  const splitter = openSseParser();
  const convertEnd = (fault: StreamFault = CLOSED): string => {
    const text = fault === CLOSED ? convertEvents(stream, splitter.end().filter(isWhole)) : "";
    if (isOver(stream)) return text;
    return text + fail(stream, blameUpstream(fault.status, "upstream_closed", fault.message));
  };
  return {
    push: (chunk) => {
      stream.receivedBytes += chunk.length;
      return emit(stream, () => convertEvents(stream, splitter.push(chunk)));
    },
    end: (fault) => emit(stream, () => convertEnd(fault)),
    idle: () => emit(stream, () => (stream.phase === "open" ? ": keepalive\n\n" : "")),
  };
}

const CLOSED: StreamFault = {
  status: 502,
  message: "The upstream closed the stream before its answer was complete.",
};
const MALFORMED = blameUpstream(502, "upstream_invalid", "The upstream sent an event that is not JSON.");

function emit(stream: StreamState, convert: () => string): AnswerOutput {
  let text = "";
  if (!isOver(stream)) {
    try {
      text = convert();
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      text = fail(stream, blameUpstream(error.status, "upstream_invalid", error.message));
    }
  }
  const { phase, refusal } = stream;
  return { text, phase, refusal: refusal && { status: refusal.status, body: writeError(refusal.error) } };
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
  // Events without a handler repeat whole texts and tool lists. They are not even parsed.
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

/** Null for an event without a handler. Some relays send errors without a type. */
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
  keepFinished(stream, item);
  return writeUnsentItem(stream, item, event["output_index"]);
}

/** What no event has sent yet: some relays send only the last event, or calls only there. */
function writeUnsentItems(stream: StreamState, items: readonly OutputItem[]): string {
  const { roleSent, textSent, refusalSent } = stream;
  const write = (item: OutputItem, index: number): string => {
    // Some upstreams change the ids and indices of items in the last event. Call ids never change.
    const named = item.call_id !== "" && readCall(item) !== null;
    if (named) return writeUnsentCall(stream, stream.byCallId.get(item.call_id), item, index);
    const sent = item.type === "message" ? textSent || refusalSent : roleSent;
    return sent ? "" : writeUnsentItem(stream, item, index);
  };
  return items.map(write).join("");
}

/** The part of an item that has not been sent yet. */
function writeUnsentItem(stream: StreamState, item: OutputItem, index: unknown): string {
  const found = findItem(stream, item.id, index);
  const entry = found?.type === item.type ? found : undefined;
  if (item.type === "message") {
    return writeUnsentMessage(stream, entry ?? addMessage(stream, item.phase, item.id, index), item);
  }
  if (item.type === "reasoning") {
    return writeUnsentReasoning(
      stream,
      entry ?? addItemState(stream, { type: "reasoning" }, item.id, index),
      item,
    );
  }
  return writeUnsentCall(stream, entry, item, index);
}

/** An event without its closing blank line counts if its JSON is complete. */
function isWhole({ data }: SseEvent): boolean {
  return parseJson(data) !== undefined;
}

function convertLastEvent(stream: StreamState, event: Json): string {
  const reply = Reply.parse(isObject(event["response"]) ? event["response"] : {});
  if (reply.status === "failed" || reply.status === "cancelled") return convertFailedEvent(stream, event);
  const incomplete = event["type"] === "response.incomplete";
  const status = incomplete ? "incomplete" : reply.status;
  noteIdentity(stream, reply);
  const { context } = stream;
  const output = reply.output.length > 0 ? reply.output : stream.finished;
  const missed = writeUnsentItems(stream, output);
  const { annotations } = readAnswer(output, context);
  const cited = annotations.length === 0 ? "" : writeDelta(stream, JSON.stringify({ annotations }));
  const finish = chooseFinishReason({ ...reply, status }, stream.calls > 0, context);
  stream.phase = "done";
  return [
    missed,
    writeEmptyText(stream),
    cited,
    writeFinish(stream, finish, writeExtras(reply)),
    context.includeUsage ? writeUsage(stream, reply.usage === null ? null : convertUsage(reply.usage)) : "",
    DONE,
  ].join("");
}

/** An answer without any text is sent as an empty text. */
function writeEmptyText(stream: StreamState): string {
  if (stream.textSent || stream.refusalSent || stream.calls > 0) return "";
  return (
    writeOpening(stream, '{"role":"assistant","content":"","refusal":null}') ||
    writeDelta(stream, '{"content":""}')
  );
}

/** In `response.failed` the error is inside the response. */
function convertFailedEvent(stream: StreamState, event: Json): string {
  const { response } = event;
  return failWith(stream, isObject(response) ? response["error"] : null);
}

/** In an `error` event the error is the event or a field of it. */
function convertErrorEvent(stream: StreamState, event: Json): string {
  const { error } = event;
  return failWith(stream, isObject(error) ? error : { ...event, type: "" });
}

function failWith(stream: StreamState, error: unknown): string {
  return fail(stream, convertFailure(ReplyError.parse(isObject(error) ? error : {}), stream.context));
}

/** An HTTP error while no head has been sent, otherwise an error event that ends the stream. */
function fail(stream: StreamState, refusal: ChatError): string {
  stream.refusal = refusal;
  if (stream.phase === "held") {
    stream.phase = "refused";
    return "";
  }
  stream.phase = "broken";
  return `data: ${writeError(refusal.error)}\n\n`;
}
