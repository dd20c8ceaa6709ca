// The short way for the bulk of a stream: the next delta of the item that spoke
// last. Its JSON string is passed on as it came, without parsing the event. What
// doesn't look exactly so (another order of fields, an escape) goes the long way.

import type { Json } from "./json.ts";
import { findEventEntry, type Stream } from "./state.ts";

export interface Lane {
  /** The `event:` field. */
  readonly name: string;
  /** What stands before the delta's text, and nowhere else: inside a JSON string its quotes would be escaped. */
  readonly needle: string;
  readonly before: string;
  readonly after: string;
}

const OPENINGS: Readonly<Record<string, string>> = {
  "response.output_text.delta": '{"content":"',
  "response.refusal.delta": '{"refusal":"',
  "response.reasoning_summary_text.delta": '{"reasoning_content":"',
  "response.reasoning_text.delta": '{"reasoning_content":"',
};

/** The lane of deltas like this one, which has been told the long way. */
export function openLane(stream: Stream, type: string, event: Json): Lane | null {
  const entry = findEventEntry(stream, event);
  const { frame } = stream;
  if (entry === undefined || !entry.told || entry.muted || frame.logprobs) return null;
  const opening = OPENINGS[type];
  const place = ["item_id", "output_index", "content_index", "summary_index"]
    .filter((name) => name in event)
    .map((name) => `"${name}":${JSON.stringify(event[name])}`);
  return {
    name: type,
    needle: `${place.join(",")},"delta":"`,
    before: frame.start + (opening ?? `${entry.before}"`),
    after: (opening === undefined ? `"${entry.after}` : '"}') + frame.end,
  };
}

/** Null: the long way. */
export function tellInLane(lane: Lane, data: string): string | null {
  const found = data.indexOf(lane.needle);
  if (found < 0) return null;
  const start = found + lane.needle.length;
  const text = data.slice(start, data.indexOf('"', start));
  if (text === "" || text.includes("\\") || !data.endsWith("}")) return null;
  return lane.before + text + lane.after;
}
