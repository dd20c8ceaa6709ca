// Tool calls as deltas of chat: the first names the call, the others bring its
// input bit by bit. A legacy answer has room for the first call only.

import { readCall } from "./tool-call.ts";
import { writeDelta } from "./chunks.ts";
import type { Item } from "./events.ts";
import type { Json } from "../json.ts";
import { writeCall } from "./completion.ts";
import { openWith } from "./text-deltas.ts";
import { addEntry, type Entry, findEventEntry, type Stream } from "./state.ts";

/** Names the call. Its input is left for later, even if some upstream has it already. */
export function openCall(stream: Stream, item: Item, index: unknown): { entry: Entry; text: string } | null {
  const call = readCall(item);
  if (call === null) return null;
  const place = stream.calls++;
  const { legacy } = stream.context;
  const field = call.kind === "function" ? "arguments" : "input";
  const entry = addEntry(
    stream,
    {
      type: item.type,
      muted: legacy && place > 0,
      before: legacy
        ? '{"function_call":{"arguments":'
        : `{"tool_calls":[{"index":${place},"${call.kind}":{"${field}":`,
      after: legacy ? "}}" : "}}]}",
    },
    item.id,
    index,
  );
  stream.byCallId.set(call.id, entry);
  if (entry.muted) return { entry, text: "" };
  const named = writeCall({ ...call, input: "" });
  const told = legacy
    ? { function_call: { name: call.name, arguments: "" } }
    : { tool_calls: [{ index: place, id: call.id, type: call.kind, ...named }] };
  if (stream.opened) return { entry, text: writeDelta(stream.frame, JSON.stringify(told)) };
  const first = JSON.stringify({ role: "assistant", content: null, ...told, refusal: null });
  return { entry, text: openWith(stream, first) };
}

export function tellInputDelta(stream: Stream, event: Json): string {
  return tellInput(stream, findEventEntry(stream, event), event["delta"]);
}

/** The whole input, for upstreams that send no deltas of it. */
export function tellInputDone(stream: Stream, event: Json): string {
  const entry = findEventEntry(stream, event);
  return entry?.told === true ? "" : tellInput(stream, entry, event["arguments"] ?? event["input"]);
}

export function tellWholeCall(stream: Stream, entry: Entry | undefined, item: Item, index: unknown): string {
  if (entry?.told === true) return "";
  const input = readCall(item)?.input;
  if (entry !== undefined) return tellInput(stream, entry, input);
  const opened = openCall(stream, item, index);
  return opened === null ? "" : opened.text + tellInput(stream, opened.entry, input);
}

/** A call that has no name yet waits for the end of its item, which tells it whole. */
function tellInput(stream: Stream, entry: Entry | undefined, input: unknown): string {
  if (entry === undefined || entry.before === "" || typeof input !== "string" || input === "") return "";
  entry.told = true;
  if (entry.muted) return "";
  return writeDelta(stream.frame, entry.before + JSON.stringify(input) + entry.after);
}
