// What can be wrong with a ledger, in words for people: what was found, and what to do about it.

export interface Problem {
  readonly problem: string;
  /** What to do. */
  readonly advice: string;
}

export interface Finding extends Problem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly id: string | null;
}

const RESTORE =
  "Compare these lines with a backup and restore them: no line can be made again from the others.";
const REPORT =
  "Compare the line with a backup. If it says the same, the gateway wrote it so: please report it as a bug.";

/** `before`: the place of the line before it. */
export function describeBreak(before: string): Problem {
  return {
    problem: `it does not follow ${before}: that line was changed, lines between them are missing, or this one does not belong here`,
    advice: RESTORE,
  };
}

export const OLDER_MISSING: Problem = {
  problem: "it follows a line that is not here: older lines are missing",
  advice:
    "Put the older files back beside this one; where they are kept elsewhere, run this again with --partial.",
};

export const NO_LINE: Problem = {
  problem: "this is no line of a ledger: it is torn or overwritten",
  advice: RESTORE,
};

export const TORN_IN_MIDDLE: Problem = { problem: "the file ends in a torn line", advice: RESTORE };

export const TORN_END: Problem = {
  problem: "the last line is torn: it has no end",
  advice: "The next start of the gateway takes the torn line off, and keeps it in a file that ends in .torn.",
};

/** As an editor may leave it: a whole line otherwise. */
export const UNENDED: Problem = {
  problem: "the last line lacks its newline",
  advice: "The next start of the gateway adds it.",
};

export const END_MISSING: Problem = {
  problem: "the gateway had written on from a line that is not here: lines at the end are missing or changed",
  advice:
    "Restore the end from a backup. If a power cut took it, the lines are lost, and the next start of the gateway goes on from here.",
};

export const TWICE: Problem = { problem: "this request has a line already", advice: REPORT };

export function describeFault(problem: string): Problem {
  return { problem, advice: REPORT };
}
