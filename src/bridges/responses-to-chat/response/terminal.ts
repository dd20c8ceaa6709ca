// How a stream ends: with a finish chunk, usage and [DONE]; or as an error, which
// is an HTTP error as long as no head has left.

import { isObject } from "../../../lib/json/json.ts";
import { readAnswer } from "./tool-call.ts";
import { DONE, writeDelta, writeFinish, writeUsage } from "./chunks.ts";
import { judgeFailure, type Refusal, writeError } from "../errors.ts";
import { Failure, type Item, Reply } from "./events.ts";
import { convertUsage, nameFinish } from "./finish-reason.ts";
import type { Json } from "../json.ts";
import { writeExtras } from "./completion.ts";
import { openWith } from "./text-deltas.ts";
import { identify, type Stream } from "./state.ts";

/** Tells what no event has told: some relays send nothing but the end, some tell calls only there. */
export type TellItems = (stream: Stream, items: readonly Item[]) => string;

export function complete(stream: Stream, event: Json, tellItems: TellItems): string {
  const reply = Reply.parse(isObject(event["response"]) ? event["response"] : {});
  if (reply.status === "failed" || reply.status === "cancelled") return failResponse(stream, event);
  const incomplete = event["type"] === "response.incomplete";
  const status = incomplete ? "incomplete" : reply.status;
  identify(stream, reply);
  const { context, frame } = stream;
  const output = reply.output.length > 0 ? reply.output : stream.finished;
  const missed = tellItems(stream, output);
  const { annotations } = readAnswer(output, context);
  const cited = annotations.length === 0 ? "" : writeDelta(frame, JSON.stringify({ annotations }));
  const finish = nameFinish({ ...reply, status }, stream.calls > 0, context);
  stream.phase = "done";
  return [
    missed,
    tellSilence(stream),
    cited,
    writeFinish(frame, finish, writeExtras(reply)),
    context.includeUsage ? writeUsage(frame, reply.usage === null ? null : convertUsage(reply.usage)) : "",
    DONE,
  ].join("");
}

/** An answer without a word is an empty text, not none. */
function tellSilence(stream: Stream): string {
  if (stream.spoken || stream.refused || stream.calls > 0) return "";
  if (stream.opened) return writeDelta(stream.frame, '{"content":""}');
  return openWith(stream, '{"role":"assistant","content":"","refusal":null}');
}

/** `response.failed` bears the error in its response. */
export function failResponse(stream: Stream, event: Json): string {
  const { response } = event;
  return failWith(stream, isObject(response) ? response["error"] : null);
}

/** `error` bears it inside, or is it. */
export function failError(stream: Stream, event: Json): string {
  const { error } = event;
  return failWith(stream, isObject(error) ? error : { ...event, type: "" });
}

function failWith(stream: Stream, error: unknown): string {
  return fail(stream, judgeFailure(Failure.parse(isObject(error) ? error : {}), stream.context));
}

/** As an HTTP error while no head has left, else as an error frame that nothing follows. */
export function fail(stream: Stream, refusal: Refusal): string {
  stream.refusal = refusal;
  if (stream.phase === "held") {
    stream.phase = "refused";
    return "";
  }
  stream.phase = "broken";
  return `data: ${writeError(refusal.error)}\n\n`;
}
