// Which kinds of usage the tokens were that a prompt should have read from the cache and did not. What they cost is
// charge.ts.

import type { Usage } from "./usage.ts";

type Counts = Readonly<Record<string, number | undefined>>;

/** In the order of a prompt: what is written for longer comes first, and what is not written comes last. */
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

/** Missed tokens are at the beginning of a prompt, so they are among the first that were written or sent. */
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

const SENT = ["input", ...MEDIA.map(([kind]) => kind)];
const READ = ["cache_read", "cache_read_image", "cache_read_audio", "cache_read_video"] as const;
const WRITTEN = ["cache_write_12h", "cache_write_1h", "cache_write_5m", "cache_write"] as const;

export interface PromptTokens {
  readonly total: number;
  readonly read: number;
  readonly written: number;
}

/** The tokens of a request's prompt, by what the cache had to do with them. */
export function countPrompt(usage: Counts): PromptTokens {
  const read = countKinds(usage, READ);
  const written = countKinds(usage, WRITTEN);
  return { read, written, total: read + written + countKinds(usage, SENT) };
}

function countKinds(usage: Counts, kinds: readonly string[]): number {
  let sum = 0;
  for (const kind of kinds) sum += usage[kind] ?? 0;
  return sum;
}

/** What a kind would have been without a cache. */
const WITHOUT_CACHE: Readonly<Partial<Record<string, keyof Usage>>> = {
  cache_read: "input",
  cache_write: "input",
  cache_write_5m: "input",
  cache_write_1h: "input",
  cache_write_12h: "input",
  cache_read_audio: "input_audio",
  cache_read_image: "input_image",
  cache_read_video: "input_video",
};

/** A kind of what was read from a cache or written to one, and what it would have been. */
export const CACHED_KINDS = Object.entries(WITHOUT_CACHE).flatMap(([kind, plain]) =>
  plain === undefined ? [] : [[kind, plain] as const],
);
