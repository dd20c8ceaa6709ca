// Decides which parts of an answer are priced, and how sure they are.

import type { Basis, Outcome } from "./ledger/line.ts";
import { type Part, type Reading, sumTokens, type Tokens, type Usage, USAGE_KINDS } from "./usage.ts";

export interface Assessment {
  readonly basis: Exclude<Basis, "unpriced">;
  /** If empty with basis `exact`, nothing is charged. */
  readonly parts: readonly Part[];
  readonly estimated: readonly ("input" | "output")[];
  readonly suspect: string | null;
  /** The counts leave out output that was seen. */
  readonly lacksOutput?: true;
  /** Why the upstream charges nothing for this usage. */
  readonly unbilled?: string;
}

export interface EndedResponse {
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly reading: Reading | null;
  readonly streamed: boolean;
  readonly estimatedInput: number;
}

const NOTHING: Assessment = { basis: "exact", parts: [], estimated: [], suspect: null };
const UNKNOWN: Assessment = { ...NOTHING, basis: "unknown" };

/** Anthropic charges nothing for some refusals before any output. Only this kind is confirmed:
 *  https://docs.apiyi.com/en/faq/claude-content-safety-refusal (2026-09-29) */
const UNBILLED_REFUSALS: ReadonlySet<string | null> = new Set(["cyber"]);
export const UNBILLED_REFUSAL = "unbilled refusal";
const MAYBE_BILLED = "the upstream sent output before its error, and may charge for it";
const NO_USAGE = "the upstream reported no tokens for its answer";
const MAYBE_UNBILLED = "the upstream refused before any output, and may charge nothing";
const EXCESS = "the upstream reported more tokens than is usual for an answer";

export function assess(ended: EndedResponse): Assessment {
  const { status, reading } = ended;
  if (status !== null && status >= 400) return NOTHING;
  if (reading === null) return UNKNOWN;
  const assessment = assessEnd(ended, reading);
  const { faults = [] } = reading;
  const texts = listDoubts(reading, assessment.parts, ended.estimatedInput);
  if (texts.length === 0 || assessment === NOTHING || assessment.unbilled !== undefined) return assessment;
  // No amount follows from an unreadable count.
  if (assessment.basis !== "partial" && faults.some(({ basis }) => basis === "unknown"))
    return { ...UNKNOWN, suspect: texts.join("; ") };
  const suspect = [assessment.suspect, ...texts].filter((text) => text !== null).join("; ");
  const lacksOutput = faults.some((fault) => fault.lacksOutput);
  return { ...assessment, suspect, ...(lacksOutput && { lacksOutput }) };
}

function assessEnd(ended: EndedResponse, reading: Reading): Assessment {
  const { outcome, status, streamed, estimatedInput } = ended;
  if (status === null) return UNKNOWN;
  const tokens = sumTokens(reading.parts);
  // A search or picture without reported tokens is one `call`, charged if answered.
  if (tokens.hasCall)
    return outcome === "complete" && reading.final ? { ...NOTHING, parts: reading.parts } : UNKNOWN;
  if (outcome === "upstream_error") return assessFailed(reading, streamed, tokens);
  // A server that reports no usage, or zeros, may still have answered.
  if (reading.mayLackUsage === true && reading.hasText && tokens.all === 0)
    return assessBroken(reading, estimatedInput);
  if (reading.final) return assessFinal(reading, streamed, tokens);
  return outcome === "complete" ? assessReported(reading, tokens) : assessBroken(reading, estimatedInput);
}

function assessFailed(reading: Reading, streamed: boolean, tokens: Tokens): Assessment {
  const { parts, end, final, hasText } = reading;
  // In a JSON body or list, `final` is true even after an error.
  if (parts.length === 0 && (end === "error" || !final))
    return hasText ? { ...NOTHING, suspect: MAYBE_BILLED, lacksOutput: true } : NOTHING;
  return final ? assessFinal(reading, streamed, tokens) : assessReported(reading, tokens);
}

/** An estimate of fewer tokens is too rough to doubt a report. */
const MIN_DOUBTED_OUTPUT = 256;
const MAX_ESTIMATE_RATIO = 8;
const MAX_ORDINARY_TOKENS = 1_000_000;

function listDoubts({ faults = [] }: Reading, parts: readonly Part[], estimatedInput: number): string[] {
  const texts = faults.map(({ text }) => text);
  const { prompt, output } = sumTokens(parts);
  const most = Math.max(MAX_ORDINARY_TOKENS, MAX_ESTIMATE_RATIO * estimatedInput);
  if (prompt > most || output > MAX_ORDINARY_TOKENS) texts.push(EXCESS);
  return texts;
}

function findMissing({ hasText, estimatedOutput }: Reading, { prompt, output }: Tokens): string | null {
  if (hasText && output === 0) return "the upstream reported no output tokens for the output that was seen";
  if (output > 0 && prompt === 0) return "the upstream reported no tokens for the prompt";
  return hasText && estimatedOutput > Math.max(MIN_DOUBTED_OUTPUT, MAX_ESTIMATE_RATIO * output)
    ? "the upstream reported far fewer output tokens than the output that was seen"
    : null;
}

/** Zeros are believed only if a stream without output reports them. */
function assessFinal(reading: Reading, streamed: boolean, tokens: Tokens): Assessment {
  const { parts, estimatedOutput, stored, hasText } = reading;
  const refusal = hasText ? undefined : reading.refusal;
  if (refusal !== undefined && UNBILLED_REFUSALS.has(refusal.category))
    return { ...NOTHING, parts, unbilled: UNBILLED_REFUSAL };
  if (refusal !== undefined) return { ...NOTHING, parts, suspect: MAYBE_UNBILLED };
  if (tokens.all > 0) {
    const suspect = findMissing(reading, tokens);
    const known = { basis: "exact", parts, estimated: NOTHING.estimated, suspect } as const;
    return suspect === null ? known : { ...known, lacksOutput: true };
  }
  const reported = parts.some(({ usage }) => USAGE_KINDS.some((kind) => usage[kind] === 0));
  if (reported && streamed && estimatedOutput === 0) return { ...NOTHING, parts };
  if (stored?.goesOn === true) return UNKNOWN;
  return { ...UNKNOWN, suspect: NO_USAGE };
}

export function describePaidTwice(channels: readonly string[]): string {
  const names = channels.map((name) => `"${name}"`).join(", ");
  return `the request may have been paid ${channels.length === 2 ? "twice" : `${channels.length} times`}: by ${names}`;
}

/** For an answer that ended before its final usage report.
 *  Limits also count output that was seen and not reported. */
function assessReported({ parts, estimatedOutput, hasText }: Reading, { output }: Tokens): Assessment {
  if (parts.length === 0) return hasText ? { ...UNKNOWN, suspect: NO_USAGE } : UNKNOWN;
  const reported: Assessment = { ...NOTHING, basis: "partial", parts };
  return estimatedOutput > output ? { ...reported, lacksOutput: true } : reported;
}

/** For an answer that broke off. If more output was seen than reported,
 *  an estimate of it replaces the reported count. */
function assessBroken(reading: Reading, estimatedInput: number): Assessment {
  const { parts, estimatedOutput } = reading;
  const last = parts.at(-1);
  if (last === undefined && estimatedOutput === 0) return UNKNOWN;
  const { calls: _calls, ...part }: Part = last ?? { model: null, pass: "message", usage: {} };
  const unread = sumTokens([part]).prompt === 0;
  const grown = estimatedOutput > (part.usage.output ?? 0);
  const usage: Usage = {
    ...part.usage,
    ...(unread ? { input: estimatedInput } : {}),
    ...(grown ? { output: estimatedOutput } : {}),
  };
  return {
    basis: "partial",
    parts: [...parts.slice(0, -1), { ...part, usage }],
    estimated: [...(unread ? (["input"] as const) : []), ...(grown ? (["output"] as const) : [])],
    suspect: null,
  };
}
