// Which conversation a request belongs to, as far as its client tells, and which
// channel each conversation is on: prompt caches live there. Bounded memory.

import { findFirstElements, readString, scanTopLevel, type Span } from "../../lib/json/json-spans.ts";
import { fieldOf, parseJson } from "../../lib/json/json.ts";

const HEADERS = [
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "x-session-id",
  "x-session-affinity",
  "conversation-id",
  "conversation_id",
  "thread-id",
  "thread_id",
];

/** Null where nothing tells conversations apart. */
export function readConversation(
  field: (name: string) => string | undefined,
  body: Uint8Array | null,
): string | null {
  for (const name of HEADERS) {
    const value = field(name);
    if (value !== undefined && value !== "") return shorten(value);
  }
  return body === null ? null : readFromBody(body);
}

/** What stands at the beginning of a prompt, in any dialect. */
const OPENINGS = ["system", "instructions", "systemInstruction", "system_instruction"];
const TURNS = ["messages", "input", "contents"];
const NAMES = ["metadata", "prompt_cache_key", ...OPENINGS, ...TURNS];

function readFromBody(body: Uint8Array): string | null {
  const scan = scanTopLevel(body, NAMES);
  if (scan.kind !== "object") return null;
  const { spans } = scan;
  const metadata = spans.get("metadata");
  const told = (metadata && readUserId(body, metadata)) ?? readText(body, spans.get("prompt_cache_key"));
  if (told !== null && told !== "") return shorten(told);
  return hashBeginning(body, spans);
}

const METADATA_LIMIT = 16 * 1024;

/** Claude Code writes JSON into it, in which the session has a place of its own. */
function readUserId(body: Uint8Array, span: Span): string | null {
  if (span.end - span.start > METADATA_LIMIT) return null;
  const id = fieldOf(parseJson(decode(body, span)), "user_id");
  if (typeof id !== "string") return null;
  const session = id.startsWith("{") ? fieldOf(parseJson(id), "session_id") : undefined;
  return typeof session === "string" ? session : id;
}

function readText(body: Uint8Array, span: Span | undefined): string | null {
  return span === undefined ? null : readString(body, span);
}

const HASHED_BYTES = 8 * 1024;
/** The first turns up to the user's own words: what comes before them is the same for everyone. */
const FIRST_TURNS = 4;

function hashBeginning(body: Uint8Array, spans: ReadonlyMap<string, Span>): string | null {
  const turns = TURNS.flatMap((name) => spans.get(name) ?? [])[0];
  if (turns === undefined) return null;
  const opening = OPENINGS.flatMap((name) => spans.get(name) ?? []);
  let hash = 0n;
  for (const span of [...opening, ...firstTurns(body, turns)]) {
    const end = Math.min(span.end, span.start + HASHED_BYTES);
    hash = Bun.hash.wyhash(body.subarray(span.start, end), hash);
  }
  return `#${hash.toString(36)}`;
}

function firstTurns(body: Uint8Array, turns: Span): Span[] {
  const elements = findFirstElements(body, turns, FIRST_TURNS);
  const users = elements.findIndex((span) => {
    const scan = scanTopLevel(body.subarray(span.start, span.end), ["role"]);
    const role = scan.kind === "object" ? scan.spans.get("role") : undefined;
    const said = role && readString(body.subarray(span.start, span.end), role);
    return said === "user" || said === undefined;
  });
  // Text alone is a prompt of one turn.
  if (elements.length === 0) return [turns];
  return users < 0 ? elements : elements.slice(0, users + 1);
}

function decode(body: Uint8Array, span: Span): string {
  return new TextDecoder().decode(body.subarray(span.start, span.end));
}

const LONGEST_NAME = 64;

function shorten(name: string): string {
  return name.length <= LONGEST_NAME ? name : `#${Bun.hash.wyhash(name).toString(36)}`;
}

interface Seat {
  readonly channel: string;
  readonly at: number;
}

/** No prompt cache lives longer. */
const KEPT_MS = 60 * 60_000;
const SESSIONS_KEPT = 20_000;

export class Conversations {
  /** The one that was used the longest ago comes first. */
  readonly #seats = new Map<string, Seat>();

  get size(): number {
    return this.#seats.size;
  }

  find(session: string, now: number): string | null {
    const seat = this.#seats.get(session);
    return seat === undefined || now - seat.at > KEPT_MS ? null : seat.channel;
  }

  keep(session: string, channel: string, now: number): void {
    this.#seats.delete(session);
    this.#seats.set(session, { channel, at: now });
    for (const [oldest, { at }] of this.#seats) {
      if (this.#seats.size <= SESSIONS_KEPT && now - at <= KEPT_MS) break;
      this.#seats.delete(oldest);
    }
  }
}
