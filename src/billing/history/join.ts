// Which entry of a log and which line of the ledger are the same request. First by the upstream's id of it, then by session,
// model, counts and time. What a log only knows as a session's total is compared with the lines that remain of the session.

import { countTokens, OUTPUT_KINDS, PROMPT_KINDS, CACHE_READ_KINDS, type Usage } from "../usage.ts";
import { isSameModel } from "../prices/names.ts";
import { countWhile, type LogEntry, type LoggingTool } from "./entry.ts";
import type { OurLine } from "./our-lines.ts";

/** The same request, or the same requests, in both. */
export interface Pair {
  readonly entries: readonly LogEntry[];
  readonly lines: readonly OurLine[];
}

export interface Joined {
  readonly pairs: readonly Pair[];
  readonly onlyEntries: readonly LogEntry[];
  readonly onlyLines: readonly OurLine[];
}

/** A row is written when the response has ended; a clock may be wrong by a little. */
const MAX_APART_MS = 120_000;
/** Where the counts differ, only a request that ended just then can be the same. */
const MAX_APART_OTHERWISE_MS = 5000;

/** Of a request that takes longer, only its beginning is looked at. */
const MAX_LENGTH_MS = 3_600_000;

export function joinHistory(entries: readonly LogEntry[], lines: readonly OurLine[]): Joined {
  const join = new Join(entries, lines);
  join.byRequestId();
  join.byCounts(countAll, MAX_APART_MS);
  join.byCounts(() => "", MAX_APART_OTHERWISE_MS);
  join.byTotal();
  return join.finish();
}

class Join {
  readonly #entries: Set<LogEntry>;
  readonly #lines: Set<OurLine>;
  readonly #pairs: Pair[] = [];

  constructor(entries: readonly LogEntry[], lines: readonly OurLine[]) {
    this.#entries = new Set(entries);
    this.#lines = new Set(lines);
  }

  /** An id that comes twice is none: some upstreams send the same one for all, and others count from 1 for each tool. */
  byRequestId(): void {
    const lines = Map.groupBy(this.#lines, ({ requestId }) => requestId);
    for (const [id = "", own] of Map.groupBy(this.#entries, ({ requestId }) => requestId)) {
      const [entry, other] = own;
      const [line, next] = lines.get(id) ?? [];
      if (id === "" || entry === undefined || line === undefined) continue;
      const isOther = line.client.tool !== undefined && line.client.tool !== entry.tool;
      if (other === undefined && next === undefined && !isOther) this.#pair([entry], [line]);
    }
  }

  /** The nearest in time first. */
  byCounts(countKey: (usage: Usage) => string, mostMs: number): void {
    const listed = [...this.#entries].filter(({ isRest }) => isRest !== true).sort((a, b) => a.time - b.time);
    const groups = Map.groupBy(listed, ({ tool, usage }) => `${tool} ${countKey(usage)}`);
    const near: { readonly entry: LogEntry; readonly line: OurLine; readonly apart: number }[] = [];
    for (const line of this.#lines) {
      const own = groups.get(`${line.client.tool} ${countKey(line.usage)}`) ?? [];
      const end = Math.min(line.ended, line.time + MAX_LENGTH_MS) + mostMs;
      for (
        let index = countWhile(own, ({ time }) => time < line.time - mostMs);
        index < own.length;
        index += 1
      ) {
        const entry = own[index];
        if (entry === undefined || entry.time > end) break;
        if (mayBeSame(entry, line)) near.push({ entry, line, apart: measureApart(entry, line) });
      }
    }
    for (const { entry, line } of near.sort((a, b) => a.apart - b.apart || a.entry.time - b.entry.time))
      if (this.#entries.has(entry) && this.#lines.has(line)) this.#pair([entry], [line]);
  }

  byTotal(): void {
    const rests = [...this.#entries].filter(({ isRest }) => isRest === true);
    const lines = Map.groupBy(rests.length === 0 ? [] : this.#lines, nameSession);
    for (const some of Map.groupBy(rests, ({ session, model }) => `${session} ${model}`).values()) {
      const [rest] = some;
      const near = [...(lines.get(rest?.session ?? null) ?? []), ...(lines.get(null) ?? [])];
      const own = near.filter((line) => rest !== undefined && this.#lines.has(line) && mayBeSame(rest, line));
      if (own.length > 0) this.#pair(some, own);
    }
  }

  #pair(entries: readonly LogEntry[], lines: readonly OurLine[]): void {
    for (const entry of entries) this.#entries.delete(entry);
    for (const line of lines) this.#lines.delete(line);
    this.#pairs.push({ entries, lines });
  }

  finish(): Joined {
    return { pairs: this.#pairs, onlyEntries: [...this.#entries], onlyLines: [...this.#lines] };
  }
}

/** Where a request is converted, the kinds differ, and their sums do not. */
function countAll(usage: Usage): string {
  const kinds = [PROMPT_KINDS, CACHE_READ_KINDS, OUTPUT_KINDS];
  return kinds.map((each) => countTokens(usage, each)).join(" ");
}

function measureApart({ time }: LogEntry, line: OurLine): number {
  if (time < line.time) return line.time - time;
  return Math.max(0, time - line.ended);
}

/** Its requests do not name its sessions: the ledger has those of `gateway run`. */
const NAMES_NO_SESSION: LoggingTool = "gemini-cli";

/** Null: its own log may name another one. */
function nameSession({ client }: OurLine): string | null {
  const { tool, session = null, inferred } = client;
  return tool === NAMES_NO_SESSION || inferred === true ? null : session;
}

function mayBeSame(entry: LogEntry, line: OurLine): boolean {
  if (entry.tool !== line.client.tool) return false;
  const session = nameSession(line);
  if (session !== null && entry.session !== session) return false;
  return [line.model, line.answeredBy].some((model) => isSameModel(entry.model, model));
}
