// What `same_call` knows of conversations that the upstream keeps. A request that continues a response has no calls, only
// their results, so the calls are remembered: as hashes, in memory, for keys with this limit.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { CallListener } from "../usage.ts";

/** How a conversation ends: with `count` pairs of call and result of this hash. */
export interface LastPairs {
  readonly hash: string;
  readonly count: number;
}

/** A conversation up to the end of one response. */
export interface CallChain {
  readonly pairs: LastPairs;
  /** The calls of the response by their ids, both as hashes. */
  readonly calls: ReadonlyMap<string, string>;
}

const MAX_RESPONSES = 4096;
/** Calls of one response. The result of any other call starts the count again. */
const MAX_CALLS = 64;

export class CallChains {
  /** By key and response. Nothing changes after the response: several requests may continue it. */
  readonly #chains = new BoundedMap<string, CallChain & { readonly calls: Map<string, string> }>(
    MAX_RESPONSES,
  );

  get size(): number {
    return this.#chains.size;
  }

  find(key: string, responseId: string): CallChain | null {
    return this.#chains.get(nameChain(key, responseId)) ?? null;
  }

  /** Remembers the calls of a response as they pass. `pairs`: how its request ends; null: an earlier one began it. */
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

/** Ids are the upstream's, and may be of any length. */
export function hashId(id: string): string {
  return Bun.hash.wyhash(id).toString(36);
}

function nameChain(key: string, responseId: string): string {
  return `${key}\n${hashId(responseId)}`;
}
