// Promises that 0.2.0 broke, and what it did instead. Their tests fail with the executable of 0.2.0; all other tests pass.

export const CHANGED: Readonly<Record<number, string>> = {
  36: "It had the amounts of the removed key.",
  62: "A path with dots got 404.",
  76: "An answer that passed had the upstream's request-id or none.",
  86: "The error had no `resets_at`.",
  142: "A start logged that lines were gone, and wrote no mark.",
  156: "`channels --json` did not have what a plan paid today.",
  165: "A thread was left out where the request was converted.",
  196: "In a group with aliases, such a body passed where no alias applied.",
};
