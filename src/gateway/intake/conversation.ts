// A conversation stays on its channel, for the prompt cache.

import { readString, type Span } from "../../lib/json/scanner.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { getField, getText, parseJson } from "../../lib/json/json.ts";
import type { ScannedBody } from "../../dialects/prompt/prompt.ts";
import { readMember } from "./client.ts";

export function nameConversation(
  { session, inferred }: ClientIdentity,
  body: ScannedBody | null,
): string | null {
  if (session !== undefined && inferred !== true) return session;
  return body === null ? null : readFromBody(body);
}

const PROMPT_STARTS = ["system", "instructions", "systemInstruction", "system_instruction"];
const TURNS = ["messages", "input", "contents"];
const MAX_NAME_LENGTH = 64;

function readFromBody({ bytes, scan }: ScannedBody): string | null {
  const metadata = readMember({ bytes, scan }, "metadata");
  const user = metadata && getField(parseJson(metadata), "user_id");
  const key = scan.get("prompt_cache_key");
  const name = (getText(user) || (key && readString(bytes, key))) ?? "";
  if (name === "") return hashBeginning({ bytes, scan });
  return name.length <= MAX_NAME_LENGTH ? name : `#${Bun.hash.wyhash(name).toString(36)}`;
}

const MAX_HASHED_BYTES = 32 * 1024;
/** Enough for the user's first message: everybody has the same text before it. */
const MAX_FIRST_TURNS = 4;
const MAX_SEARCHED_BYTES = 1024;
const ROLE = /"role"\s*:\s*"(\w+)"/;

function hashBeginning(body: ScannedBody): string | null {
  const { bytes, scan } = body;
  const turns = TURNS.find((name) => scan.get(name) !== undefined);
  if (turns === undefined) return null;
  let hash = 0n;
  for (const name of [...PROMPT_STARTS, turns]) {
    const span = name === turns ? findFirstTurns(body, turns) : scan.get(name);
    if (span === undefined) continue;
    const end = Math.min(span.end, span.start + MAX_HASHED_BYTES);
    hash = Bun.hash.wyhash(bytes.subarray(span.start, end), hash);
  }
  return `#${hash.toString(36)}`;
}

/** A list that could not be divided counts by its beginning. */
function findFirstTurns({ bytes, scan }: ScannedBody, name: string): Span | undefined {
  const { starts = [], parts = [] } = scan.lists.get(name) ?? {};
  const [start] = starts;
  if (start === undefined) return scan.get(name);
  let end = start;
  for (let at = 0; at < Math.min(starts.length, MAX_FIRST_TURNS); at += 1) {
    const from = starts[at] ?? 0;
    end = from + (parts[at]?.length ?? 0);
    if (isUser(bytes, from, end)) break;
  }
  return { start, end };
}

/** Clients write the role before the text. */
function isUser(bytes: Uint8Array, start: number, end: number): boolean {
  const beginning = asBuffer(bytes).toString("latin1", start, Math.min(end, start + MAX_SEARCHED_BYTES));
  return (ROLE.exec(beginning)?.[1] ?? "user") === "user";
}

/** No prompt cache lives longer than this. */
const MAX_AGE_MS = 60 * 60_000;
const MIN_AGE_MS = 60_000;
const MAX_CONVERSATIONS = 20_000;

export class Conversations {
  readonly #assignments = new BoundedMap<string, { readonly channel: string; readonly at: number }>(
    MAX_CONVERSATIONS,
  );

  find(conversation: string, now: number): string | null {
    const assignment = this.#assignments.get(conversation);
    return assignment === undefined || now - assignment.at > MAX_AGE_MS ? null : assignment.channel;
  }

  keep(conversation: string, channel: string, now: number): void {
    const known = this.#assignments.get(conversation);
    if (known?.channel === channel && Math.abs(now - known.at) < MIN_AGE_MS) return;
    this.#assignments.set(conversation, { channel, at: now });
    for (const [oldest, { at }] of this.#assignments) {
      if (now - at <= MAX_AGE_MS) break;
      this.#assignments.delete(oldest);
    }
  }
}
