// Which conversation a request belongs to, if the request shows it, and which channel serves each
// conversation. A conversation stays on its channel because its prompt cache is there. Memory is bounded.

import { readString, type Span } from "../../lib/json/scanner.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { getField, getText, parseJson } from "../../lib/json/json.ts";
import type { ScannedBody } from "../../dialects/prompt/prompt.ts";
import { readMember } from "./client.ts";

/** The session that the client names, or else what the body shows. Null if nothing identifies a conversation. */
export function nameConversation(
  { session, inferred }: ClientIdentity,
  body: ScannedBody | null,
): string | null {
  if (session !== undefined && inferred !== true) return session;
  return body === null ? null : readFromBody(body);
}

/** Fields with the beginning of a prompt, in any dialect. */
const PROMPT_STARTS = ["system", "instructions", "systemInstruction", "system_instruction"];
const TURNS = ["messages", "input", "contents"];

function readFromBody({ bytes, scan }: ScannedBody): string | null {
  const metadata = readMember({ bytes, scan }, "metadata");
  const user = metadata && getField(parseJson(metadata), "user_id");
  const key = scan.get("prompt_cache_key");
  const name = (getText(user) || (key && readString(bytes, key))) ?? "";
  return name === "" ? hashBeginning({ bytes, scan }) : shorten(name);
}

const MAX_HASHED_BYTES = 8 * 1024;
/** Includes the user's first message: what comes before it is the same for everybody. */
const MAX_FIRST_TURNS = 4;
const ROLE = /"role"\s*:\s*"(\w+)"/;

function hashBeginning(body: ScannedBody): string | null {
  const { bytes, scan } = body;
  const turns = TURNS.find((name) => scan.get(name) !== undefined);
  if (turns === undefined) return null;
  const opening = PROMPT_STARTS.flatMap((name) => scan.get(name) ?? []);
  let hash = 0n;
  for (const span of [...opening, ...firstTurns(body, turns)]) {
    const end = Math.min(span.end, span.start + MAX_HASHED_BYTES);
    hash = Bun.hash.wyhash(bytes.subarray(span.start, end), hash);
  }
  return `#${hash.toString(36)}`;
}

function firstTurns({ bytes, scan }: ScannedBody, name: string): Span[] {
  const { starts = [], parts = [] } = scan.lists.get(name) ?? {};
  const turns = starts
    .slice(0, MAX_FIRST_TURNS)
    .map((start, at) => ({ start, end: start + (parts[at]?.length ?? 0) }));
  // A list that could not be divided counts by its beginning.
  if (turns.length === 0) return [scan.get(name) ?? []].flat();
  const user = turns.findIndex((turn) => isUser(bytes.subarray(turn.start, turn.end)));
  return user < 0 ? turns : turns.slice(0, user + 1);
}

function isUser(turn: Uint8Array): boolean {
  const [, role = "user"] = ROLE.exec(asBuffer(turn).toString("latin1", 0, MAX_HASHED_BYTES)) ?? [];
  return role === "user";
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
