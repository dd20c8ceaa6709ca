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

/** Sorts differences into wanted and unexpected ones. */
export class Verdict {
  readonly #counts = WANTED.map(() => 0);
  unexpected = 0;

  /** Describes the unexpected ones. */
  add(differences: readonly Difference[]): string {
    const unexpected = differences.filter((difference) => {
      const index = WANTED.findIndex((each) => fits(each, difference));
      if (index >= 0) this.#counts[index]! += 1;
      return index < 0;
    });
    this.unexpected += unexpected.length;
    const lines: string[] = [];
    for (const [kind, list] of Map.groupBy(unexpected, ({ where }) => kindOf(where))) {
      lines.push(`${list.length} × ${kind}`);
      for (const { where, old, new: fresh } of list.slice(0, SHOWN))
        lines.push(`  ${where}`, `    - ${old}`, `    + ${fresh}`);
    }
    return lines.join("\n");
  }

  /** `isAll`: nothing was left out, so each entry should match something. */
  conclude(isAll: boolean): string {
    const lines: string[] = [];
    for (const [index, { why }] of WANTED.entries())
      if (this.#counts[index]! > 0) lines.push(`wanted, ${this.#counts[index]} times: ${why}`);
      else if (isAll) lines.push(`this entry of wanted.ts matches nothing: ${why}`);
    return [...lines, `${this.unexpected} unexpected differences`].join("\n");
  }
}

function fits({ where, old = /^/, new: fresh = /^/ }: Wanted, difference: Difference): boolean {
  return where.test(difference.where) && old.test(difference.old) && fresh.test(difference.new);
}
