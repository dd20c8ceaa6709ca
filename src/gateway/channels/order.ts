// The order in which channels are tried: first those that list the model, if any are known to; among these, first those that
// serve the request as it is. Then the conversation's current channel, then by priority. Channels of equal priority come in
// random order by weight. Pure.

import type { Candidate } from "../intake/match.ts";

/** `candidates` are sorted by priority. `current` is the name of the conversation's channel. */
export function orderCandidates(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  return divide(candidates, isListed, (some) =>
    divide(some, isAsItIs, (equal) => orderEqual(equal, current, random)),
  );
}

function divide(
  candidates: readonly Candidate[],
  isFirst: (candidate: Candidate) => boolean,
  order: (candidates: readonly Candidate[]) => readonly Candidate[],
): readonly Candidate[] {
  if (!candidates.some(isFirst) || candidates.every(isFirst)) return order(candidates);
  const others = candidates.filter((candidate) => !isFirst(candidate));
  return [...order(candidates.filter(isFirst)), ...order(others)];
}

function isListed(candidate: Candidate): boolean {
  return candidate.isListed === true;
}

function isAsItIs(candidate: Candidate): boolean {
  return candidate.isConverted !== true;
}

function orderEqual(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  const ordered = hasTie(candidates) ? shuffleByWeight(candidates, random) : candidates;
  const own = current === null ? undefined : ordered.find(({ channel }) => channel.name === current);
  return own === undefined || own === ordered[0]
    ? ordered
    : [own, ...ordered.filter((other) => other !== own)];
}

/** True if two candidates have the same priority. */
export function hasTie(candidates: readonly Candidate[]): boolean {
  let before: number | null = null;
  for (const { channel } of candidates) {
    if (channel.priority === before) return true;
    before = channel.priority;
  }
  return false;
}

/** A channel of weight 3 comes first three times as often as one of weight 1. */
function shuffleByWeight(candidates: readonly Candidate[], random: () => number): Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, rank: -Math.log(1 - random()) / candidate.channel.weight }))
    .sort((a, b) => a.candidate.channel.priority - b.candidate.channel.priority || a.rank - b.rank)
    .map(({ candidate }) => candidate);
}
