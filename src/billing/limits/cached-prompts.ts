// Forecasts a session's next prompt: its tokens, and how many of them come from the upstream's
// cache. Without this, an agent's parallel requests reserve ten times their cost.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { ClientIdentity } from "../ledger/line.ts";
import { countPrompt } from "../usage.ts";

export interface CachedConversation {
  readonly key: string;
  readonly model: string;
  readonly client?: ClientIdentity | null | undefined;
}

export interface ExpectedPrompt {
  readonly tokens: number;
  readonly cached: number;
}

interface Kept {
  /** Tokens read from the cache or written to it. */
  readonly cached: number;
  /** The prompt's tokens for each token estimated from bytes. */
  readonly scale: number;
  readonly at: number;
}

/** Upstreams keep a prompt at least this long. */
const KEPT_MS = 5 * 60_000;
const MAX_CONVERSATIONS = 10_000;
/** The factor between estimated and real tokens is at most this. */
const MAX_SCALE = 3;

export class CachedPrompts {
  readonly #kept = new BoundedMap<string, Kept>(MAX_CONVERSATIONS);

  /** `estimated`: the prompt's tokens by its size (0: unknown). */
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
    // A later time is from before the clock was set back.
    if (kept === undefined || Math.abs(now - kept.at) > KEPT_MS) return { tokens: estimated, cached: 0 };
    const tokens = Math.ceil(estimated * kept.scale);
    return { tokens, cached: Math.min(tokens, kept.cached) };
  }
}

/** Each agent has its own prompts. Null: the request names no session. */
function nameConversation({ key, model, client }: CachedConversation): string | null {
  if (client?.session === undefined) return null;
  return [key, model, client.session, client.agent ?? ""].join("\n");
}
