// The order in which channels are tried: by priority, then by chance and weight,
// a conversation's own channel before all. Pure.

import type { Candidate } from "../intake/match.ts";

/** `candidates` come by priority. */
export function orderCandidates(
  candidates: readonly Candidate[],
  seat: string | null,
  random: () => number,
): readonly Candidate[] {
  const ordered = hasTie(candidates) ? drawLots(candidates, random) : candidates;
  const own = ordered.find(({ channel }) => channel.name === seat);
  return own === undefined || own === ordered[0]
    ? ordered
    : [own, ...ordered.filter((other) => other !== own)];
}

/** Chance has a say. */
export function hasTie(candidates: readonly Candidate[]): boolean {
  return candidates.some(
    ({ channel }, index) => index > 0 && channel.priority === candidates[index - 1]?.channel.priority,
  );
}

/** A channel of weight 3 comes first three times as often as one of weight 1. */
function drawLots(candidates: readonly Candidate[], random: () => number): Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, lot: -Math.log(1 - random()) / candidate.channel.weight }))
    .sort((a, b) => a.candidate.channel.priority - b.candidate.channel.priority || a.lot - b.lot)
    .map(({ candidate }) => candidate);
}
