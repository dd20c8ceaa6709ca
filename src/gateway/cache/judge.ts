// Whether a request should have read more from the cache, and why (see README.md).

import {
  type Change,
  countMessages,
  countSharedMessages,
  countSame,
  findChange,
  findOther,
} from "./change.ts";
import type { Continuation } from "./match.ts";
import type { Left, PastTurn, CacheTurn } from "./turn.ts";

/** `because` may be an upstream's own word. */
export interface Miss {
  readonly missed: number;
  readonly because: string;
  readonly at?: number;
  readonly part?: string;
  readonly detail?: string;
  readonly from?: string;
  readonly reported?: true;
  /** Only the prompt's size says that it was cached. */
  readonly unproven?: true;
}

type Cause = Omit<Miss, "missed">;

/** Where upstreams do not report writes, a smaller miss may be chance. */
const MIN_EXPLAINED = 128;
const MIN_UNEXPLAINED = 1024;
const TOLERATED_SHARE = 5;
const COMPACTED_SHARE = 2;
/** An upstream looks at this many blocks from a mark backwards. */
const LOOKBACK_PARTS = 20;

export function judgeMiss(turn: CacheTurn, continuation: Continuation | null): Miss | null {
  if (continuation === null) return judgeUnknown(turn);
  const kept = continuation.branched ? goBack(continuation.kept, turn) : continuation.kept;
  if (kept === null) return null;
  const { total, read } = turn.tokens;
  const missed = Math.min(kept.tokens, total) - read;
  if (missed <= 0) return null;
  const change = findChange(kept, turn);
  if (isCompacted(turn, kept)) return null;
  const cause = explainReported(turn, change) ?? explain(turn, kept, change) ?? explainLoss(turn, kept);
  if (cause === null || missed < leastOf(cause, kept)) return null;
  return { missed, ...cause, ...(!kept.proven && { unproven: true }) };
}

/** After a restart, the gateway knows no earlier requests, but the upstream may. */
function judgeUnknown({ tokens, reason }: CacheTurn): Miss | null {
  const cause = reason === null ? null : translate(reason.because);
  const missed = Math.min(reason?.missed ?? 0, tokens.total - tokens.read);
  return cause === null || missed <= 0 ? null : { missed, ...cause, reported: true };
}

function goBack(kept: PastTurn, turn: CacheTurn): PastTurn | null {
  const { earlier } = kept;
  if (earlier === null) return null;
  const before = kept.turn.prompt;
  if (earlier.end > before.messages + countSharedMessages(before, turn.prompt)) return null;
  return { ...kept, ...earlier, earlier: null };
}

/** A summary replaced most messages. This is intended, and cheaper. */
function isCompacted({ tokens, prompt, reason }: CacheTurn, kept: PastTurn): boolean {
  if (reason?.because === "context_compacted") return true;
  if (prompt.continues !== null) return false;
  const before = kept.turn;
  const shared = countSharedMessages(before.prompt, prompt);
  if (before.prompt.messages + shared >= kept.end) return false;
  const share = shared === 0 ? 1 : COMPACTED_SHARE;
  const hasFewer = countMessages(prompt) * share < countMessages(before.prompt);
  return hasFewer || tokens.total * COMPACTED_SHARE < before.tokens.total;
}

const PLAIN_WORD = /^[a-z][a-z0-9_]{0,39}$/;

const WORDS: Readonly<Record<string, Cause>> = {
  input_changed: { because: "messages_changed" },
  service_tier_changed: { because: "tier_changed" },
  prompt_cache_key_changed: { because: "settings_changed", part: "prompt_cache_key" },
  text_format_changed: { because: "settings_changed", part: "text.format" },
  reasoning_effort_changed: { because: "settings_changed", part: "reasoning.effort" },
  verbosity_changed: { because: "settings_changed", part: "text.verbosity" },
};

function translate(word: string): Cause | null {
  if (word === "context_compacted" || !PLAIN_WORD.test(word)) return null;
  return WORDS[word] ?? { because: word };
}

/** The upstream's own reason, with the place of the change if we found the same cause. */
function explainReported({ reason }: CacheTurn, change: Change | null): Cause | null {
  const cause = reason === null ? null : translate(reason.because);
  if (cause === null) return null;
  const isOurs =
    cause.because === change?.because || (reason?.because === "input_changed" && change !== null);
  return { ...cause, ...(isOurs && change), reported: true };
}

function explain(turn: CacheTurn, kept: PastTurn, change: Change | null): Cause | null {
  const before = kept.turn;
  if (before.model !== turn.model) return { because: "model_changed" };
  if (before.channel !== turn.channel) return { because: "channel_changed", from: before.channel };
  if (before.prompt.tier !== turn.prompt.tier) return { because: "tier_changed" };
  const isOld = turn.at - before.at >= kept.lifetimeMs;
  // If something was read, the cache is alive, and the change explains the miss.
  if (isOld && (change === null || turn.tokens.read === 0)) return { because: "lifetime_passed" };
  const lost = [kept.earlier, kept.read].find((left) => hasLost(turn, kept, left));
  if (lost && !isOld) return explainLoss(turn, kept, lost === kept.read && turn.tokens.read > 0);
  return change ?? (isFound(turn, kept, kept.end) ? null : { because: "marks_changed" });
}

/** Whether a part before the change was lost:
 *  it was cached, and this turn did not read it. */
function hasLost(turn: CacheTurn, kept: PastTurn, left: Left | null): boolean {
  if (left === null || turn.prompt.edited || kept.turn.prompt.continues !== null) return false;
  const least = leastOf({ because: "upstream_lost" }, { ...kept, ...left });
  if (left.end > countSame(kept, turn) || left.tokens - turn.tokens.read < least) return false;
  // If nothing was read, the caches of all earlier marks are lost, too.
  const isAny = left === kept.read && turn.tokens.read === 0;
  return isFound(turn, kept, left.end, isAny ? 0 : left.end);
}

/** Whether a mark is at the end of what is cached, or shortly after it. */
function isFound({ prompt }: CacheTurn, { exact }: PastTurn, end: number, from = end): boolean {
  return !exact || prompt.marks.some(({ at }) => at >= from && at - end < LOOKBACK_PARTS);
}

function explainLoss(turn: CacheTurn, kept: PastTurn, isDoubtful = false): Cause | null {
  if (turn.prompt.edited && turn.tokens.read > 0) return null;
  if (kept.turn.served !== turn.served) return { because: "tier_changed" };
  const part = findOther(kept.turn, turn);
  return part === null
    ? { because: "upstream_lost", ...(isDoubtful && { detail: "perhaps" }) }
    : { because: "settings_changed", part, detail: "perhaps" };
}

function leastOf({ because, detail, reported }: Cause, { exact, proven, tokens }: PastTurn): number {
  const isGuess = because === "lifetime_passed" || because === "upstream_lost" || detail === "perhaps";
  if (reported === true || !isGuess) return exact ? 1 : MIN_EXPLAINED;
  // Nothing shows that this upstream caches: many do not.
  if (!proven) return Infinity;
  return exact ? MIN_UNEXPLAINED : Math.max(MIN_UNEXPLAINED, tokens / TOLERATED_SHARE);
}
