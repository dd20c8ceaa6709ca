// The manifest of the recordings says what each answer costs, in words that differ by family. To compare
// them with what a meter read from the answer, this file writes both in the same form.

import type { Part, Reading, Usage } from "../../src/billing/usage.ts";
import type { Fixture } from "./fixtures.ts";

/** What the manifest says of an answer. The functions below read the words of each family. */
// oxlint-disable-next-line typescript/no-explicit-any -- recordings' metadata, read in a test only
export type Billing = any;

/** The usage of an answer, from a meter or from a ledger line. */
export type Read = Pick<Reading, "model" | "parts" | "tariff">;

const INPUTS = ["input", "input_audio", "input_image", "input_video"] as const;
const CACHED = ["cache_read", "cache_read_audio", "cache_read_image", "cache_read_video"] as const;
const OUTPUTS = ["output", "output_audio", "output_image", "output_video"] as const;

function sum(usage: Usage, kinds: readonly (keyof Usage)[]): number {
  return kinds.reduce((total, kind) => total + (usage[kind] ?? 0), 0);
}

function count(reading: Read, kind: keyof Usage): number {
  return reading.parts.reduce((total, part) => total + (part.usage[kind] ?? 0), 0);
}

/** A meter's reading in the words of the manifest. What the manifest never says is left out. */
export const NORMAL: Record<Fixture["family"], (reading: Read) => object> = {
  anthropic: (reading) => ({
    lines: reading.parts.map((part: Part) => ({
      model: part.model ?? reading.model,
      kind: part.pass,
      input: part.usage.input ?? 0,
      cache_read: part.usage.cache_read ?? 0,
      cache_write_5m: part.usage.cache_write_5m ?? 0,
      cache_write_1h: part.usage.cache_write_1h ?? 0,
      output: part.usage.output ?? 0,
    })),
    web_search_requests: count(reading, "web_search"),
    service_tier: reading.tariff.service_tier ?? null,
    inference_geo: reading.tariff.inference_geo ?? null,
    speed: reading.tariff.speed ?? null,
  }),
  "openai-responses": (reading) => ({
    lines: reading.parts.map((part) => ({
      model: reading.model,
      input_uncached: part.usage.input ?? 0,
      cache_read: part.usage.cache_read ?? 0,
      cache_write: part.usage.cache_write ?? 0,
      output: part.usage.output ?? 0,
      of_which_reasoning: part.usage.reasoning ?? 0,
    })),
    service_tier: reading.tariff.service_tier ?? null,
    searches: count(reading, "web_search") + count(reading, "web_search_preview"),
    file_searches: count(reading, "file_search"),
    images: count(reading, "image_generation"),
    containers: count(reading, "code_interpreter"),
  }),
  "openai-chat": (reading) => ({
    lines: reading.parts.map((part) => ({
      model: reading.model,
      input_uncached: sum(part.usage, INPUTS),
      cache_read: part.usage.cache_read ?? 0,
      cache_write: part.usage.cache_write ?? 0,
      audio_input: part.usage.input_audio ?? 0,
      output: sum(part.usage, OUTPUTS),
      of_which_reasoning: part.usage.reasoning ?? 0,
      audio_output: part.usage.output_audio ?? 0,
    })),
    service_tier: reading.tariff.service_tier ?? null,
  }),
  gemini: (reading) => ({
    lines: reading.parts.map((part) => ({
      model: reading.model,
      prompt: sum(part.usage, [...INPUTS, ...CACHED]),
      cached: sum(part.usage, CACHED),
      input_uncached: sum(part.usage, INPUTS),
      tool_use_prompt: part.usage.tool_prompt ?? 0,
      thoughts: part.usage.reasoning ?? 0,
      output_billed: sum(part.usage, OUTPUTS),
      audio: (part.usage.input_audio ?? 0) + (part.usage.cache_read_audio ?? 0),
      video: (part.usage.input_video ?? 0) + (part.usage.cache_read_video ?? 0),
      image: (part.usage.input_image ?? 0) + (part.usage.cache_read_image ?? 0),
      audio_cached: part.usage.cache_read_audio ?? 0,
      image_out: part.usage.output_image ?? 0,
    })),
    search_queries: count(reading, "google_search"),
    service_tier: reading.tariff.service_tier ?? null,
    traffic_type: reading.tariff.traffic_type ?? null,
  }),
};

const WANTED: Record<Fixture["family"], (billing: Billing) => object> = {
  anthropic: ({ web_fetch_requests: _free, ...billing }) => billing,
  "openai-responses": (billing) => ({
    lines: billing.lines,
    service_tier: billing.service_tier,
    searches: billing.tool_counts.web_search_action_search ?? 0,
    file_searches: billing.tool_counts.file_search_call ?? 0,
    images: billing.tool_counts.image_generation_call ?? 0,
    containers: billing.code_interpreter_containers,
  }),
  "openai-chat": (billing) => billing,
  gemini: (billing) => ({
    ...billing,
    lines: billing.lines.map((line: Billing) => ({
      model: line.model,
      prompt: line.prompt,
      cached: line.cached,
      input_uncached: line.input_uncached,
      tool_use_prompt: line.tool_use_prompt,
      thoughts: line.thoughts,
      output_billed: line.output_billed,
      audio: line.prompt_modalities.AUDIO ?? 0,
      video: line.prompt_modalities.VIDEO ?? 0,
      image: line.prompt_modalities.IMAGE ?? 0,
      audio_cached: line.cache_modalities.AUDIO ?? 0,
      image_out: line.candidates_modalities.IMAGE ?? 0,
    })),
  }),
};

/** A recording in which the manifest counts an empty search query. The platform charges nothing for such a query. */
const SEARCHED_FOR_NOTHING =
  "gemini/pydantic-ai--test-structured-output-test-native-output-with-builtin-tools-stream";

/** Returns the manifest's usage of a recording that reports usage. */
export function wantedOf({ id, family, expect }: Pick<Fixture, "id" | "family" | "expect">): Billing {
  const wanted = WANTED[family](expect.billing);
  return id === SEARCHED_FOR_NOTHING ? { ...wanted, search_queries: 1 } : wanted;
}
