// One form for all agents' logs. A response in several rows or files counts once.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { readLines } from "../ledger/reader.ts";
import { type Part, type Reading, sumUsage, type Tariff, type Usage } from "../usage.ts";

export const LOGGING_TOOLS = ["claude-code", "codex", "gemini-cli", "opencode"] as const;
export type LoggingTool = (typeof LOGGING_TOOLS)[number];

export type UsageOf = Readonly<
  Record<
    "anthropic" | "openai" | "google",
    (reported: unknown) => Pick<Reading, "parts" | "tariff" | "faults">
  >
>;

export interface LogEntry {
  readonly tool: LoggingTool;
  /** Absent: the tool does not log it. */
  readonly requestId?: string;
  readonly session: string;
  /** Absent: the main agent. */
  readonly agent?: string;
  /** The folder in which the tool worked. Empty: not logged. */
  readonly project: string;
  readonly model: string;
  readonly time: number;
  readonly provider?: string;
  readonly usage: Usage;
  /** Several passes or calls. Their sum is `usage`. */
  readonly parts?: readonly Part[];
  readonly tariff: Tariff;
  /** `partial`: logged before the end. `unknown`: unreadable counts. */
  readonly basis: "exact" | "partial" | "unknown";
}

export interface LogRow extends Omit<LogEntry, "time" | "usage" | "parts" | "tariff" | "basis"> {
  readonly time: unknown;
  readonly words: keyof UsageOf;
  readonly reported: unknown;
  readonly isCut?: boolean;
}

export type Row = Readonly<Record<string, unknown>>;

const MAX_TEXT_LENGTH = 1024;
const [FIRST_MS, END_MS] = [Date.UTC(2020), Date.UTC(2100)];

/** What is not a short text counts as missing. */
export function readText(value: unknown): string {
  return typeof value === "string" && value.length <= MAX_TEXT_LENGTH ? value : "";
}

export class History {
  readonly entries = new Map<string, LogEntry>();
  damaged = 0;
  tooLong = 0;
  readonly unread: string[] = [];
  readonly #usageOf: UsageOf;

  constructor(usageOf: UsageOf) {
    this.#usageOf = usageOf;
  }

  /** A response may have several rows. Its counts come from the row with the most output, because output
   *  grows. Names and time come from the first row, because a copied row may have others. */
  add(id: string, { words, reported, isCut = false, time: named, ...names }: LogRow): void {
    const counted = describeReading(this.#usageOf[words](reported), isCut);
    const time = Math.floor(typeof named === "string" ? Date.parse(named) : Number(named));
    const known = this.entries.get(id);
    if (counted === null || (known?.usage.output ?? 0) > (counted.usage.output ?? 0)) return;
    if (id === "" || !(time >= FIRST_MS && time < END_MS)) this.damaged += 1;
    else this.entries.set(id, { ...(known ?? { ...names, time }), ...counted });
  }
}

function describeReading(
  { parts, tariff, faults = [] }: ReturnType<UsageOf["openai"]>,
  isCut: boolean,
): Pick<LogEntry, "usage" | "parts" | "basis" | "tariff"> | null {
  if (parts.length === 0 && faults.length === 0) return null;
  if (faults.some(({ basis }) => basis === "unknown")) return { usage: {}, tariff, basis: "unknown" };
  const [part, other] = parts;
  const isSimple = other === undefined && part?.calls === undefined && part?.model === null;
  const basis = isCut || faults.some(({ lacksOutput }) => lacksOutput) ? "partial" : "exact";
  return { usage: sumUsage(parts), ...(!isSimple && { parts }), tariff, basis };
}

const MAX_LINE_LENGTH = 16 << 20;

/** An incomplete last line is not counted as damaged. */
export function scanRows(path: string, words: readonly string[], history: History, see: (row: Row) => void) {
  for (const { text, whole } of readLines(path)) {
    if (text.length > MAX_LINE_LENGTH) history.tooLong += 1;
    else if (words.some((word) => text.includes(word))) {
      const row = parseJson(text);
      if (isObject(row)) see(row);
      else if (whole) history.damaged += 1;
    }
  }
}
