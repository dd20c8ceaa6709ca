// The gateway's goals. Ratios are computed round by round, so that a noisy
// machine affects both sides; the median of the ratios counts.

import { LONG_LEDGER, SHORT_LEDGER } from "../parts/reports.ts";
import { type Results, readSpread, writeNumber } from "./measures.ts";

export interface Verdict {
  readonly goal: string;
  readonly measured: number;
  /** Null if the target has no such goal. */
  readonly met: boolean | null;
}

interface Goal {
  readonly text: string;
  readonly metric: string;
  /** The target to compare with; null: the number itself. */
  readonly rival: string | null;
  /** Subtract the number without a gateway from both sides first. */
  readonly added?: true;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** The targets that have this goal, if not all. */
  readonly of?: string;
}

/** What it was on 2026-11-22 and a fifth more: it must not become more. The target is 8,000 for a request, 100 for an event. */
const MAX_ALLOCATED = {
  "JSON request, 1 connection": 52_000,
  "JSON request, 64 connections": 52_000,
  "start of a stream": 200_000,
  event: 300,
  "converted event": 2400,
};

const GOALS: readonly Goal[] = [
  {
    text: "requests/s at 64 connections",
    metric: "requests/s, 64 connections",
    rival: "nginx",
    atLeast: 0.6,
  },
  {
    text: "requests/s at 256 connections",
    metric: "requests/s, 256 connections",
    rival: "nginx",
    atLeast: 0.5,
  },
  {
    // The floor has the same meter, prices and ledger, without failover, limits and redaction.
    text: "CPU of a request at 64 connections",
    metric: "CPU µs a request, 64 connections",
    rival: "ledgered",
    atMost: 1.5,
  },
  {
    text: "added p50 at one connection",
    metric: "latency µs, p50",
    rival: "nginx",
    added: true,
    atMost: 1.5,
  },
  { text: "added p99 at one connection", metric: "latency µs, p99", rival: "nginx", added: true, atMost: 2 },
  {
    text: "added first byte of a stream",
    metric: "first byte µs, p50",
    rival: "nginx",
    added: true,
    atMost: 2,
  },
  { text: "event delay p99", metric: "event delay µs, p99", rival: "nginx", atMost: 1.2 },
  { text: "full-speed SSE", metric: "full-speed SSE MB/s", rival: "nginx", atLeast: 1 },
  { text: "requests/s", metric: "requests/s, 64 connections", rival: "portkey", atLeast: 20 },
  { text: "requests/s", metric: "requests/s, 64 connections", rival: "claude-code-router", atLeast: 20 },
  {
    text: "added first byte µs of a 1 MB body",
    metric: "first byte µs, 1 MB body",
    rival: null,
    added: true,
    atMost: 3000,
  },
  {
    text: "added first byte µs of a 10 MB body",
    metric: "first byte µs, 10 MB body",
    rival: null,
    added: true,
    atMost: 25_000,
  },
  ...Object.entries(MAX_ALLOCATED).map(([what, atMost]) => ({
    text: `bytes allocated, ${what}`,
    metric: `bytes allocated, ${what}`,
    rival: null,
    atMost,
  })),
  { text: "memory MB, idle", metric: "memory MB, idle", rival: null, atMost: 80 },
  {
    text: "memory KB a stream, 1,000 open",
    metric: "memory KB a stream, 1,000 open",
    rival: null,
    atMost: 200,
  },
  {
    text: "memory after 200,000 streams, 30% left midway, over that after 20,000",
    metric: "memory growth",
    rival: null,
    atMost: 1.1,
  },
  {
    text: "ms from start to the first answer",
    metric: "cold start ms",
    rival: null,
    atMost: 80,
    of: "executable",
  },
  { text: "--version, ms of CPU", metric: "--version CPU ms", rival: null, atMost: 50, of: "executable" },
  {
    text: "chat bridge over passthrough and a parse, per event",
    metric: "bridge cost",
    rival: null,
    atMost: 1.15,
  },
  {
    text: "event delay p99 while reports run, over that without",
    metric: "event delay while reports run",
    rival: null,
    atMost: 1.5,
  },
  { text: "100 open streams, % of a core", metric: "100 open streams, % of a core", rival: null, atMost: 10 },
  { text: "an open page, % of a core", metric: "open page, % of a core", rival: null, atMost: 1 },
  ...[SHORT_LEDGER, LONG_LEDGER].map((lines) => ({
    text: `ms to the complete overview of ${lines} lines, after a start`,
    metric: `ms to the overview of ${lines} lines, after a start`,
    rival: null,
    atMost: 1000,
  })),
  { text: "ledger verify, lines/s", metric: "ledger verify lines/s", rival: null, atLeast: 400_000 },
  { text: "usage, lines/s", metric: "usage lines/s", rival: null, atLeast: 400_000 },
];

export function judge(results: Results, target: string): Verdict[] {
  return GOALS.flatMap((goal) => {
    const values = listValues(goal, results, target);
    if (values.length === 0) return [];
    const measured = readSpread(values).median;
    const met = measured >= (goal.atLeast ?? -Infinity) && measured <= (goal.atMost ?? Infinity);
    return [{ goal: describe(goal), measured, met: (goal.of ?? target) === target ? met : null }];
  });
}

function listValues({ metric, rival, added }: Goal, results: Results, target: string): number[] {
  const base = added === true ? results.rounds("direct", metric) : [];
  const own = results.rounds(target, metric).map((value, round) => value - (base[round] ?? 0));
  if (rival === null) return own;
  const theirs = results.rounds(rival, metric).map((value, round) => value - (base[round] ?? 0));
  return own.slice(0, theirs.length).map((value, round) => value / (theirs[round] ?? Number.NaN));
}

function describe({ text, rival, atLeast, atMost }: Goal): string {
  const bound = atLeast === undefined ? `≤ ${writeNumber(atMost ?? 0)}` : `≥ ${writeNumber(atLeast)}`;
  return rival === null ? `${text} ${bound}` : `${text} ${bound} × ${rival}`;
}
