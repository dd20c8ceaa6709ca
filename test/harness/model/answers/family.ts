// The interface of the wire formats: each reads its requests and writes completions, whole and as a stream.

import type { ModelRequest, Completion } from "./completion.ts";
import type { Json } from "../json.ts";

export type FamilyName = "messages" | "responses" | "chat" | "content";

export interface Family {
  readonly name: FamilyName;
  readRequest(body: unknown): ModelRequest;
  writeReply(completion: Completion, body: unknown): Json;
  /** Writes the stream as a list of events, each framed for the wire. */
  writeEvents(completion: Completion, body: unknown): string[];
}

/** Writes an event named after its payload's type, as in messages and responses. */
export function writeNamedEvent(payload: Json & { readonly type: string }): string {
  return `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;
}

/** Cuts a text into about three parts, because arguments are streamed in parts. */
export function cutText(text: string): string[] {
  const length = Math.max(1, Math.ceil(text.length / 3));
  return text.match(new RegExp(`.{1,${length}}`, "gsu")) ?? [];
}
