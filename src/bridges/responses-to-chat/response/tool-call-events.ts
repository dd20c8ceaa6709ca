// Tool calls as chat deltas. The first delta names the call, the others carry pieces of its input. A legacy answer can
// carry the first call only.

import { readCall } from "./chat-answer.ts";
import { writeDelta } from "./chunks.ts";
import type { OutputItem } from "./events.ts";
import type { Json } from "../strict-json.ts";
import { writeCall } from "./completion.ts";
import { writeFirstChunk } from "./text-deltas.ts";
import { addItemState, type ItemState, findEventItem, type StreamState } from "./state.ts";

/** Writes the name of the call. Its input follows, even if the upstream sent it along. */
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
  const entry = addItemState(
    stream,
    {
      type: item.type,
      muted: legacy && position > 0,
      before: legacy
        ? '{"function_call":{"arguments":'
        : `{"tool_calls":[{"index":${position},"${call.kind}":{"${field}":`,
      after: legacy ? "}}" : "}}]}",
    },
    item.id,
    index,
  );
  stream.byCallId.set(call.id, entry);
  if (entry.muted) return { entry, text: "" };
  const named = writeCall({ ...call, input: "" });
  const delta = legacy
    ? { function_call: { name: call.name, arguments: "" } }
    : { tool_calls: [{ index: position, id: call.id, type: call.kind, ...named }] };
  if (stream.roleSent) return { entry, text: writeDelta(stream.frame, JSON.stringify(delta)) };
  const first = JSON.stringify({ role: "assistant", content: null, ...delta, refusal: null });
  return { entry, text: writeFirstChunk(stream, first) };
}

export function convertInputDelta(stream: StreamState, event: Json): string {
  return writeInput(stream, findEventItem(stream, event), event["delta"]);
}

/** The whole input, for upstreams that send no deltas. */
export function convertInputDone(stream: StreamState, event: Json): string {
  const entry = findEventItem(stream, event);
  return entry?.sent === true ? "" : writeInput(stream, entry, event["arguments"] ?? event["input"]);
}

export function writeUnsentCall(
  stream: StreamState,
  entry: ItemState | undefined,
  item: OutputItem,
  index: unknown,
): string {
  if (entry?.sent === true) return "";
  const input = readCall(item)?.input;
  if (entry !== undefined) return writeInput(stream, entry, input);
  const opened = openCall(stream, item, index);
  return opened === null ? "" : opened.text + writeInput(stream, opened.entry, input);
}

/** A call without a name waits for the end of its item, which carries all of it. */
function writeInput(stream: StreamState, entry: ItemState | undefined, input: unknown): string {
  if (entry === undefined || entry.before === "" || typeof input !== "string" || input === "") return "";
  entry.sent = true;
  if (entry.muted) return "";
  return writeDelta(stream.frame, entry.before + JSON.stringify(input) + entry.after);
}
