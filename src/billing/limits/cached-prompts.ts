// How many tokens of its next prompt a session will probably read from the upstream's cache: those that its last request
// has read or written. Without this, an agent's requests at the same time reserve ten times what they cost.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { ClientIdentity } from "../ledger/line.ts";
import { countPrompt } from "../miss.ts";

export interface Conversation {
  readonly key: string;
  readonly model: string;
  readonly client?: ClientIdentity | null | undefined;
}

/** As long as upstreams keep a prompt at least. */
const KEPT_MS = 5 * 60_000;
/** Sessions come and go. */
const MAX_CONVERSATIONS = 10_000;

export class CachedPrompts {
  readonly #kept = new BoundedMap<string, { readonly tokens: number; readonly at: number }>(
    MAX_CONVERSATIONS,
  );

  add(conversation: Conversation, usage: Readonly<Record<string, number>>, at: number): void {
    const name = nameConversation(conversation);
    const { read, written } = countPrompt(usage);
    if (name !== null) this.#kept.set(name, { tokens: read + written, at });
  }

  expect(conversation: Conversation, now: number): number {
    const name = nameConversation(conversation);
    const kept = name === null ? undefined : this.#kept.get(name);
    // A time to come is from before the clock was set back.
    return kept === undefined || Math.abs(now - kept.at) > KEPT_MS ? 0 : kept.tokens;
  }
}

/** Each agent of a session has prompts of its own. Null: the request names no session. */
function nameConversation({ key, model, client }: Conversation): string | null {
  if (client?.session === undefined) return null;
  return [key, model, client.session, client.agent ?? ""].join("\n");
}
