// Claude Code's transcripts: a file for each session and for each subagent. A row of an answer has one block of it and the
// usage so far. Some requests have no row: summaries, titles, answers that the user stopped. Versions from about 2.1.300
// on also write what a session used in all, and so these can be counted together.

import { getCount, getField, isObject } from "../../lib/json/json.ts";
import type { Usage } from "../usage.ts";
import {
  type History,
  type LogEntry,
  type LogReader,
  readText,
  readTime,
  type Row,
  scanRows,
} from "./entry.ts";

const WORDS = ['"usage"', '"cost-state"'];
/** The model of a row that Claude Code wrote itself. */
const NO_MODEL = "<synthetic>";

/** The counts of a total, and the kind that each is in an entry. */
const COUNTS = {
  inputTokens: "input",
  outputTokens: "output",
  thinkingTokens: "reasoning",
  cacheReadInputTokens: "cache_read",
  cacheCreationEphemeral5mInputTokens: "cache_write_5m",
  cacheCreationEphemeral1hInputTokens: "cache_write_1h",
  webSearchRequests: "web_search",
} as const;
const KINDS = Object.values(COUNTS);

/** What a session had used when a run of it ended, with what it had used before. */
interface SessionTotal extends Pick<LogEntry, "session" | "project" | "time"> {
  /** When the session's first run began. A fork has that of its parent, and goes on from its parent's total. */
  readonly started: unknown;
  readonly models: ReadonlyMap<string, Usage>;
  /** The time of the first row after it, which it does not count. */
  until: number;
}

export function openClaude(history: History): LogReader {
  const totals: SessionTotal[] = [];
  return {
    read: (path) => readTranscript(path, history, totals),
    end: () => addRests(history, totals),
  };
}

function readTranscript(path: string, history: History, totals: SessionTotal[]): void {
  let last: Pick<LogEntry, "time" | "project"> | null = null;
  let open: SessionTotal[] = [];
  scanRows(path, WORDS, history, (row) => {
    const total: SessionTotal | null =
      row["type"] === "cost-state" && last !== null ? readTotal(row, last) : null;
    if (total !== null) {
      totals.push(total);
      open.push(total);
    }
    if (row["type"] !== "assistant" || !addAnswer(row, history)) return;
    last = { time: readTime(row["timestamp"]) ?? 0, project: readText(row["cwd"]) };
    for (const each of open) each.until = last.time;
    open = [];
  });
}

/** False if the row counts nothing. */
function addAnswer(row: Row, history: History): boolean {
  const message = getField(row, "message");
  const [usage, model] = [getField(message, "usage"), readText(getField(message, "model"))];
  if (!isObject(usage) || model === NO_MODEL) return false;
  const [requestId, agent] = [readText(row["requestId"]), readText(row["agentId"])];
  const id = readText(getField(message, "id")) + requestId || readText(row["uuid"]);
  history.add(`claude ${id}`, {
    tool: "claude-code",
    ...(requestId !== "" && { requestId }),
    session: readText(row["requestSessionId"]) || readText(row["sessionId"]),
    ...(agent !== "" && { agent }),
    project: readText(row["cwd"]),
    time: row["timestamp"],
    model,
    words: "anthropic",
    reported: usage,
    // Its last block was written before the usage of the whole answer had come.
    isCut: (getField(message, "stop_reason") ?? null) === null,
  });
  return true;
}

/** Null if a count cannot be read. */
function readTotal(row: Row, last: Pick<LogEntry, "time" | "project">): SessionTotal | null {
  const models = new Map<string, Usage>();
  for (const [model, counted] of Object.entries(row["modelUsage"] ?? {})) {
    const usage: Record<string, number> = {};
    for (const [name, kind] of Object.entries(COUNTS)) {
      const count = getCount(getField(counted, name));
      if (count === undefined) return null;
      usage[kind] = count;
    }
    models.set(model, usage);
  }
  return {
    ...last,
    session: readText(row["sessionId"]),
    started: row["startTime"],
    models,
    until: Number.POSITIVE_INFINITY,
  };
}

/** What a session used beyond the answers that have rows: the sum of its runs. A total counts the runs before it, too. */
function addRests(history: History, totals: readonly SessionTotal[]): void {
  const listed = Map.groupBy(history.entries.values(), ({ session }) => session);
  const related = Map.groupBy(totals, ({ started }) => started);
  const before = new Map<string, SessionTotal>();
  for (const total of totals) {
    const { session, models, until } = total;
    const previous = before.get(session);
    before.set(session, total);
    const base = previous ?? findParent(total, related.get(total.started) ?? []);
    const since = previous?.until ?? 0;
    const answers = (listed.get(session) ?? []).filter((entry) => entry.time >= since && entry.time < until);
    for (const [model, counts] of models) {
      // The totals name a model as it was asked for, `[1m]` included.
      const own = answers.filter((entry) => entry.model === model || model.startsWith(`${entry.model}[`));
      const known = [base?.models.get(model) ?? {}, ...own.map(({ usage }) => usage)];
      const rest = subtract(counts, known);
      if (KINDS.some((kind) => (rest[kind] ?? 0) > 0)) addRest(history, total, model, rest);
    }
  }
}

function addRest(
  history: History,
  { session, project, time }: SessionTotal,
  model: string,
  rest: Usage,
): void {
  const id = `claude-rest ${session} ${model}`;
  const usage: Record<string, number> = { ...history.entries.get(id)?.usage };
  for (const [kind, count] of Object.entries(rest)) usage[kind] = (usage[kind] ?? 0) + (count ?? 0);
  const entry = { session, project, time, model, usage };
  history.entries.set(id, { ...entry, tool: "claude-code", tariff: {}, basis: "exact", isRest: true });
}

/** The largest total of another session from which this one may go on. */
function findParent(total: SessionTotal, related: readonly SessionTotal[]): SessionTotal | undefined {
  const size = ({ models }: SessionTotal): number =>
    [...models.values()].flatMap((usage) => KINDS.map((kind) => usage[kind] ?? 0)).reduce((a, b) => a + b, 0);
  return related
    .filter(({ session }) => session !== total.session)
    .filter((other) =>
      [...other.models].every(([model, counts]) =>
        KINDS.every((kind) => (counts[kind] ?? 0) <= (total.models.get(model)?.[kind] ?? 0)),
      ),
    )
    .toSorted((a, b) => size(b) - size(a))[0];
}

/** A run that was killed has rows and no total: its answers make the rest smaller, never negative. */
function subtract(total: Usage, known: readonly Usage[]): Usage {
  const rests = KINDS.map((kind) => {
    const used = known.reduce((sum, usage) => sum + (usage[kind] ?? 0), 0);
    return [kind, Math.max(0, (total[kind] ?? 0) - used)] as const;
  });
  return Object.fromEntries(
    rests.filter(([kind, count]) => count > 0 || kind === "input" || kind === "output"),
  );
}
