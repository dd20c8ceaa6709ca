// Calls for `same_call` in conversations that the upstream keeps. A request that continues a
// response has only results, so the calls are kept: as hashes, in memory, for keys with this limit.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { CallListener } from "../usage.ts";

export interface LastPairs {
  readonly hash: string;
  readonly count: number;
}

export interface CallChain {
  readonly pairs: LastPairs;
  /** The calls of the response: hashes by hashed ids. */
  readonly calls: ReadonlyMap<string, string>;
}

const MAX_RESPONSES = 4096;
/** The most calls of one response. Results of other calls restart the count. */
const MAX_CALLS = 64;

export class CallChains {
  /** By key and response. Nothing changes after the response: several requests may continue it. */
  readonly #chains = new BoundedMap<string, CallChain & { readonly calls: Map<string, string> }>(
    MAX_RESPONSES,
  );

  find(key: string, responseId: string): CallChain | null {
    return this.#chains.get(nameChain(key, responseId)) ?? null;
  }

  /** Remembers the passing calls of a response. `pairs`: the end of its request. Null: an earlier
   *  request began the response. */
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
