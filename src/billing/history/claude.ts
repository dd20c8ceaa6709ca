// Claude Code's transcripts: a file for each session and for each subagent. A row of an answer has one block of it and the
// usage so far. Some requests have no row: summaries, titles, answers that the user stopped. Versions from about 2.1.300
// on also write what a session used in all, and so these can be counted together.

import { getCount, getField, isObject } from "../../lib/json/json.ts";
import { countWhile, type History, type LogEntry, readText, readTime } from "./entry.ts";
import { type LogReader, scanRows } from "./files.ts";

const NEEDLES = ['"usage"', '"cost-state"'];
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
/** In the order of the kinds. */
type Counts = readonly number[];
const NONE: Counts = KINDS.map(() => 0);

/** What a session had used when a run of it ended, with what it had used before. */
interface SessionTotal extends Pick<LogEntry, "session" | "project" | "time"> {
  /** When the session's first run began. A fork has that of its parent, and goes on from its parent's total. */
  readonly started: unknown;
  readonly models: ReadonlyMap<string, Counts>;
  /** The time of the first row after it, which belongs to another run. */
  readonly until: number;
}

export function openClaude(history: History): LogReader {
  const totals: SessionTotal[] = [];
  return {
    read: ({ path }) => readTranscript(path, history, totals),
    end: () => addRests(history, totals),
  };
}

function readTranscript(path: string, history: History, totals: SessionTotal[]): void {
  let last: Pick<LogEntry, "time" | "project"> | null = null;
  let open: SessionTotal[] = [];
  scanRows(path, NEEDLES, history, (row) => {
    if (row["type"] === "cost-state" && last !== null) open.push(...readTotal(row, last));
    if (row["type"] !== "assistant" || !addAnswer(row, history)) return;
    last = { time: readTime(row["timestamp"]) ?? 0, project: readText(row["cwd"]) };
    for (const total of open) totals.push({ ...total, until: last.time });
    open = [];
  });
  totals.push(...open);
}

/** False if the row counts nothing. */
function addAnswer(row: Readonly<Record<string, unknown>>, history: History): boolean {
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

/** None if a count cannot be read. */
function readTotal(row: unknown, last: Pick<LogEntry, "time" | "project">): SessionTotal[] {
  const [usage, session, started] = ["modelUsage", "sessionId", "startTime"].map((name) =>
    getField(row, name),
  );
  if (!isObject(usage)) return [];
  const models = Object.entries(usage).map(([model, counted]) => {
    return [
      model,
      Object.keys(COUNTS).map((name) => getCount(getField(counted, name)) ?? Number.NaN),
    ] as const;
  });
  if (models.some(([, counts]) => counts.some(Number.isNaN))) return [];
  return [
    {
      ...last,
      session: readText(session),
      started,
      models: new Map(models),
      until: Number.POSITIVE_INFINITY,
    },
  ];
}

/** What each run of a session used beyond the answers that have rows. */
function addRests(history: History, totals: readonly SessionTotal[]): void {
  const named = new Set(totals.map(({ session }) => session));
  const own = [...history.entries.values()].filter(({ session }) => named.has(session));
  const sessions = Map.groupBy(
    own.sort((a, b) => a.time - b.time),
    ({ session }) => session,
  );
  const related = Map.groupBy(totals, ({ started }) => started);
  const before = new Map<string, SessionTotal>();
  for (const [index, total] of totals.entries()) {
    const { session, until, models, started, ...names } = total;
    const previous = before.get(session);
    const base = (previous ?? findParent(total, related.get(started) ?? []))?.models;
    before.set(session, total);
    const answers = sessions.get(session) ?? [];
    const [first, end] = [previous?.until ?? 0, until].map((moment) =>
      countWhile(answers, ({ time }) => time < moment),
    );
    const run = answers.slice(first, end);
    for (const [model, counts] of models) {
      const rest = subtract(
        counts,
        base?.get(model) ?? NONE,
        // The totals name a model as it was asked for, `[1m]` included.
        run.filter((entry) => entry.model === model || model.startsWith(`${entry.model}[`)),
      );
      if (rest.every((count) => count === 0)) continue;
      const row = {
        ...names,
        session,
        model,
        tool: "claude-code",
        words: "anthropic",
        isRest: true,
      } as const;
      history.add(`claude-rest ${index} ${model}`, { ...row, reported: describeUsage(rest) });
    }
  }
}

/** Each new session is compared with these, and nobody goes on from so many. */
const MAX_RELATED = 1000;

/** The largest total of another session from which this one may go on. */
function findParent(total: SessionTotal, related: readonly SessionTotal[]): SessionTotal | undefined {
  const size = ({ models }: SessionTotal): number =>
    [...models.values()].flat().reduce((sum, count) => sum + count, 0);
  return related
    .slice(-MAX_RELATED)
    .filter(({ session }) => session !== total.session)
    .filter((other) =>
      [...other.models].every(([model, counts]) => {
        const own = total.models.get(model) ?? NONE;
        return counts.every((count, index) => count <= (own[index] ?? 0));
      }),
    )
    .toSorted((a, b) => size(a) - size(b))
    .at(-1);
}

/** A run that was killed has rows and no total: its answers make the rest smaller, never negative. */
function subtract(total: Counts, before: Counts, listed: readonly LogEntry[]): Counts {
  const isAnew = total.some((count, index) => count < (before[index] ?? 0));
  return KINDS.map((kind, index) => {
    const used = listed.reduce(
      (sum, { usage }) => sum + (usage[kind] ?? 0),
      isAnew ? 0 : (before[index] ?? 0),
    );
    return Math.max(0, (total[index] ?? 0) - used);
  });
}

function describeUsage([input, output, reasoning, read, short = 0, long = 0, searches]: Counts): unknown {
  return {
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: short + long,
    cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    output_tokens_details: { thinking_tokens: reasoning },
    server_tool_use: { web_search_requests: searches },
  };
}
