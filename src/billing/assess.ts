// What an answer is billed for, from how it ended and what its meter read: the
// parts to price, and how sure they are. Pure; the price of it is charge.ts.

import type { Basis, Outcome } from "./ledger-line.ts";
import type { Part, Reading, Usage } from "./usage.ts";

export interface Assessment {
  readonly basis: Exclude<Basis, "unpriced">;
  /** Empty with basis `exact`: nothing was used, and nothing is charged. */
  readonly parts: readonly Part[];
  /** Kinds that were estimated, because the answer broke off before they were told. */
  readonly estimated: readonly ("input" | "output")[];
  /** Why the figures want a person's eye. */
  readonly suspect: string | null;
}

export interface Ended {
  readonly outcome: Outcome;
  /** Null: no answer came. */
  readonly status: number | null;
  readonly reading: Reading | null;
  /** The client asked for a stream; else its answer is one body, which is never without content. */
  readonly streamed: boolean;
  /** Tokens of the prompt, by its size. */
  readonly estimatedInput: number;
}

const NOTHING: Assessment = { basis: "exact", parts: [], estimated: [], suspect: null };
const UNKNOWN: Assessment = { ...NOTHING, basis: "unknown" };

export function assess({ outcome, status, reading, streamed, estimatedInput }: Ended): Assessment {
  // Platforms charge nothing for an error status.
  if (status !== null && status >= 400) return NOTHING;
  if (status === null || reading === null) return UNKNOWN;
  if (reading.final) return assessFinal(reading, streamed);
  if (outcome === "upstream_error") {
    return { ...NOTHING, basis: reading.parts.length === 0 ? "exact" : "partial", parts: reading.parts };
  }
  if (outcome === "complete") return assessReported(reading);
  return assessBroken(reading, estimatedInput);
}

/** No report, or one of nothing, is believed only where nothing was said either. */
function assessFinal({ parts, estimatedOutput }: Reading, streamed: boolean): Assessment {
  if (parts.some(({ usage }) => !isZero(usage))) return { ...NOTHING, parts };
  if (parts.length > 0 && streamed && estimatedOutput === 0) return { ...NOTHING, parts };
  return { ...UNKNOWN, suspect: "the upstream reported no tokens for its answer" };
}

function assessReported({ parts }: Reading): Assessment {
  return parts.length === 0 ? UNKNOWN : { ...NOTHING, basis: "partial", parts };
}

function isZero(usage: Usage): boolean {
  return Object.values(usage).every((count) => count === 0);
}

/** Cut short: what was reported, with the output seen so far where it is more than was reported. */
function assessBroken(reading: Reading, estimatedInput: number): Assessment {
  const { parts, estimatedOutput } = reading;
  const last = parts.at(-1);
  if (last === undefined) {
    if (estimatedOutput === 0) return UNKNOWN;
    const usage: Usage = { input: estimatedInput, output: estimatedOutput };
    return {
      basis: "partial",
      parts: [{ model: null, pass: "message", usage }],
      estimated: ["input", "output"],
      suspect: null,
    };
  }
  if (estimatedOutput <= (last.usage.output ?? 0)) return { ...NOTHING, basis: "partial", parts };
  const grown: Part = { ...last, usage: { ...last.usage, output: estimatedOutput } };
  return { basis: "partial", parts: [...parts.slice(0, -1), grown], estimated: ["output"], suspect: null };
}
