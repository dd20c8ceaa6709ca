// The order in which channels are tried: first those that list the model, if any are known to. Among these, first the
// conversation's current channel, then by priority. Channels of equal priority come in random order by weight. Pure.

import type { Candidate } from "../intake/match.ts";

/** `candidates` are sorted by priority. `current` is the name of the conversation's channel. */
export function orderCandidates(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  const listed = candidates.filter(({ isListed }) => isListed === true);
  if (listed.length === 0 || listed.length === candidates.length)
    return orderEqual(candidates, current, random);
  const others = candidates.filter(({ isListed }) => isListed !== true);
  return [...orderEqual(listed, current, random), ...orderEqual(others, current, random)];
}

function orderEqual(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  const ordered = hasTie(candidates) ? shuffleByWeight(candidates, random) : candidates;
  const own = ordered.find(({ channel }) => channel.name === current);
  return own === undefined || own === ordered[0]
    ? ordered
    : [own, ...ordered.filter((other) => other !== own)];
}

/** True if two candidates have the same priority. */
export function hasTie(candidates: readonly Candidate[]): boolean {
  return candidates.some(
    ({ channel }, index) => index > 0 && channel.priority === candidates[index - 1]?.channel.priority,
  );
}

/** A channel of weight 3 comes first three times as often as one of weight 1. */
function shuffleByWeight(candidates: readonly Candidate[], random: () => number): Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, rank: -Math.log(1 - random()) / candidate.channel.weight }))
    .sort((a, b) => a.candidate.channel.priority - b.candidate.channel.priority || a.rank - b.rank)
    .map(({ candidate }) => candidate);
}
