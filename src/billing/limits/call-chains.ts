// Remembers tool calls for the limit `same_call` if the upstream keeps the conversation.
// The next request then has only their results,
// so hashes of the calls are kept in memory.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { CallListener } from "../usage.ts";

export interface LastPairs {
  readonly hash: string;
  readonly count: number;
}

export interface CallChain {
  readonly pairs: LastPairs;
  /** The hashes of calls, by their hashed ids. */
  readonly calls: ReadonlyMap<string, string>;
}

const MAX_RESPONSES = 4096;
/** The most calls kept of an answer. The result of any other call restarts the count for `same_call`. */
const MAX_CALLS = 64;

export class CallChains {
  readonly #chains = new BoundedMap<string, CallChain & { readonly calls: Map<string, string> }>(
    MAX_RESPONSES,
  );

  find(key: string, responseId: string): CallChain | null {
    return this.#chains.get(nameChain(key, responseId)) ?? null;
  }

  /** `pairs` says how often the last call was repeated.
   *  It is null if the request fetches a stored answer. */
  follow(key: string, pairs: LastPairs | null): CallListener {
    let calls: Map<string, string> | undefined;
    return {
      begin: (responseId) => {
        if (calls !== undefined) return;
        const name = nameChain(key, responseId);
        calls = pairs === null ? this.#chains.get(name)?.calls : new Map();
        if (pairs === null || calls === undefined) return;
        this.#chains.set(name, { pairs, calls });
      },
      add: (callId, hash) => {
        if (calls !== undefined && calls.size < MAX_CALLS) calls.set(hashId(callId), hash);
      },
    };
  }
}

/** Upstreams' ids may have any length. */
export function hashId(id: string): string {
  return Bun.hash.wyhash(id).toString(36);
}

function nameChain(key: string, responseId: string): string {
  return `${key}\n${hashId(responseId)}`;
}
