// What the logs of agents say, as one form for all of them: an entry for each response. The same response stands in several
// rows, and in the files of sessions that were forked or resumed. It is counted once.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { readLines } from "../ledger/reader.ts";
import { type Part, type Reading, sumUsage, type Tariff, type Usage } from "../usage.ts";

/** As the ledger names them. */
export const LOGGING_TOOLS = ["claude-code", "codex", "gemini-cli", "opencode"] as const;
export type LoggingTool = (typeof LOGGING_TOOLS)[number];

/** By the maker in whose words the usage is. */
export type UsageOf = Readonly<
  Record<
    "anthropic" | "openai" | "google",
    (reported: unknown) => Pick<Reading, "parts" | "tariff" | "faults">
  >
>;

export interface LogEntry {
  readonly tool: LoggingTool;
  /** The upstream's own id of the request; absent: the tool does not log it. */
  readonly requestId?: string;
  readonly session: string;
  /** Absent: the session's main agent. */
  readonly agent?: string;
  /** The folder in which the tool worked. Empty, as the model: the log does not say. */
  readonly project: string;
  readonly model: string;
  /** In ms. */
  readonly time: number;
  /** The provider that the tool names. */
  readonly provider?: string;
  readonly usage: Usage;
  /** Present if the response was made in several passes or calls: together `usage`. */
  readonly parts?: readonly Part[];
  readonly tariff: Tariff;
  /** `partial`: the log was written before the response ended. `unknown`: its counts cannot be read. */
  readonly basis: "exact" | "partial" | "unknown";
}

/** What a row says of a response. Its time and usage are as they stand there. */
export interface LogRow extends Omit<LogEntry, "time" | "usage" | "parts" | "tariff" | "basis"> {
  readonly time: unknown;
  readonly words: keyof UsageOf;
  readonly reported: unknown;
  readonly isCut?: boolean;
}

export type Row = Readonly<Record<string, unknown>>;

const MAX_TEXT_LENGTH = 1024;
const [FIRST_MS, END_MS] = [Date.UTC(2020), Date.UTC(2100)];

/** Text of a log that names something. Everything else counts as missing. */
export function readText(value: unknown): string {
  return typeof value === "string" && value.length <= MAX_TEXT_LENGTH ? value : "";
}

/** In ms. Null if it is not a time of our days. */
function readTime(value: unknown): number | null {
  const ms = typeof value === "string" ? Date.parse(value) : value;
  return typeof ms === "number" && ms >= FIRST_MS && ms < END_MS ? Math.floor(ms) : null;
}

/** All that was read. */
export class History {
  readonly entries = new Map<string, LogEntry>();
  /** Rows that are not JSON, or that count something and have no time. */
  damaged = 0;
  /** Lines that are too long to be read. */
  tooLong = 0;
  /** Files that cannot be read, and why. */
  readonly unread: string[] = [];
  readonly #usageOf: UsageOf;

  constructor(usageOf: UsageOf) {
    this.#usageOf = usageOf;
  }

  /** `id`: of the response. Of rows with the same id, that with the most output counts: output grows from row to row. The
   *  names and the time are those of the first row: a copy of it may have others. */
  add(id: string, { words, reported, isCut = false, time: named, ...names }: LogRow): void {
    const counted = describeReading(this.#usageOf[words](reported), isCut);
    const time = readTime(named);
    const known = this.entries.get(id);
    if (counted === null || (known?.usage.output ?? 0) > (counted.usage.output ?? 0)) return;
    if (id === "" || time === null) this.damaged += 1;
    else this.entries.set(id, { ...(known ?? { ...names, time }), ...counted });
  }
}

/** Null: it counts nothing. Most responses have one part, and its usage says all. */
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

/** No tool writes such a line with counts in it. */
const MAX_LINE_LENGTH = 16 << 20;

/** Passes the rows whose lines contain one of the words. A last line may be being written. */
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
