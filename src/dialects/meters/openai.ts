// The usage object of the responses and chat dialects. Only its names differ.

import type { Usage } from "../../billing/usage.ts";
import { countOf, fieldOf } from "../../lib/json/json.ts";

/** Null if nothing was counted. The totals include cached, written and special tokens: they are subtracted here. */
export function readOpenaiUsage(
  usage: unknown,
  input: "input" | "prompt",
  output: "output" | "completion",
): Usage | null {
  const total = countOf(fieldOf(usage, `${input}_tokens`));
  const produced = countOf(fieldOf(usage, `${output}_tokens`));
  if (total === undefined && produced === undefined) return null;
  const inside = fieldOf(usage, `${input}_tokens_details`);
  const outside = fieldOf(usage, `${output}_tokens_details`);
  const read = countIn(inside, "cached_tokens");
  const written = countIn(inside, "cache_write_tokens");
  // A part of those that were written; the others are kept for half an hour.
  const kept = Math.min(written, countIn(fieldOf(inside, "cache_write_tokens_details"), "ttl_12h_tokens"));
  const audioIn = countIn(inside, "audio_tokens");
  const imageIn = countIn(inside, "image_tokens");
  const reasoning = countIn(outside, "reasoning_tokens");
  const audioOut = countIn(outside, "audio_tokens");
  // Some compatible platforms do not include reasoning in the output. Their total shows that.
  const isBeside = countIn(usage, "total_tokens") === (total ?? 0) + (produced ?? 0) + reasoning;
  const beside = isBeside ? reasoning : 0;
  return dropZeros({
    input: Math.max(0, (total ?? 0) - read - written - audioIn - imageIn),
    cache_read: read,
    cache_write: written - kept,
    cache_write_12h: kept,
    input_audio: audioIn,
    input_image: imageIn,
    output: Math.max(0, (produced ?? 0) + beside - audioOut),
    output_audio: audioOut,
    reasoning,
  });
}

function countIn(value: unknown, name: string): number {
  return countOf(fieldOf(value, name)) ?? 0;
}

/** Drops the kinds with a zero count, except input and output. */
export function dropZeros(usage: Usage): Usage {
  const counted = Object.entries(usage).filter(
    ([kind, count]) => count > 0 || kind === "input" || kind === "output",
  );
  return Object.fromEntries(counted);
}
