// Claude Code's transcripts: a file for each session and for each subagent. A row of an answer has one block of it and the
// usage so far. Some requests have no row: summaries, titles, answers that the user stopped. Versions from about 2.1.300
// on also write what a session used in all, and so these can be counted together.

import { getCount, getField, isObject, parseJson } from "../../lib/json/json.ts";
import { type LogEntry, type History, readText, readTime } from "./entry.ts";
import { type LogReader, type LogListener, scanLines } from "./files.ts";

const NEEDLES = ['"usage":{', '"cost-state"'].map((needle) => Buffer.from(needle));
/** The model of a row that Claude Code wrote itself. */
const NO_MODEL = "<synthetic>";

const KINDS = ["input", "output", "thinking", "read", "written", "short", "long", "searches"] as const;
const FIELDS = {
  input: "inputTokens",
  output: "outputTokens",
  thinking: "thinkingTokens",
  read: "cacheReadInputTokens",
  written: "cacheCreationInputTokens",
  short: "cacheCreationEphemeral5mInputTokens",
  long: "cacheCreationEphemeral1hInputTokens",
  searches: "webSearchRequests",
} as const satisfies Record<(typeof KINDS)[number], string>;
type Counts = Record<(typeof KINDS)[number], number>;

/** What a session had used when a run of it ended, with what it had used before. */
interface SessionTotal {
  readonly session: string;
  /** Of the session's first run. A fork has that of its parent, and goes on from its parent's totals. */
  readonly started: unknown;
  readonly project: string;
  readonly models: ReadonlyMap<string, Counts>;
  /** The time of the last row before it. */
  readonly time: number;
  /** The time of the first row after it, which belongs to another run; null: there is none. */
  readonly until: number | null;
}

export function openClaude(history: History, listener: LogListener): LogReader {
  const totals: SessionTotal[] = [];
  return {
    read: ({ path }) => readTranscript(path, history, listener, totals),
    end: () => addRests(history, totals),
  };
}

function readTranscript(path: string, history: History, listener: LogListener, totals: SessionTotal[]): void {
  let last: Pick<LogEntry, "time" | "project"> | null = null;
  let open: SessionTotal[] = [];
  scanLines(path, NEEDLES, listener, (line, whole) => {
    const row = parseJson(line.toString());
    if (row === undefined && whole) history.damaged += 1;
    const type = getField(row, "type");
    if (type === "cost-state" && last !== null) {
      const total = readTotal(row, last);
      if (total !== null) open.push(total);
    }
    const answer = type === "assistant" ? readAnswer(row, history) : null;
    if (answer === null) return;
    for (const total of open) totals.push({ ...total, until: answer.time });
    open = [];
    last = answer;
  });
  totals.push(...open);
}

/** Null: the row counts nothing. */
function readAnswer(row: unknown, history: History): Pick<LogEntry, "time" | "project"> | null {
  const message = getField(row, "message");
  const usage = getField(message, "usage");
  const model = readText(getField(message, "model"));
  if (!isObject(usage) || model === NO_MODEL) return null;
  const time = readTime(getField(row, "timestamp"));
  if (time === null) {
    history.damaged += 1;
    return null;
  }
  const requestId = readText(getField(row, "requestId"));
  const id = readText(getField(message, "id")) + requestId;
  const session = readText(getField(row, "requestSessionId")) || readText(getField(row, "sessionId"));
  const project = readText(getField(row, "cwd"));
  history.add(`claude ${id === "" ? readText(getField(row, "uuid")) : id}`, {
    tool: "claude-code",
    requestId: requestId === "" ? null : requestId,
    session,
    agent: readText(getField(row, "agentId")),
    project,
    time,
    model,
    provider: null,
    words: "anthropic",
    reported: usage,
    // Its last block was written before the usage of the whole answer had come.
    isCut: (getField(message, "stop_reason") ?? null) === null,
  });
  return { time, project };
}

function readTotal(row: unknown, { time, project }: Pick<LogEntry, "time" | "project">): SessionTotal | null {
  const usage = getField(row, "modelUsage");
  if (!isObject(usage)) return null;
  const models = new Map<string, Counts>();
  for (const [model, counted] of Object.entries(usage)) {
    const counts = listCounts((kind) => getCount(getField(counted, FIELDS[kind])) ?? Number.NaN);
    // Counts that cannot be read explain nothing.
    if (KINDS.some((kind) => Number.isNaN(counts[kind]))) return null;
    models.set(model, counts);
  }
  const session = readText(getField(row, "sessionId"));
  return { session, started: getField(row, "startTime"), project, models, time, until: null };
}

function listCounts(count: (kind: (typeof KINDS)[number]) => number): Counts {
  return {
    input: count("input"),
    output: count("output"),
    thinking: count("thinking"),
    read: count("read"),
    written: count("written"),
    short: count("short"),
    long: count("long"),
    searches: count("searches"),
  };
}

const NOTHING = listCounts(() => 0);

/** What each run of a session used beyond the answers that have rows. */
function addRests(history: History, totals: readonly SessionTotal[]): void {
  const named = new Set(totals.map(({ session }) => session));
  const own = [...history.entries.values()].filter(({ session }) => named.has(session));
  const sessions = Map.groupBy(own, ({ session }) => session);
  const before = new Map<string, SessionTotal>();
  for (const [index, total] of totals.entries()) {
    const { session, project, time, until } = total;
    const previous = before.get(session) ?? findParent(total, totals);
    const since = before.get(session)?.until ?? 0;
    before.set(session, total);
    const entries = (sessions.get(session) ?? []).filter(
      (entry) => entry.time >= since && (until === null || entry.time < until),
    );
    for (const [model, counts] of total.models) {
      const rest = subtract(counts, previous?.models.get(model) ?? NOTHING, sumListed(entries, model));
      if (KINDS.every((kind) => rest[kind] === 0)) continue;
      const names = { tool: "claude-code", session, agent: "", project, time, model } as const;
      const reported = describeUsage(rest);
      const row = { ...names, requestId: null, provider: null, words: "anthropic", reported } as const;
      history.add(`claude-rest ${index} ${model}`, { ...row, isRest: true });
    }
  }
}

/** The last total of another session from which this one may go on. */
function findParent(total: SessionTotal, totals: readonly SessionTotal[]): SessionTotal | undefined {
  return totals
    .filter(({ session, started }) => session !== total.session && started === total.started)
    .filter((other) =>
      [...other.models].every(([model, counts]) => {
        const own = total.models.get(model) ?? NOTHING;
        return KINDS.every((kind) => counts[kind] <= own[kind]);
      }),
    )
    .toSorted((a, b) => sumAll(a) - sumAll(b))
    .at(-1);
}

function sumAll({ models }: SessionTotal): number {
  return [...models.values()].reduce((sum, counts) => sum + counts.read + counts.written + counts.output, 0);
}

/** The totals name a model as it was asked for, `[1m]` included. */
function sumListed(entries: readonly LogEntry[], model: string): Counts {
  const own = entries.filter((entry) => entry.model === model || model.startsWith(`${entry.model}[`));
  const sum = (kind: keyof LogEntry["usage"]): number =>
    own.reduce((total, { usage }) => total + (usage[kind] ?? 0), 0);
  const [short, long] = [sum("cache_write_5m"), sum("cache_write_1h")];
  const counts = { input: sum("input"), output: sum("output"), thinking: sum("reasoning") };
  return {
    ...counts,
    read: sum("cache_read"),
    written: short + long,
    short,
    long,
    searches: sum("web_search"),
  };
}

/** A run that was killed has rows and no total: its answers make the rest smaller, never negative. */
function subtract(total: Counts, previous: Counts, listed: Counts): Counts {
  const isAnew = KINDS.some((kind) => total[kind] < previous[kind]);
  return listCounts((kind) => Math.max(0, total[kind] - (isAnew ? 0 : previous[kind]) - listed[kind]));
}

function describeUsage(counts: Counts): unknown {
  return {
    input_tokens: counts.input,
    output_tokens: counts.output,
    cache_read_input_tokens: counts.read,
    cache_creation_input_tokens: counts.written,
    cache_creation: { ephemeral_5m_input_tokens: counts.short, ephemeral_1h_input_tokens: counts.long },
    output_tokens_details: { thinking_tokens: counts.thinking },
    server_tool_use: { web_search_requests: counts.searches },
  };
}
