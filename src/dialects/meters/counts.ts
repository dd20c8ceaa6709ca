// Reads token counts, and notes those that cannot be trusted: a count that cannot be read is never taken for zero.

import type { CountFault, Usage } from "../../billing/usage.ts";
import { getCount, getField, isObject } from "../../lib/json/json.ts";

/** What is wrong with a count, and what that makes of the line. Without a total the amount is unknown. Without a detail the
 *  tokens are still counted, but perhaps at the wrong price. */
const FAULTS = {
  total_unreadable: { basis: "unknown", text: "cannot be read" },
  total_missing: { basis: "unknown", text: "is missing beside the other counts" },
  output_missing: { basis: "suspect", text: "is missing beside the other counts", lacksOutput: true },
  usage_early: { basis: "suspect", text: "did not come again when the output ended", lacksOutput: true },
  detail_unreadable: { basis: "suspect", text: "cannot be read" },
  total_differs: { basis: "suspect", text: "is far from the sum of the other counts" },
  unknown_calls: { basis: "suspect", text: "counts something whose price is not known" },
  detail_too_large: { basis: "suspect", text: "is more than the total that includes it" },
} as const;

/** A name from elsewhere is cut. */
const MAX_NAME_LENGTH = 60;

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

  /** A total beside its parts. A small difference can be a matter of rounding; a large one is usage that is in no part. */
  compareTotal(from: unknown, name: string, parts: readonly (number | undefined)[]): void {
    const total = this.readDetail(from, name);
    // A fault of a part is reported already.
    if (this.#faults.length > 0) return;
    let sum = 0;
    for (const part of parts) sum += part ?? 0;
    if (total > 0 && Math.abs(total - sum) > total / 10) this.note("total_differs", name);
  }

  /** A tool that is newer than this program may have a fee. */
  noteUnknownCalls(from: unknown, name: string, known: { has(tool: string): boolean }): void {
    const called = getField(from, name);
    if (!isObject(called)) return;
    for (const tool in called) {
      const count = called[tool];
      if (known.has(tool) || typeof count !== "number" || count === 0) continue;
      this.note("unknown_calls", `${name}.${tool.slice(0, MAX_NAME_LENGTH)}`);
      return;
    }
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
