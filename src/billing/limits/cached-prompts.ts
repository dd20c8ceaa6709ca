// What a session's next prompt will probably be like: how many tokens its bytes make, and how many of them are read from
// the upstream's cache. Without this, an agent's parallel requests reserve ten times what they cost.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { ClientIdentity } from "../ledger/line.ts";
import { countPrompt } from "../miss.ts";

export interface CachedConversation {
  readonly key: string;
  readonly model: string;
  readonly client?: ClientIdentity | null | undefined;
}

/** Tokens of a prompt. */
export interface ExpectedPrompt {
  /** All of them. */
  readonly tokens: number;
  /** Those that are read from the cache. */
  readonly cached: number;
}

interface Kept {
  /** What was read or written. */
  readonly cached: number;
  /** The tokens of its prompt, of each that was estimated from its bytes. */
  readonly scale: number;
  readonly at: number;
}

/** As long as upstreams keep a prompt at least. */
const KEPT_MS = 5 * 60_000;
/** Sessions come and go. */
const MAX_CONVERSATIONS = 10_000;
/** Bytes make more or less tokens than estimated, but not by more than this. */
const MAX_SCALE = 3;

export class CachedPrompts {
  readonly #kept = new BoundedMap<string, Kept>(MAX_CONVERSATIONS);

  /** `estimated`: tokens, from the size of its prompt; 0: not known. */
  add(
    conversation: CachedConversation,
    usage: Readonly<Record<string, number>>,
    at: number,
    estimated: number,
  ): void {
    const name = nameConversation(conversation);
    if (name === null) return;
    const { read, written, total } = countPrompt(usage);
    const cached = read + written;
    const scale = estimated > 0 && total > 0 ? total / estimated : 1;
    this.#kept.set(name, { cached, scale: Math.min(MAX_SCALE, Math.max(1 / MAX_SCALE, scale)), at });
  }

  expect(conversation: CachedConversation, now: number, estimated: number): ExpectedPrompt {
    const name = nameConversation(conversation);
    const kept = name === null ? undefined : this.#kept.get(name);
    // A time to come is from before the clock was set back.
    if (kept === undefined || Math.abs(now - kept.at) > KEPT_MS) return { tokens: estimated, cached: 0 };
    const tokens = Math.ceil(estimated * kept.scale);
    return { tokens, cached: Math.min(tokens, kept.cached) };
  }
}

/** Each agent has prompts of its own. Null: the request names no session. */
function nameConversation({ key, model, client }: CachedConversation): string | null {
  if (client?.session === undefined) return null;
  return [key, model, client.session, client.agent ?? ""].join("\n");
}
