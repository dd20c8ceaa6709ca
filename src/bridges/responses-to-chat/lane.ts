// The short way for the bulk of a stream: the next delta of the item that spoke
// last. Its JSON string is passed on as it came, without parsing the event. What
// doesn't look exactly so (spaces, another item, a member of its name elsewhere) goes the long way.

import type { Json } from "./json.ts";
import { findEventEntry, type Stream } from "./state.ts";

export interface Lane {
  /** How the event begins. */
  readonly opening: string;
  /** Of which item and part it is: these stand somewhere in the event, in whatever order its platform writes them. */
  readonly members: readonly string[];
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
  const members = ["item_id", "output_index", "content_index", "summary_index"]
    .filter((name) => name in event)
    .map((name) => `"${name}":${JSON.stringify(event[name])}`);
  return {
    opening: `event: ${type}\ndata: {`,
    members,
    before: frame.start + (opening ?? `${entry.before}"`),
    after: (opening === undefined ? `"${entry.after}` : '"}') + frame.end,
  };
}

/** Nowhere but where a member is named: inside of a string its quotes would be escaped. */
const DELTA = '"delta":"';
const STRING_END = /(?:[^"\\]|\\.)*"/y;
const NEWLINE = 10;
const COMMA = 44;
const CLOSE_BRACE = 125;

/** Tells the events from a place in a text on as far as they go the short way; `end` is where they do no more. */
export function tellInLane(lane: Lane, text: string, from: number): { told: string; end: number } {
  let told = "";
  let at = from;
  while (text.startsWith(lane.opening, at)) {
    const json = {
      text,
      start: at + lane.opening.length - 1,
      end: text.indexOf("\n", at + lane.opening.length),
    };
    const delta = json.end < 0 || text.charCodeAt(json.end + 1) !== NEWLINE ? null : readDelta(lane, json);
    if (delta === null) break;
    told += lane.before + delta + lane.after;
    at = json.end + 2;
  }
  return { told, end: at };
}

/** Where an event's JSON stands. */
interface Place {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** The delta as it stands in the event; null: the long way. */
function readDelta({ members }: Lane, json: Place): string | null {
  const { text, start, end } = json;
  const named = text.indexOf(DELTA, start);
  if (named < 0 || named > end || text.charCodeAt(end - 1) !== CLOSE_BRACE) return null;
  const from = named + DELTA.length;
  const again = text.indexOf(DELTA, from);
  if ((again >= 0 && again < end) || !members.every((member) => isMember(json, member))) return null;
  STRING_END.lastIndex = from;
  const to = STRING_END.test(text) ? STRING_END.lastIndex - 1 : from;
  return to === from || to > end ? null : text.slice(from, to);
}

function isMember({ text, start, end }: Place, member: string): boolean {
  const at = text.indexOf(member, start);
  const next = text.charCodeAt(at + member.length);
  return at >= 0 && at < end && (next === COMMA || next === CLOSE_BRACE);
}
