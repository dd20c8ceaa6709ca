// Writes logs as agents do, with invented text, and reads their entries.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { LogEntry, History, LoggingTool } from "../../../src/billing/history/entry.ts";
import { readHistory } from "../../../src/billing/history/read-history.ts";
import { readLoggedUsage } from "../../../src/dialects/meters/logged.ts";
import { makeSweptFolder } from "../../harness/temp.ts";

type Row = Readonly<Record<string, unknown>>;

/** A home folder with these files. A list is written as one JSON document for each line. */
export function makeHome(files: Readonly<Record<string, string | readonly Row[]>>): string {
  const home = makeSweptFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(
      path,
      typeof content === "string" ? content : content.map((row) => `${JSON.stringify(row)}\n`).join(""),
    );
  }
  return home;
}

export function read(home: string, ...tools: readonly LoggingTool[]): History {
  return readHistory({ ...(tools.length > 0 && { tools }), env: { HOME: home }, usageOf: readLoggedUsage });
}

export function readEntries(files: Parameters<typeof makeHome>[0]): LogEntry[] {
  return [...read(makeHome(files)).entries.values()];
}

/** The entries' usages, which a test compares. */
export function usages(entries: readonly LogEntry[]): unknown[] {
  return entries.map(({ usage }) => usage);
}

export const PROJECT = "/home/user/project";
const SESSION = "11111111-1111-4111-8111-111111111111";

/** Returns a row of an answer in a transcript of Claude Code. */
export function claudeRow(more: Row & { readonly id?: string; readonly usage?: unknown } = {}): Row {
  const { id = "msg_1", usage, model = "claude-opus-4-5", stop_reason = "end_turn", ...row } = more;
  const counts = {
    input_tokens: 3,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 100,
    output_tokens: 20,
  };
  return {
    type: "assistant",
    requestId: `req_${id}`,
    sessionId: SESSION,
    cwd: PROJECT,
    timestamp: "2026-11-20T10:00:00.000Z",
    message: {
      id,
      role: "assistant",
      model,
      content: [{ type: "text", text: "Hello." }],
      stop_reason,
      usage: usage ?? counts,
    },
    ...row,
  };
}

export const CLAUDE = ".claude/projects/-home-user-project";
export const CODEX = ".codex/sessions/2026/11/20";

const at = (timestamp: string, type: string, payload: Row): Row => ({ timestamp, type, payload });

/** The events of a thread of Codex. */
export const codexRows = {
  meta: (id: string, more: Row = {}): Row =>
    at("2026-11-20T10:00:00.000Z", "session_meta", { id, cwd: PROJECT, model_provider: "openai", ...more }),
  turn: (turn_id: string, model = "gpt-5.5"): Row =>
    at("2026-11-20T10:00:00.000Z", "turn_context", { turn_id, cwd: PROJECT, model }),
  /** A record with the counts of the whole thread and of its last response. */
  count: (total: readonly number[], last: readonly number[] | null, time = "2026-11-20T10:00:01.000Z"): Row =>
    at(time, "event_msg", {
      type: "token_count",
      info: { total_token_usage: codexCounts(total), last_token_usage: last && codexCounts(last) },
    }),
  record: (response_id: string, usage: readonly number[], total: readonly number[]): Row =>
    at("2026-11-20T10:00:01.000Z", "token_usage_record", {
      response_id,
      usage: codexCounts(usage),
      thread_token_usage: codexCounts(total),
    }),
};

/** Writes counts as Codex does, from three numbers: input, the part of it that was read from the cache, and output. */
function codexCounts([input = 0, cached = 0, output = 0]: readonly number[]): Row {
  const rest = { cache_write_input_tokens: 0, reasoning_output_tokens: 0 };
  return {
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    total_tokens: input + output,
    ...rest,
  };
}
