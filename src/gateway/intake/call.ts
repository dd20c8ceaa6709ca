// A client's request as it arrived.

import type { Exchange } from "../../lib/http/exchange.ts";

export interface UnroutedCall {
  readonly id: string;
  readonly exchange: Exchange;
  /** Wall clock, milliseconds. */
  readonly time: number;
  /** performance.now() at arrival, the start of all durations. */
  readonly arrived: number;
}

const ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz";

function randomSuffix(length: number): string {
  let text = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(length))) text += ALPHABET[byte % 36] ?? "";
  return text;
}

/** Ids sort by time, and no two processes make the same id. */
export function createIdSource(now: () => number): () => string {
  const suffix = randomSuffix(8);
  let count = 0;
  let at = -1;
  let start = "";
  return () => {
    const time = now();
    if (time !== at) start = `req_${time.toString(36).padStart(9, "0")}`;
    at = time;
    count += 1;
    return `${start}${count.toString(36).padStart(6, "0")}${suffix}`;
  };
}
