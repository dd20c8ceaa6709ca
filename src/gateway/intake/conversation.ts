// A conversation stays on its channel, for the prompt cache.

import { readString, type Span } from "../../lib/json/scanner.ts";
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
/** Enough to reach the user's first message, which tells conversations apart. */
const MAX_FIRST_PARTS = 4;
const MAX_SEARCHED_BYTES = 1024;
const ROLE = /"role"\s*:\s*"(\w+)"/;

/** Hashes of a body's first parts, one row for each list.
 *  All bodies share this memory. */
const hashes = new Float64Array((PROMPT_STARTS.length + 1) * MAX_FIRST_PARTS);
const hashedBytes = new Uint8Array(hashes.buffer);

function hashBeginning(body: ScannedBody): string | null {
  const turns = TURNS.find((name) => body.scan.get(name) !== undefined);
  if (turns === undefined) return null;
  hashes.fill(0);
  PROMPT_STARTS.forEach((name, row) => noteMember(body, name, row));
  noteMember(body, turns, PROMPT_STARTS.length);
  return String(hashBytes(hashedBytes));
}

function noteMember({ bytes, scan }: ScannedBody, name: string, row: number): void {
  const span = scan.get(name);
  if (span === undefined) return;
  const { starts, parts } = scan.lists.get(name) ?? readBeginning(bytes, span);
  for (let at = 0; at < Math.min(parts.length, MAX_FIRST_PARTS); at += 1) {
    const { hash = 0, length = 0 } = parts[at] ?? {};
    hashes[row * MAX_FIRST_PARTS + at] = hash;
    const start = starts[at] ?? 0;
    if (row === PROMPT_STARTS.length && isUser(bytes, start, start + length)) return;
  }
}

function readBeginning(bytes: Uint8Array, { start, end }: Span) {
  const length = Math.min(end - start, MAX_HASHED_BYTES);
  return { starts: [start], parts: [{ length, hash: hashBytes(bytes.subarray(start, start + length)) }] };
}

/** Clients write the role before the text. */
function isUser(bytes: Uint8Array, start: number, end: number): boolean {
  const beginning = asBuffer(bytes).toString("latin1", start, Math.min(end, start + MAX_SEARCHED_BYTES));
  return (ROLE.exec(beginning)?.[1] ?? "user") === "user";
}

/** No prompt cache lives longer than this. */
export const MAX_AGE_MS = 60 * 60_000;
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

  forget(conversation: string, by: number): void {
    if (this.find(conversation, by) === null) this.#assignments.delete(conversation);
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
