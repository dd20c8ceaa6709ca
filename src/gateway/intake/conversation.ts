// Which conversation a request belongs to, as far as the request shows it, and which channel serves each
// conversation. A conversation stays on its channel because its prompt cache is there. Memory is bounded.

import {
  findFirstElements,
  readString,
  scanTopLevel,
  type Span,
  type Spans,
} from "../../lib/json/json-spans.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { getField, parseJson } from "../../lib/json/json.ts";

/** The session that the client names, or else what the body shows. Null if nothing identifies a conversation. */
export function nameConversation(
  { session, inferred }: ClientIdentity,
  body: Uint8Array | null,
): string | null {
  if (session !== undefined && inferred !== true) return session;
  return body === null ? null : readFromBody(body);
}

/** Fields with the beginning of a prompt, in any dialect. */
const PROMPT_STARTS = ["system", "instructions", "systemInstruction", "system_instruction"];
const TURNS = ["messages", "input", "contents"];
const NAMES = ["metadata", "prompt_cache_key", ...PROMPT_STARTS, ...TURNS];

function readFromBody(body: Uint8Array): string | null {
  const scan = scanTopLevel(body, NAMES);
  if (scan.kind !== "object") return null;
  const { spans } = scan;
  const metadata = spans.get("metadata");
  const name = (metadata && readUserId(body, metadata)) ?? readText(body, spans.get("prompt_cache_key"));
  if (name !== null && name !== "") return shorten(name);
  return hashBeginning(body, spans);
}

const MAX_METADATA_BYTES = 16 * 1024;

function readUserId(body: Uint8Array, span: Span): string | null {
  if (span.end - span.start > MAX_METADATA_BYTES) return null;
  const id = getField(parseJson(decode(body, span)), "user_id");
  return typeof id === "string" ? id : null;
}

function readText(body: Uint8Array, span: Span | undefined): string | null {
  return span === undefined ? null : readString(body, span);
}

const MAX_HASHED_BYTES = 8 * 1024;
/** Includes the user's first message: what comes before it is the same for everybody. */
const MAX_FIRST_TURNS = 4;
/** A turn that is longer counts by its beginning only. */
const MAX_SEARCHED_BYTES = 1024 * 1024;

function hashBeginning(body: Uint8Array, spans: Spans): string | null {
  const turns = TURNS.flatMap((name) => spans.get(name) ?? [])[0];
  if (turns === undefined) return null;
  const opening = PROMPT_STARTS.flatMap((name) => spans.get(name) ?? []);
  let hash = 0n;
  for (const span of [...opening, ...firstTurns(body, turns)]) {
    const end = Math.min(span.end, span.start + MAX_HASHED_BYTES);
    hash = Bun.hash.wyhash(body.subarray(span.start, end), hash);
  }
  return `#${hash.toString(36)}`;
}

function firstTurns(body: Uint8Array, turns: Span): Span[] {
  const beginning = body.subarray(0, Math.min(turns.end, turns.start + MAX_SEARCHED_BYTES));
  const elements = findFirstElements(beginning, turns, MAX_FIRST_TURNS);
  const users = elements.findIndex((span) => {
    const scan = scanTopLevel(body.subarray(span.start, span.end), ["role"]);
    const role = scan.kind === "object" ? scan.spans.get("role") : undefined;
    const name = role && readString(body.subarray(span.start, span.end), role);
    return name === "user" || name === undefined;
  });
  // A prompt that is only a text is one turn.
  if (elements.length === 0) return [turns];
  return users < 0 ? elements : elements.slice(0, users + 1);
}

function decode(body: Uint8Array, span: Span): string {
  return new TextDecoder().decode(body.subarray(span.start, span.end));
}

const MAX_NAME_LENGTH = 64;

function shorten(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `#${Bun.hash.wyhash(name).toString(36)}`;
}

interface Assignment {
  readonly channel: string;
  readonly at: number;
}

/** No prompt cache lives longer than this. */
const MAX_AGE_MS = 60 * 60_000;
const MAX_CONVERSATIONS = 20_000;

export class Conversations {
  readonly #assignments = new BoundedMap<string, Assignment>(MAX_CONVERSATIONS);

  get size(): number {
    return this.#assignments.size;
  }

  find(conversation: string, now: number): string | null {
    const assignment = this.#assignments.get(conversation);
    return assignment === undefined || now - assignment.at > MAX_AGE_MS ? null : assignment.channel;
  }

  keep(conversation: string, channel: string, now: number): void {
    this.#assignments.set(conversation, { channel, at: now });
    for (const [oldest, { at }] of this.#assignments) {
      if (now - at <= MAX_AGE_MS) break;
      this.#assignments.delete(oldest);
    }
  }
}
