// The differences between 0.2.0 and this version that are wanted. Each has its reason; an entry without a difference is reported.

import type { Difference } from "./compare.ts";

export interface Wanted {
  readonly why: string;
  readonly where: RegExp;
  /** Both values have to match, if these are given. */
  readonly old?: RegExp;
  readonly new?: RegExp;
}

const WANTED: readonly Wanted[] = [
  {
    why: "P76: every answer to a messages client has request-id",
    where: /^traffic\/.*\/client\/field\/request-id$/,
    old: /^\(absent\)$/,
  },
];

/** At most this many of one kind are printed. */
const SHOWN = 4;

/** What is left of a place without the names of scenarios and numbers: its kind. */
const kindOf = (where: string): string => where.replace(/^(\w+)\/[^/]*/, "$1").replaceAll(/\d+/g, "N");

/** Sorts differences into wanted and unexpected ones. `isAll`: nothing was left out, so each entry should match. */
export function settle(
  differences: readonly Difference[],
  isAll: boolean,
): { unexpected: number; report: string } {
  const counts = WANTED.map(() => 0);
  const unexpected = differences.filter((difference) => {
    const index = WANTED.findIndex(
      ({ where, old = /^/, new: fresh = /^/ }) =>
        where.test(difference.where) && old.test(difference.old) && fresh.test(difference.new),
    );
    if (index >= 0) counts[index]! += 1;
    return index < 0;
  });
  const kinds = Map.groupBy(unexpected, ({ where }) => kindOf(where));
  const lines: string[] = [];
  for (const [kind, list] of kinds) {
    lines.push(`${list.length} × ${kind}`);
    for (const { where, old, new: fresh } of list.slice(0, SHOWN))
      lines.push(`  ${where}`, `    - ${old}`, `    + ${fresh}`);
  }
  for (const [index, { why }] of WANTED.entries())
    if (counts[index]! > 0) lines.push(`wanted, ${counts[index]} times: ${why}`);
    else if (isAll) lines.push(`this entry of wanted.ts matches nothing: ${why}`);
  lines.push(`${unexpected.length} unexpected differences`);
  return { unexpected: unexpected.length, report: lines.join("\n") };
}
