// Finds the earlier request that a prompt continues.

import type { Prompt } from "../../dialects/prompt/prompt.ts";
import { countMessages, countSharedMessages, hasSameOpening } from "./change.ts";
import type { PastTurn, CacheTurn } from "./turn.ts";

export interface Continuation {
  readonly kept: PastTurn;
  /** The user went back. */
  readonly branched: boolean;
}

/** `all` ends with the turn used last. */
export function findContinuation(all: readonly PastTurn[], turn: CacheTurn): Continuation | null {
  const { prompt } = turn;
  if (prompt.continues !== null) {
    const named = all.find((each) => each.turn.responseId === prompt.continues);
    return named === undefined ? null : { kept: named, branched: false };
  }
  const isOnly = all.length === 1;
  const hasTools = (each: PastTurn): boolean => each.turn.prompt.tools > 0 === prompt.tools > 0;
  // A prompt is in the cache once its response has begun.
  const isReady = ({ turn: { agent, readyAt } }: PastTurn): boolean =>
    agent === turn.agent && readyAt <= turn.at;
  // A small request, such as for a title, has no tools and another model.
  const kept = all.filter((each) => isReady(each) && (each.turn.model === turn.model || hasTools(each)));
  const alikest = findAlikest(kept, turn, isOnly);
  if (alikest !== null) return alikest;
  const alike = kept.filter(hasTools);
  const found = findOverlapping(alike, prompt) ?? findSingle(kept, turn, isOnly) ?? findOpening(kept, prompt);
  return found === null ? null : { kept: found, branched: false };
}

/** A turn that goes on is preferred to one that the user left. */
function findAlikest(kept: readonly PastTurn[], turn: CacheTurn, isOnly: boolean): Continuation | null {
  let shared = 1;
  let alikest: PastTurn[] = [];
  for (const each of kept) {
    const { prompt } = each.turn;
    const count = prompt.continues === null ? countSharedMessages(prompt, turn.prompt) : 0;
    if (count > shared) alikest = [];
    if (count >= shared) alikest.unshift(each);
    shared = Math.max(shared, count);
  }
  const rankOf = (each: PastTurn): number => Number(continuesOpening(each, turn));
  if (alikest.length > 1) alikest.sort((a, b) => rankOf(b) - rankOf(a) || b.turn.at - a.turn.at);
  const continued = alikest.find((each) => !isBranch(each, shared, turn, isOnly));
  const best = continued ?? alikest[0];
  return best === undefined ? null : { kept: best, branched: continued === undefined };
}

function continuesOpening({ turn: before }: PastTurn, { model, channel, prompt }: CacheTurn): boolean {
  return before.model === model && before.channel === channel && hasSameOpening(before.prompt, prompt);
}

function listMessages({ parts, count, messages }: Prompt, from = 0): readonly number[] {
  return parts.slice(messages + from, count);
}

/** Whether the user went back to an earlier message.
 *  Such a prompt repeats no later message. */
function isBranch(
  { turn: before, end }: PastTurn,
  shared: number,
  turn: CacheTurn,
  isOnly: boolean,
): boolean {
  if (before.prompt.messages + shared >= end) return false;
  const isShorter = countMessages(turn.prompt) <= countMessages(before.prompt);
  if (!isShorter && (!turn.inferred || isOnly)) return false;
  const later = listMessages(turn.prompt, shared);
  return later.length === 0 || new Set(later).isDisjointFrom(new Set(listMessages(before.prompt, shared)));
}

/** Finds the turn that shares the most messages,
 *  also if the first ones have changed. */
function findOverlapping(kept: readonly PastTurn[], prompt: Prompt): PastTurn | null {
  const now = new Set(listMessages(prompt));
  const counts = kept.map(({ turn }) => listMessages(turn.prompt).filter((part) => now.has(part)).length);
  return kept[counts.lastIndexOf(Math.max(1, ...counts))] ?? null;
}

function findSingle(kept: readonly PastTurn[], turn: CacheTurn, isOnly: boolean): PastTurn | null {
  const last = kept.at(-1);
  if (last === undefined || (turn.inferred && !isOnly) || !continuesOpening(last, turn)) return null;
  const isLonger = countMessages(turn.prompt) > countMessages(last.turn.prompt);
  return isLonger && turn.prompt.messages > 0 ? last : null;
}

/** Finds a turn of which only the opening was cached.
 *  The openings may differ in digits. */
function findOpening(kept: readonly PastTurn[], { tools, shapes }: Prompt): PastTurn | null {
  const isAlike = ({ turn: { prompt }, end }: PastTurn): boolean =>
    end <= prompt.messages && prompt.tools === tools && Bun.deepEquals(prompt.shapes, shapes);
  return kept.findLast(isAlike) ?? null;
}
