// What the logs of agents say, as one form for all of them: an entry for each response. The same response stands in several
// rows, and in the files of sessions that were forked or resumed. It is counted once.

import { type Part, type Reading, sumUsage, type Tariff, type Usage } from "../usage.ts";

/** As the ledger names them. */
export const LOGGING_TOOLS = ["claude-code", "codex", "gemini-cli", "opencode"] as const;
export type LoggingTool = (typeof LOGGING_TOOLS)[number];

type ReadUsage = (usage: unknown) => Pick<Reading, "parts" | "tariff" | "faults">;
/** By the maker in whose words the usage is. */
export type UsageOf = Readonly<Record<"anthropic" | "openai" | "google", ReadUsage>>;

export interface LogEntry {
  readonly tool: LoggingTool;
  /** The upstream's own id of the request; null: the tool does not log it. */
  readonly requestId: string | null;
  readonly session: string;
  /** Empty: the session's main agent. */
  readonly agent: string;
  /** The folder in which the tool worked. Empty: the log does not say. */
  readonly project: string;
  /** In ms. */
  readonly time: number;
  /** Empty: the log does not say. */
  readonly model: string;
  /** The provider that the tool names; null: it names none. */
  readonly provider: string | null;
  readonly usage: Usage;
  /** Present if the response was made in several passes or calls: together `usage`. */
  readonly parts?: readonly Part[];
  readonly tariff: Tariff;
  /** `partial`: the log was written before the response ended. `unknown`: its counts cannot be read. */
  readonly basis: "exact" | "partial" | "unknown";
  /** Not one response: what the tool counted for the session beyond the responses that it logged. */
  readonly isRest?: true;
}

/** What a row says, before its usage is read. */
export interface LogRow extends Omit<LogEntry, "usage" | "parts" | "tariff" | "basis"> {
  readonly words: keyof UsageOf;
  /** As the upstream reported it. */
  readonly reported: unknown;
  readonly isCut?: boolean;
}

/** Text of a log that names something. Everything else counts as missing. */
export function readText(value: unknown): string {
  return typeof value === "string" && value.length <= MAX_TEXT_LENGTH ? value : "";
}

const MAX_TEXT_LENGTH = 1024;

/** In ms. Null if it is not a time of our days. */
export function readTime(value: unknown): number | null {
  const ms = typeof value === "string" ? Date.parse(value) : value;
  return typeof ms === "number" && ms >= FIRST_MS && ms < END_MS ? Math.floor(ms) : null;
}

const [FIRST_MS, END_MS] = [Date.UTC(2020), Date.UTC(2100)];

/** All that was read. */
export class History {
  readonly entries = new Map<string, LogEntry>();
  /** Rows that are no JSON, or that count something and have no time. */
  damaged = 0;
  /** Lines that are too long to be read. */
  tooLong = 0;
  /** Files that cannot be opened, and links, which are not followed. */
  readonly unread: string[] = [];
  readonly #usageOf: UsageOf;
  readonly #texts = new Map<string, string>();
  readonly #tariffs = new Map<string, Tariff>();

  constructor(usageOf: UsageOf) {
    this.#usageOf = usageOf;
  }

  /** `id`: of the response. Of rows with the same id, that with the most output counts: output grows from row to row. The
   *  names and the time are those of the first row: a copy of it may have others. */
  add(id: string, row: LogRow): void {
    const { words, reported, isCut = false, ...names } = row;
    const { parts, tariff, faults = [] } = this.#usageOf[words](reported);
    if (parts.length === 0 && faults.length === 0) return;
    const usage = sumUsage(parts);
    const known = this.entries.get(id);
    if (known !== undefined && (known.usage.output ?? 0) > (usage.output ?? 0)) return;
    const isUnknown = faults.some(({ basis }) => basis === "unknown");
    const counted = isUnknown ? UNKNOWN : describeParts(parts, usage, isCut || faults.length > 0);
    this.entries.set(id, {
      ...(known ?? this.#share(names)),
      tariff: this.#shareTariff(tariff),
      ...counted,
    });
  }

  /** The same few names come in each row: memory holds them once. */
  #share<T extends Pick<LogRow, "session" | "agent" | "project" | "model">>(names: T): T {
    const share = (text: string): string => getOrAdd(this.#texts, text, text);
    const { session, agent, project, model } = names;
    return {
      ...names,
      session: share(session),
      agent: share(agent),
      project: share(project),
      model: share(model),
    };
  }

  #shareTariff(tariff: Tariff): Tariff {
    return getOrAdd(this.#tariffs, Object.values(tariff).join(" "), tariff);
  }
}

type CountedParts = Pick<LogEntry, "usage" | "parts" | "basis">;

const UNKNOWN: CountedParts = { usage: {}, basis: "unknown" };

/** Most responses have one part, and its usage says all. */
function describeParts(parts: readonly Part[], usage: Usage, isPartial: boolean): CountedParts {
  const [part, other] = parts;
  const isSimple = other === undefined && part?.calls === undefined && part?.model === null;
  return { usage, ...(!isSimple && { parts }), basis: isPartial ? "partial" : "exact" };
}

function getOrAdd<T>(map: Map<string, T>, key: string, value: T): T {
  const known = map.get(key);
  if (known === undefined) map.set(key, value);
  return known ?? value;
}
