// The kinds of usage of tokens that missed the cache.

import {
  CACHE_READ_KINDS,
  CACHE_WRITE_KINDS,
  countTokens,
  type Counts,
  INPUT_KINDS,
  type Usage,
} from "./usage.ts";

/** In the order of a prompt: the longest cache lifetimes come first. */
const PAID = ["cache_write_12h", "cache_write_1h", "cache_write_5m", "cache_write", "input"] as const;

/** Kinds of input with a cached kind of their own. */
const MEDIA = [
  ["input_image", "cache_read_image"],
  ["input_audio", "cache_read_audio"],
  ["input_video", "cache_read_video"],
] as const;

/** Missed tokens are the first of a prompt. `paid`: as paid; `read`: as cache reads. */
export function splitMissed(usage: Counts, missed: number) {
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

export function countPrompt(usage: Counts) {
  const read = countTokens(usage, CACHE_READ_KINDS);
  const written = countTokens(usage, CACHE_WRITE_KINDS);
  return { read, written, total: read + written + countTokens(usage, INPUT_KINDS) };
}

export type PromptTokens = ReturnType<typeof countPrompt>;
