// What can be wrong with a ledger, in words for people: what was found, and what to do.

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
  "Compare these lines with a backup and restore them: a line cannot be computed from the others.";
const REPORT =
  "Compare the line with a backup. If the backup has the same line, the gateway wrote it: please report it as a bug.";

/** `before`: where the line before it is. */
export function describeBreak(before: string): Problem {
  return {
    problem: `it does not follow ${before}: that line was changed, lines between them are missing, or this one does not belong here`,
    advice: RESTORE,
  };
}

export const OLDER_MISSING: Problem = {
  problem: "it follows a line that is missing: older lines are not here",
  advice:
    "Put the older files back beside this one. If they are kept elsewhere, run this again with --partial.",
};

export const NO_LINE: Problem = {
  problem: "this is not a ledger line: it is torn or overwritten",
  advice: RESTORE,
};

export const TORN_IN_MIDDLE: Problem = { problem: "the file ends in a torn line", advice: RESTORE };

export const TORN_END: Problem = {
  problem: "the last line is torn: its end is missing",
  advice: "The next start of the gateway removes the torn line and keeps it in a file that ends in .torn.",
};

/** An editor may leave a whole line like this. */
export const UNENDED: Problem = {
  problem: "the last line lacks its newline",
  advice: "The next start of the gateway adds it.",
};

export const END_MISSING: Problem = {
  problem: "the gateway wrote after a line that is missing: lines at the end are missing or changed",
  advice:
    "Restore the end from a backup. If a power cut took them, the lines are lost, and the next start of the gateway continues here.",
};

/** Lines are missing at the end, and no power cut can be the reason. */
export const END_REMOVED: Problem = {
  problem: END_MISSING.problem,
  advice:
    "Restore the end from a backup. No power cut took these lines: they were on the disk, or the machine has not stopped since. The gateway goes on, and its next line keeps the gap visible until `gateway ledger accept`.",
};

/** A start of the gateway found it. */
export function describeMark(mark: string): Problem {
  return {
    problem: `a start of the gateway found: ${mark}`,
    advice:
      "Compare the lines before it with a backup. `gateway ledger accept` accepts the ledger as it is; until then, limits count the larger amount.",
  };
}

export const JOURNAL_CUT: Problem = {
  problem:
    "the journal does not name this line, so another program wrote it, or the journal has lost records",
  advice:
    "Compare the line with a backup. Restore the journal, the file whose name ends in .open, if you changed it: other requests that it named may have no line. A power cut can damage it, too.",
};

export const END_NOT_NOTED =
  "The journal is not next to this ledger. Lines that were removed at its end would not be found.";

export const INDEX_DIFFERS: Problem = {
  problem: "the index has other sums than the ledger, so reports may be wrong",
  advice: "Remove the index, the file whose name ends in .index. It is made again from the ledger.",
};

export const ANCHOR_MISSED: Problem = {
  problem:
    "the ledger does not contain the anchor's line at its place: lines were changed, removed or added before it",
  advice: "Compare the ledger with a backup from the time of the anchor.",
};

export const TWICE: Problem = { problem: "this request has a line already", advice: REPORT };

export function describeFault(problem: string): Problem {
  return { problem, advice: REPORT };
}
