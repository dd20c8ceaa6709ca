// Pairs log entries with ledger lines.

import type { Line } from "../ledger/line.ts";
import { isSameModel } from "../prices/names.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS, READ_KINDS, type Usage } from "../usage.ts";
import type { LogEntry } from "./entry.ts";

export interface OurLine extends Pick<
  Line,
  "model" | "upstream_model" | "usage" | "basis" | "client" | "upstream_request_id"
> {
  readonly row: number;
  readonly time: number;
  readonly ended: number;
}

type Pair = readonly [LogEntry, OurLine];

/** Tools log a response at its end. Clocks may differ. */
const MAX_APART_MS = 120_000;
/** If the counts differ, the times must be nearer. */
const MAX_APART_OTHERWISE_MS = 5000;
const MAX_LENGTH_MS = 3_600_000;

export function joinHistory(entries: readonly LogEntry[], lines: readonly OurLine[]) {
  const [ours, theirs] = [new Set(lines), new Set(entries)];
  const pairs: Pair[] = [];
  const add = (pair: Pair): void => {
    theirs.delete(pair[0]);
    ours.delete(pair[1]);
    pairs.push(pair);
  };
  pairById(entries, lines).forEach(add);
  // The log of a converted request has other kinds, but the same sums.
  const countAll = (usage: Usage): string =>
    [PROMPT_KINDS, READ_KINDS, OUTPUT_KINDS].map((kinds) => countTokens(usage, kinds)).join(" ");
  for (const [count, most] of [
    [countAll, MAX_APART_MS],
    [() => "", MAX_APART_OTHERWISE_MS],
  ] as const)
    for (const pair of listNear([...theirs], [...ours], count, most))
      if (theirs.has(pair[0]) && ours.has(pair[1])) add(pair);
  return { pairs, onlyEntries: [...theirs], onlyLines: [...ours] };
}

/** Joins only by ids that occur once: some upstreams send one id for all requests. */
function pairById(entries: readonly LogEntry[], lines: readonly OurLine[]): Pair[] {
  const byId = Map.groupBy(lines, (line) => line.upstream_request_id);
  return [...Map.groupBy(entries, ({ requestId }) => requestId)].flatMap(([id = "", [entry, other]]) => {
    const [line, next] = byId.get(id) ?? [];
    if (id === "" || entry === undefined || line === undefined) return [];
    const isOther = line.client?.tool !== undefined && line.client.tool !== entry.tool;
    return other === undefined && next === undefined && !isOther ? [[entry, line]] : [];
  });
}

function listNear(
  entries: readonly LogEntry[],
  lines: readonly OurLine[],
  count: (usage: Usage) => string,
  most: number,
): Pair[] {
  const sorted = entries.toSorted((a, b) => a.time - b.time);
  const groups = Map.groupBy(sorted, ({ tool, usage }) => `${tool} ${count(usage)}`);
  const near: { readonly pair: Pair; readonly apart: number; readonly time: number }[] = [];
  for (const line of lines) {
    const own = groups.get(`${line.client?.tool} ${count(line.usage)}`) ?? [];
    const end = Math.min(line.ended, line.time + MAX_LENGTH_MS) + most;
    for (let index = findFirst(own, line.time - most); index < own.length; index += 1) {
      const entry = own[index];
      if (entry === undefined || entry.time > end) break;
      const apart = Math.max(line.time - entry.time, entry.time - line.ended, 0);
      if (mayBeSame(entry, line)) near.push({ pair: [entry, line], apart, time: entry.time });
    }
  }
  return near.sort((a, b) => a.apart - b.apart || a.time - b.time).map(({ pair }) => pair);
}

function findFirst(entries: readonly LogEntry[], time: number): number {
  let [first, end] = [0, entries.length];
  while (first < end) {
    const middle = (first + end) >> 1;
    if ((entries[middle]?.time ?? time) < time) first = middle + 1;
    else end = middle;
  }
  return first;
}

/** A line with no session, or an inferred one, fits any session.
 *  Gemini CLI sends none: its lines have the session of `gateway run`. */
function mayBeSame(entry: LogEntry, { client = {}, model, upstream_model: answered }: OurLine): boolean {
  const { tool, session, inferred } = client;
  if (entry.tool !== tool) return false;
  if (tool !== "gemini-cli" && inferred !== true && session !== undefined && entry.session !== session)
    return false;
  return [model, answered ?? ""].some((each) => isSameModel(entry.model, each));
}
