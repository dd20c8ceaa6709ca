// What is known about a request, and what is kept for the next one.

import type { CacheReason, PromptTokens } from "../../billing/usage.ts";
import type { CacheRules } from "../../dialects/prompt/layouts.ts";
import type { CacheMark, Prompt } from "../../dialects/prompt/prompt.ts";

export interface CacheTurn {
  readonly prompt: Prompt;
  readonly rules: CacheRules;
  readonly agent: string | null;
  readonly inferred: boolean;
  readonly model: string;
  readonly channel: string;
  readonly served: string;
  readonly tokens: PromptTokens;
  readonly reason: CacheReason | null;
  /** What was written stays in the cache for twelve hours. */
  readonly isKeptLong: boolean;
  /** The upstream leaves out Claude Code's line about itself. */
  readonly dropsAttribution: boolean;
  readonly responseId: number | null;
  /** In milliseconds. `at`: the request came. `readyAt`: the response began. */
  readonly at: number;
  readonly readyAt: number;
}

export type CountedTurn = Pick<CacheTurn, "rules" | "model" | "tokens" | "reason">;

export interface PastTurn {
  readonly turn: CacheTurn;
  readonly tokens: number;
  readonly end: number;
  /** The tokens were reported, not computed from the prompt's size. */
  readonly exact: boolean;
  /** The upstream is known to cache this conversation. */
  readonly proven: boolean;
  readonly lifetimeMs: number;
  /** What an earlier turn left in the cache.
   *  A client that goes back continues from there. */
  readonly earlier: Left | null;
  /** What a turn read in front of a change.
   *  If a later turn does not read it, the cache lost it. */
  readonly read: Left;
}

export type Left = Pick<PastTurn, "tokens" | "end">;

const HALF_DAY_MS = 12 * 3_600_000;

export function keepTurn(
  turn: CacheTurn,
  before: PastTurn | null,
  known: Pick<PastTurn, "earlier" | "read">,
): PastTurn | null {
  const { prompt, rules, tokens } = turn;
  const mark = findLastMark(prompt);
  if (mark === null && rules.marked) return null;
  const reported = tokens.read + tokens.written;
  const isReported = (rules.marked ? reported : tokens.written) > 0;
  const proven = reported > 0 || before?.proven === true;
  const left = countLeft(turn, isReported);
  if (left === 0 || (!proven && isShort(turn))) return null;
  const exact = rules.marked && isReported;
  const end = exact && mark !== null ? mark.at : prompt.count;
  const lifetimeMs = findLifetime(turn, mark);
  return { turn, tokens: left, end, exact, proven, lifetimeMs, ...known };
}

function findLastMark({ marks }: Prompt): CacheMark | null {
  let last: CacheMark | null = null;
  for (const mark of marks) if (last === null || mark.at >= last.at) last = mark;
  return last;
}

/** Upstreams do not cache such short prompts. */
export function isShort({ rules, model, tokens }: CountedTurn): boolean {
  return tokens.total < rules.minimumTokens(model);
}

function countLeft({ prompt, rules, tokens }: CacheTurn, isReported: boolean): number {
  if (isReported) return tokens.read + tokens.written;
  // A named cache is only read. Nothing says whether the rest is cached.
  if (prompt.named) return tokens.read;
  return Math.max(tokens.read, tokens.total - (tokens.total % rules.blockTokens));
}

function findLifetime({ prompt, rules, tokens, isKeptLong }: CacheTurn, mark: CacheMark | null): number {
  const requested = mark?.lifetimeMs ?? prompt.lifetimeMs;
  if (requested !== null) return requested;
  if (isKeptLong) return HALF_DAY_MS;
  return tokens.written > 0 ? rules.reportedLifetimeMs : rules.lifetimeMs;
}
