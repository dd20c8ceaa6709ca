// The end of a stream: a finish chunk, usage and [DONE], or an error. It is an HTTP error while no head has been sent.

import { isObject } from "../../../lib/json/json.ts";
import { readAnswer } from "./chat-answer.ts";
import { DONE, writeDelta, writeFinish, writeUsage } from "./chunks.ts";
import { convertFailure, type ChatError, writeError } from "../errors.ts";
import { ReplyError, type OutputItem, Reply } from "./events.ts";
import { convertUsage, chooseFinishReason } from "./finish-reason.ts";
import type { Json } from "../strict-json.ts";
import { writeExtras } from "./completion.ts";
import { writeFirstChunk } from "./text-deltas.ts";
import { noteIdentity, type StreamState } from "./state.ts";

/** Writes what no event has sent: some relays send only the last event, or calls only there. */
export type WriteItems = (stream: StreamState, items: readonly OutputItem[]) => string;

export function convertLastEvent(stream: StreamState, event: Json, tellItems: WriteItems): string {
  const reply = Reply.parse(isObject(event["response"]) ? event["response"] : {});
  if (reply.status === "failed" || reply.status === "cancelled") return convertFailedEvent(stream, event);
  const incomplete = event["type"] === "response.incomplete";
  const status = incomplete ? "incomplete" : reply.status;
  noteIdentity(stream, reply);
  const { context, frame } = stream;
  const output = reply.output.length > 0 ? reply.output : stream.finished;
  const missed = tellItems(stream, output);
  const { annotations } = readAnswer(output, context);
  const cited = annotations.length === 0 ? "" : writeDelta(frame, JSON.stringify({ annotations }));
  const finish = chooseFinishReason({ ...reply, status }, stream.calls > 0, context);
  stream.phase = "done";
  return [
    missed,
    writeEmptyText(stream),
    cited,
    writeFinish(frame, finish, writeExtras(reply)),
    context.includeUsage ? writeUsage(frame, reply.usage === null ? null : convertUsage(reply.usage)) : "",
    DONE,
  ].join("");
}

/** Clients expect an empty text rather than no text. */
function writeEmptyText(stream: StreamState): string {
  if (stream.textSent || stream.refusalSent || stream.calls > 0) return "";
  if (stream.roleSent) return writeDelta(stream.frame, '{"content":""}');
  return writeFirstChunk(stream, '{"role":"assistant","content":"","refusal":null}');
}

/** In `response.failed` the error is inside the response. */
export function convertFailedEvent(stream: StreamState, event: Json): string {
  const { response } = event;
  return failWith(stream, isObject(response) ? response["error"] : null);
}

/** In an `error` event the error is the event or a field of it. */
export function convertErrorEvent(stream: StreamState, event: Json): string {
  const { error } = event;
  return failWith(stream, isObject(error) ? error : { ...event, type: "" });
}

function failWith(stream: StreamState, error: unknown): string {
  return fail(stream, convertFailure(ReplyError.parse(isObject(error) ? error : {}), stream.context));
}

/** An HTTP error while no head has been sent, otherwise an error event that ends the stream. */
export function fail(stream: StreamState, refusal: ChatError): string {
  stream.refusal = refusal;
  if (stream.phase === "held") {
    stream.phase = "refused";
    return "";
  }
  stream.phase = "broken";
  return `data: ${writeError(refusal.error)}\n\n`;
}
