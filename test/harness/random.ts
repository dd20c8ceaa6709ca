/** Returns a function that gives numbers from 0 to 1: with the same seed, the same numbers in every run. */
export function openDice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
