// A conversation stays on its channel, for the prompt cache.

import { readString } from "../../lib/json/scanner.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Identity } from "../../billing/ledger/line.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { hashBytes } from "../../lib/scan.ts";
import type { ScannedBody } from "../../dialects/prompt/prompt.ts";
import { readMember } from "./client.ts";

export function nameConversation({ session, inferred }: Identity, body: ScannedBody | null): string | null {
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
/** Enough for the user's first message: before it, all have the same text. */
const MAX_FIRST_PARTS = 4;
const MAX_SEARCHED_BYTES = 1024;
const ROLE = /"role"\s*:\s*"(\w+)"/;

function hashBeginning(body: ScannedBody): string | null {
  const turns = TURNS.find((name) => body.scan.get(name) !== undefined);
  if (turns === undefined) return null;
  return [...PROMPT_STARTS, turns].map((name) => hashMember(body, name, name === turns)).join("#");
}

/** From the hashes of parts. An undivided list counts by its beginning. */
function hashMember({ bytes, scan }: ScannedBody, name: string, isTurns: boolean): string {
  const span = scan.get(name);
  if (span === undefined) return "";
  const list = scan.lists.get(name);
  if (list === undefined)
    return String(hashBytes(bytes.subarray(span.start, Math.min(span.end, span.start + MAX_HASHED_BYTES))));
  let hashes = "";
  for (const [at, { hash, length }] of list.parts.slice(0, MAX_FIRST_PARTS).entries()) {
    hashes += `.${hash}`;
    const start = list.starts[at] ?? 0;
    if (isTurns && isUser(bytes, start, start + length)) break;
  }
  return hashes;
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
