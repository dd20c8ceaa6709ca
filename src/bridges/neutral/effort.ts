// How much a model thinks, and limits that follow from its name.

import { lookUp, type Table } from "../../lib/json/json.ts";
import { type Effort, EFFORTS } from "./conversation.ts";

/** Tokens, for models that count them. */
export const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};

const WORDS: Table<Effort> = {
  none: "none",
  off: "none",
  minimal: "low",
  low: "low",
  medium: "medium",
  persistent: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
  ultra: "max",
};

/** A word or a number of tokens. */
export function readEffort(value: unknown): Effort | undefined {
  if (typeof value === "string") return lookUp(WORDS, value.toLowerCase()) ?? "medium";
  if (typeof value !== "number") return undefined;
  if (value === 0) return "none";
  // The model decides.
  if (value < 0) return "medium";
  return EFFORTS.find((effort) => BUDGETS[effort] >= value) ?? "max";
}

/** Reasoning models and their lowest effort. https://platform.openai.com/docs/guides/reasoning */
const LOWEST: readonly (readonly [RegExp, string | null])[] = [
  [/^(?:gpt-4|gpt-3|chatgpt-4o)/, null],
  [/^o\d/, "low"],
  [/^gpt-5(?:-mini|-nano)?(?:-\d{4}|$)/, "minimal"],
  [/^gpt-5(?:\.\d+)?-codex/, "low"],
  [/^gpt-/, "none"],
];

/** Null: leave it out. */
export function writeOpenaiEffort(effort: Effort, model: string): string | null {
  const name = bareName(model);
  const lowest = LOWEST.find(([pattern]) => pattern.test(name))?.[1];
  if (lowest === null) return null;
  if (effort === "none") return lowest ?? null;
  if (effort !== "xhigh" && effort !== "max") return effort;
  return /^gpt-(?:5\.[2-9]|[6-9])/.test(name) ? effort : "high";
}

/** They refuse sampling parameters. */
export function isOpenaiReasoner(model: string): boolean {
  return /^(?:o\d|gpt-[5-9])/.test(bareName(model));
}

/** A prompt can say where to cache it. */
export function takesBreakpoints(model: string): boolean {
  return /^gpt-(?:5\.[6-9]|[6-9])/.test(bareName(model));
}

/** https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking */
export function thinksAdaptively(model: string): boolean {
  return /claude-(?:opus|sonnet|haiku)-(?:4-[6-9]|[5-9])|claude-(?:fable|mythos)/.test(bareName(model));
}

/** They take only the defaults. */
export function refusesSampling(model: string): boolean {
  return /claude-opus-4-[7-9]|claude-(?:opus|sonnet|haiku)-[5-9]|claude-(?:fable|mythos)/.test(
    bareName(model),
  );
}

const OUTPUT_CAPS: readonly (readonly [RegExp, number])[] = [
  [/^gpt-4o/, 16_384],
  [/^gpt-4\.1/, 32_768],
  [/^gpt-4/, 8192],
  [/^o\d/, 100_000],
  [/^gpt-[5-9]/, 128_000],
  [/^claude-3-[57]/, 8192],
  [/^claude-3/, 4096],
  [/^gemini-2\.0/, 8192],
  [/^gemini-/, 65_536],
];

export function findOutputCap(model: string): number | null {
  const name = bareName(model);
  return OUTPUT_CAPS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}

/** `openai/gpt-5.1` → `gpt-5.1`. */
function bareName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1).toLowerCase();
}
