// Reads token counts, and notes those that cannot be trusted: a count that cannot be read is never taken for zero.

import type { CountFault, Usage } from "../../billing/usage.ts";
import { getCount, getField } from "../../lib/json/json.ts";

/** What is wrong with a count, and what that makes of the line. Without a total the amount is unknown. Without a detail the
 *  tokens are still counted, but perhaps at the wrong price. */
const FAULTS = {
  total_unreadable: { basis: "unknown", text: "cannot be read" },
  total_missing: { basis: "unknown", text: "is missing beside the other counts" },
  output_missing: { basis: "suspect", text: "is missing beside the other counts", lacksOutput: true },
  usage_early: { basis: "suspect", text: "did not come again when the output ended", lacksOutput: true },
  detail_unreadable: { basis: "suspect", text: "cannot be read" },
  detail_too_large: { basis: "suspect", text: "is more than the total that includes it" },
} as const;

export class CountReader {
  readonly #faults: CountFault[] = [];

  /** Each fault once, or undefined. */
  get faults(): readonly CountFault[] | undefined {
    return this.#faults.length === 0 ? undefined : this.#faults;
  }

  /** A count that the amount depends on. Undefined if it is absent or cannot be read. */
  readTotal(from: unknown, name: string): number | undefined {
    return this.#read(from, name, "total_unreadable");
  }

  /** A count that only divides a total. */
  readDetail(from: unknown, name: string): number {
    return this.#read(from, name, "detail_unreadable") ?? 0;
  }

  note(kind: keyof typeof FAULTS, name: string): void {
    const fault: CountFault = { ...FAULTS[kind], text: `the upstream's ${name} ${FAULTS[kind].text}` };
    if (!this.#faults.some((known) => known.text === fault.text)) this.#faults.push(fault);
  }

  /** Null means absent in every dialect. */
  #read(from: unknown, name: string, kind: "total_unreadable" | "detail_unreadable"): number | undefined {
    const value = getField(from, name) ?? undefined;
    const count = getCount(value);
    if (value !== undefined && count === undefined) this.note(kind, name);
    return count;
  }
}

/** Drops the kinds with a zero count, except input and output. */
export function dropZeros(usage: Usage): Usage {
  const counted = Object.entries(usage).filter(
    ([kind, count]) => count > 0 || kind === "input" || kind === "output",
  );
  return Object.fromEntries(counted);
}
