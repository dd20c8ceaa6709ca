// Codex' rollouts: a file for each thread. Counts are cumulative, and an event may repeat them.
// Newer versions write a record for each response, with the response's id. A fork begins with a
// copy of the parent's events, with the parent's turns but new times.

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
  const thread = new Thread(history);
  scanRows(path, WORDS, history, (row) => thread.learn(row));
}

class Thread {
  readonly #history: History;
  #id = "";
  /** The thread of the current events. A fork names itself, then its parent. */
  #origin = "";
  /** The main agent's thread. */
  #session = "";
  #provider = "";
  #project = "";
  #model = "";
  /** The turn of the current events. Copied events have the parent's turn. */
  #turn = "";
  #total: Row | null = null;

  constructor(history: History) {
    this.#history = history;
  }

  learn({ type, payload, timestamp }: Row): void {
    const kind = type === "event_msg" ? getField(payload, "type") : type;
    if (kind === "session_meta") this.#open(payload);
    else if (kind === "turn_context" || kind === "task_started") {
      this.#model = readText(getField(payload, "model")) || this.#model;
      this.#project = readText(getField(payload, "cwd")) || this.#project;
      this.#turn = readText(getField(payload, "turn_id")) || this.#turn;
    } else if (kind === "token_count") this.#learnCount(getField(payload, "info"), timestamp);
    else if (kind === "token_usage_record") this.#learnRecord(payload, timestamp);
  }

  /** A second meta record is the parent's. */
  #open(meta: unknown): void {
    this.#origin = readText(getField(meta, "id"));
    if (this.#id !== "") return;
    this.#id = this.#origin;
    const spawned = getField(getField(getField(meta, "source"), "subagent"), "thread_spawn");
    this.#session =
      readText(getField(meta, "session_id")) || readText(getField(spawned, "parent_thread_id")) || this.#id;
    this.#provider = readText(getField(meta, "model_provider"));
    this.#project = readText(getField(meta, "cwd"));
  }

  /** One response may have several records. */
  #learnRecord(record: unknown, time: unknown): void {
    const usage = getField(record, "usage");
    const total = getField(record, "thread_token_usage");
    if (isObject(total)) this.#total = total;
    if (isObject(usage)) this.#add(readText(getField(record, "response_id")), usage, time);
  }

  #learnCount(info: unknown, time: unknown): void {
    const before = this.#total;
    const total = getField(info, "total_token_usage");
    const isSame = (total: Row): boolean =>
      COUNTS.every((name) => (total[name] ?? 0) === (before?.[name] ?? 0));
    if (!isObject(total) || (before !== null && isSame(total))) return;
    const last = getField(info, "last_token_usage");
    const grown = before === null ? null : subtract(total, before);
    this.#total = total;
    const id = JSON.stringify([this.#turn || this.#origin, COUNTS.map((name) => total[name] ?? 0)]);
    this.#add(id, grown ?? (isObject(last) ? last : total), time);
  }

  #add(id: string, usage: Row, time: unknown): void {
    this.#history.add(id === "" ? "" : `codex ${id}`, {
      tool: "codex",
      session: this.#session,
      ...(this.#id !== this.#session && { agent: this.#id }),
      project: this.#project,
      time,
      model: this.#model,
      provider: this.#provider,
      words: "openai",
      reported: {
        input_tokens: usage["input_tokens"],
        input_tokens_details: {
          cached_tokens: usage["cached_input_tokens"],
          cache_write_tokens: usage["cache_write_input_tokens"],
        },
        output_tokens: usage["output_tokens"],
        output_tokens_details: { reasoning_tokens: usage["reasoning_output_tokens"] },
      },
    });
  }
}

/** Null: a count is unreadable or smaller than before, so the total began anew. */
function subtract(total: Row, before: Row): Row | null {
  const count = (counts: Row, name: string): number => getCount(counts[name] ?? 0) ?? Number.NaN;
  const grown = COUNTS.map((name) => [name, count(total, name) - count(before, name)] as const);
  return grown.every(([, more]) => more >= 0) ? Object.fromEntries(grown) : null;
}
