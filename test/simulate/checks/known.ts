// What the simulator finds and nobody has fixed yet. It is told and counted, and fails nothing: whoever fixes it
// takes its entry away. An entry names what is seen as narrowly as it can, so that it hides nothing else.

import type { Accusation } from "../run.ts";

interface Known {
  readonly check: string;
  readonly seen: RegExp;
  readonly why: string;
}

const KNOWN: readonly Known[] = [
  {
    check: "limits",
    seen: /prompts of more than/,
    why: "answers whose usage is not known count for nothing against USD limits (D3)",
  },
  {
    check: "chain",
    seen: /after a rotation and a power cut/,
    why: "a power cut right after a rotation can take the end of the rotated file and leave the lines of the next one",
  },
  {
    check: "torn line",
    seen: /has bytes that were never written|ledger-\d{4}-\d{2}\S* does not end with a whole line/,
    why: "after a power cut only the last lines of the growing file are mended, not one in the middle of what was not synced, nor the end of the file before",
  },
];

export function findKnown({ check, text }: Accusation): string | null {
  return KNOWN.find((known) => known.check === check && known.seen.test(text))?.why ?? null;
}
