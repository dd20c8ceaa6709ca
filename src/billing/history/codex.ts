// Codex's logs (rollouts). Counts are cumulative, and an event may repeat them.
// A fork begins with copies of its parent's events: the same turns, new times.

import { getCount, getField, isObject } from "../../lib/json/json.ts";
import { type History, readText, type Row, scanRows } from "./entry.ts";

const TYPES = ["session_meta", "turn_context", "task_started", "token_count", "token_usage_record"];
const WORDS = TYPES.map((type) => `"${type}"`);

const COUNTS = [
  "input_tokens",
  "cached_input_tokens",
  "cache_write_input_tokens",
  "output_tokens",
  "reasoning_output_tokens",
  "total_tokens",
] as const;

export function readCodex(path: string, history: History): void {
  /** `session`: the main agent's thread. */
  let [id, session, provider, project, model] = ["", "", "", "", ""];
  /** The id in the last `session_meta`. A fork's log has its own, then its parent's. */
  let origin = "";
  /** Copied events have the parent's turn. */
  let turn = "";
  let total: Row | null = null;
  const add = (own: string, usage: Row, time: unknown): void => {
    history.add(own === "" ? "" : `codex ${own}`, {
      tool: "codex",
      session,
      ...(id !== session && { agent: id }),
      project,
      time,
      model,
      provider,
      words: "openai",
      reported: describeUsage(usage),
    });
  };
  const learnCount = (info: unknown, time: unknown): void => {
    const before = total;
    const counted = getField(info, "total_token_usage");
    const isSame = (counts: Row): boolean =>
      COUNTS.every((name) => (counts[name] ?? 0) === (before?.[name] ?? 0));
    if (!isObject(counted) || (before !== null && isSame(counted))) return;
    const last = getField(info, "last_token_usage");
    const grown = before === null ? null : subtract(counted, before);
    total = counted;
    const own = JSON.stringify([turn || origin, COUNTS.map((name) => counted[name] ?? 0)]);
    add(own, grown ?? (isObject(last) ? last : counted), time);
  };
  const open = (meta: unknown): void => {
    const read = (name: string): string => readText(getField(meta, name));
    origin = read("id");
    // A second meta record is the parent's.
    if (id !== "") return;
    const spawned = getField(getField(getField(meta, "source"), "subagent"), "thread_spawn");
    id = origin;
    session = read("session_id") || readText(getField(spawned, "parent_thread_id")) || id;
    [provider, project] = [read("model_provider"), read("cwd")];
  };
  scanRows(path, WORDS, history, ({ type, payload, timestamp }) => {
    const kind = type === "event_msg" ? getField(payload, "type") : type;
    const read = (name: string): string => readText(getField(payload, name));
    if (kind === "session_meta") open(payload);
    else if (kind === "turn_context" || kind === "task_started") {
      [model, project, turn] = [read("model") || model, read("cwd") || project, read("turn_id") || turn];
    } else if (kind === "token_count") learnCount(getField(payload, "info"), timestamp);
    else if (kind === "token_usage_record") {
      // One response may have several records: its id joins them.
      const [usage, all] = ["usage", "thread_token_usage"].map((name) => getField(payload, name));
      if (isObject(all)) total = all;
      if (isObject(usage)) add(read("response_id"), usage, timestamp);
    }
  });
}

function describeUsage(usage: Row) {
  return {
    input_tokens: usage["input_tokens"],
    input_tokens_details: {
      cached_tokens: usage["cached_input_tokens"],
      cache_write_tokens: usage["cache_write_input_tokens"],
    },
    output_tokens: usage["output_tokens"],
    output_tokens_details: { reasoning_tokens: usage["reasoning_output_tokens"] },
  };
}

/** Returns null if the total began anew or is unreadable. */
function subtract(total: Row, before: Row): Row | null {
  const count = (counts: Row, name: string): number => getCount(counts[name] ?? 0) ?? Number.NaN;
  const grown = COUNTS.map((name) => [name, count(total, name) - count(before, name)] as const);
  return grown.every(([, more]) => more >= 0) ? Object.fromEntries(grown) : null;
}
