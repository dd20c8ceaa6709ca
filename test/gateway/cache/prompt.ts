// Reads a body as the gateway does: scans it, reads its parts, and puts the prompt together.

import { type Layout } from "../../../src/dialects/prompt/layouts.ts";
import type { PartFacts } from "../../../src/dialects/prompt/blocks.ts";
import type { Prompt, ReadPrompt } from "../../../src/dialects/prompt/prompt.ts";
import { listWanted, readPrompt as readStep, type ScannedBody } from "../../../src/dialects/prompt/prompt.ts";
import { type Lists, scanSteps } from "../../../src/lib/scan.ts";
import { runAtOnce } from "../../../src/lib/time/next-turn.ts";

const OTHERS = ["model", "stream", "metadata", "prompt_cache_key"];

/** Returns null if the body is not a JSON object. `known` has the parts of earlier bodies. */
export function scanBody(
  bytes: Uint8Array,
  layout: Layout,
  known: readonly Lists<PartFacts>[] = [],
): ScannedBody | null {
  const { names, lists } = listWanted(layout);
  const scan = runAtOnce(
    scanSteps<PartFacts>(bytes, {
      names: new Set([...OTHERS, ...names]),
      others: 8,
      lists,
      known,
      alike: new Set(["model"]),
    }),
  );
  return scan && { bytes, scan };
}

export function readSteps(body: ScannedBody, layout: Layout): ReadPrompt | null {
  let read;
  while (read === undefined) read = readStep(body, layout);
  return read;
}

export function readPrompt(bytes: Uint8Array, layout: Layout): Prompt | null {
  const body = scanBody(bytes, layout);
  return (body && readSteps(body, layout))?.prompt ?? null;
}

/** Returns the prompt with its own parts only: it may share its list of parts with a later, longer prompt of the conversation. */
export function ownParts(prompt: Prompt): Prompt {
  const { parts, numbers, count, messages } = prompt;
  return { ...prompt, parts: parts.slice(0, count), numbers: numbers.slice(0, count - messages) };
}
