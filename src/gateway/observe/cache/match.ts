// Finds the earlier request that a prompt continues. One session has several conversations at once: of its main agent, of
// subagents, and of small requests next to them. Pure.

import { countMessages, countShared, countSharedMessages, countSharedSystem } from "./change.ts";
import { MESSAGES } from "../../../dialects/prompt/prompt.ts";
import type { PastTurn, Turn } from "./turn.ts";

/** How a prompt continues an earlier one. */
export interface Continuation {
  readonly kept: PastTurn;
  /** The user went back to an earlier point and continued from there, so what came after it is not sent again. */
  readonly branched: boolean;
}

/** `kept` in the order of their last use. Null if the prompt begins a conversation. */
export function findContinuation(all: readonly PastTurn[], turn: Turn): Continuation | null {
  // A prompt is in the cache once its response has begun: requests at the same time cannot read each other's.
  const ready = all.filter((each) => each.turn.agent === turn.agent && each.turn.readyAt <= turn.at);
  // A small request next to a conversation, for a title or a summary, needs no tools and another model.
  const kept = ready.filter((each) => each.turn.model === turn.model || hasAlikeTools(each, turn));
  if (kept.length === 0) return null;
  const { continues } = turn.prompt;
  if (continues !== null) {
    const named = kept.find((each) => each.turn.responseId === continues);
    return named === undefined ? null : { kept: named, branched: false };
  }
  const ranks = kept.map((each) => ({ kept: each, shared: countSame(each, turn) }));
  const shared = ranks.reduce((most, each) => Math.max(most, each.shared), 0);
  if (shared > 0) {
    // Of prompts that share as much, one that goes on is more likely than one that was left.
    const equal = sortLikely(
      ranks.flatMap((each) => (each.shared === shared ? each.kept : [])),
      turn,
    );
    const continued = equal.find((each) => !isBranch(each, shared, turn, all.length === 1));
    const [best] = equal;
    if (best !== undefined) return { kept: continued ?? best, branched: continued === undefined };
  }
  const overlapping = findOverlapping(kept, turn);
  if (overlapping !== null) return { kept: overlapping, branched: false };
  const single = findSingle(kept, turn, all.length === 1) ?? findOpening(kept, turn);
  return single === null ? null : { kept: single, branched: false };
}

/** Both have tools, or none has. */
function hasAlikeTools({ turn: before }: PastTurn, turn: Turn): boolean {
  return before.prompt.parts[0].length > 0 === turn.prompt.parts[0].length > 0;
}

/** Messages that are the same from the first one on. */
function countSame({ turn: before }: PastTurn, turn: Turn): number {
  return before.prompt.continues === null ? countSharedMessages(before.prompt, turn.prompt) : 0;
}

/** Those with the same tools and system prompt first, then the latest. */
function sortLikely(kept: readonly PastTurn[], turn: Turn): readonly PastTurn[] {
  if (kept.length < 2) return kept;
  const ranks = kept.map((each) => ({ each, isSame: Number(hasSameOpening(each, turn)) }));
  const sorted = ranks.toSorted((a, b) => b.isSame - a.isSame || b.each.turn.at - a.each.turn.at);
  return sorted.map(({ each }) => each);
}

function hasSameOpening({ turn: before }: PastTurn, turn: Turn): boolean {
  if (before.model !== turn.model || before.channel !== turn.channel) return false;
  const [old, now] = [before.prompt, turn.prompt];
  const [oldTools, tools] = [old.parts[0], now.parts[0]];
  const [oldSystem, system] = [old.parts[1], now.parts[1]];
  return (
    oldTools.length === tools.length &&
    oldSystem.length === system.length &&
    countShared(oldTools, tools) === tools.length &&
    countSharedSystem(old, now) === system.length
  );
}

/** After the first change, a changed history goes on: with later messages of the earlier prompt, or past its end. */
function isBranch(kept: PastTurn, shared: number, turn: Turn, isOnly: boolean): boolean {
  const [before, now] = [kept.turn.prompt, turn.prompt];
  const old = before.parts[MESSAGES];
  if (kept.end.section < MESSAGES || shared >= kept.end.parts) return false;
  const later = new Set(now.parts[MESSAGES].slice(shared));
  if (old.slice(shared).some((part) => later.has(part))) return false;
  return (turn.inferred && !isOnly) || countMessages(now) <= countMessages(before);
}

/** The first message may have changed, or have been removed, or another one may have been put before it. A request for a
 *  title quotes a message, too. */
function findOverlapping(all: readonly PastTurn[], turn: Turn): PastTurn | null {
  const kept = all.filter((each) => hasAlikeTools(each, turn));
  if (kept.length === 0) return null;
  const now = new Set(turn.prompt.parts[MESSAGES].slice());
  let best: PastTurn | null = null;
  let most = 0;
  for (const each of kept) {
    const count = each.turn.prompt.parts[MESSAGES].slice().filter((part) => now.has(part)).length;
    if (count < most || count === 0) continue;
    best = each;
    most = count;
  }
  return best;
}

/** A conversation of one message, which changed. Only a longer prompt continues it; any other begins a new one. */
function findSingle(kept: readonly PastTurn[], turn: Turn, isOnly: boolean): PastTurn | null {
  const last = kept.at(-1);
  if (last === undefined || (turn.inferred && !isOnly) || !hasSameOpening(last, turn)) return null;
  const isLonger = countMessages(turn.prompt) > countMessages(last.turn.prompt);
  return isLonger && turn.prompt.parts[0].length + turn.prompt.parts[1].length > 0 ? last : null;
}

/** Requests of one message each, of which only the opening was cached. It is the same, or only its digits changed. */
function findOpening(kept: readonly PastTurn[], turn: Turn): PastTurn | null {
  const { shapes, parts } = turn.prompt;
  const isAlike = ({ turn: { prompt: before } }: PastTurn): boolean =>
    before.parts[0].length === parts[0].length && Bun.deepEquals(before.shapes.slice(), shapes.slice());
  return kept.findLast((each) => each.end.section < MESSAGES && isAlike(each)) ?? null;
}
