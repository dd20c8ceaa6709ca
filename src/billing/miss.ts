// Which kinds of usage the tokens were that a prompt should have read from the cache and did not.

import {
  CACHE_READ_KINDS,
  CACHE_WRITE_KINDS,
  countTokens,
  type Counts,
  INPUT_KINDS,
  type Usage,
} from "./usage.ts";

/** In the order of a prompt: what is written for longest comes first. */
const PAID = ["cache_write_12h", "cache_write_1h", "cache_write_5m", "cache_write", "input"] as const;

/** Kinds of input with a cached kind of their own. */
const MEDIA = [
  ["input_image", "cache_read_image"],
  ["input_audio", "cache_read_audio"],
  ["input_video", "cache_read_video"],
] as const;

export interface MissedUsage {
  /** The missed tokens as they were paid. */
  readonly paid: Usage;
  /** The same tokens as they would have been paid if they had been read. */
  readonly read: Usage;
}

/** Missed tokens are the first of a prompt. */
export function splitMissed(usage: Counts, missed: number): MissedUsage {
  const paid: Usage = {};
  const read: Usage = {};
  let left = missed;
  const take = (kind: keyof Usage, cached: keyof Usage): void => {
    const count = Math.min(left, usage[kind] ?? 0);
    if (count === 0) return;
    paid[kind] = count;
    read[cached] = (read[cached] ?? 0) + count;
    left -= count;
  };
  for (const kind of PAID) take(kind, "cache_read");
  for (const [kind, cached] of MEDIA) take(kind, cached);
  return { paid, read };
}

export interface PromptTokens {
  readonly total: number;
  readonly read: number;
  readonly written: number;
}

/** The tokens of a request's prompt, by what the cache had to do with them. */
export function countPrompt(usage: Counts): PromptTokens {
  const read = countTokens(usage, CACHE_READ_KINDS);
  const written = countTokens(usage, CACHE_WRITE_KINDS);
  return { read, written, total: read + written + countTokens(usage, INPUT_KINDS) };
}
