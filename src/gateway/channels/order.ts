// The order in which channels are tried: first those for which nothing is converted, then those that list the model, if any are known to. Among these, first the
// conversation's current channel, then by priority. Channels of equal priority come in random order by weight. Pure.

import type { Candidate } from "../intake/match.ts";

/** `candidates` are sorted by priority. `current` is the name of the conversation's channel. */
export function orderCandidates(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  if (candidates.some(isConverted) && !candidates.every(isConverted)) {
    const own = candidates.filter((candidate) => !isConverted(candidate));
    const others = candidates.filter(isConverted);
    return [...orderCandidates(own, current, random), ...orderCandidates(others, current, random)];
  }
  if (!candidates.some(isListed) || candidates.every(isListed))
    return orderEqual(candidates, current, random);
  const listed = candidates.filter(isListed);
  const others = candidates.filter((candidate) => !isListed(candidate));
  return [...orderEqual(listed, current, random), ...orderEqual(others, current, random)];
}

function isConverted(candidate: Candidate): boolean {
  return candidate.isConverted === true;
}

function isListed(candidate: Candidate): boolean {
  return candidate.isListed === true;
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
