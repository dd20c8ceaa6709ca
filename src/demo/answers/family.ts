// What each wire format's file answers: how its request is read, and how a turn
// is written, whole and as a stream.

import type { Ask, Turn } from "./turn.ts";
import type { Json } from "../json.ts";

export type FamilyName = "messages" | "responses" | "chat" | "content";

export interface Family {
  readonly name: FamilyName;
  readAsk(body: unknown): Ask;
  writeReply(turn: Turn, body: unknown): Json;
  /** The stream, event by event, each framed as it goes on the wire. */
  writeEvents(turn: Turn, body: unknown): string[];
}

/** An event whose name is its payload's type, as messages and responses have it. */
export function writeNamedEvent(payload: Json & { readonly type: string }): string {
  return `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;
}

/** Cuts a text into about three parts, as arguments are streamed. */
export function cutText(text: string): string[] {
  const length = Math.max(1, Math.ceil(text.length / 3));
  return text.match(new RegExp(`.{1,${length}}`, "gsu")) ?? [];
}
