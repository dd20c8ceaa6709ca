// Whether a tool's newest version sends more input per turn than the version before.

import type { Table } from "../store/open.ts";
import { addColumns, IS_TURN } from "../store/schema.ts";
import { PROMPT_KINDS } from "../usage.ts";
import type { Clock } from "./period.ts";

/** The first turns of a session's main agent. */
export interface SessionStart {
  readonly tool: string;
  readonly version: string;
  /** The model, key and label. Requests without a label have no known project. */
  readonly kind: string;
  readonly at: number;
  readonly input: number;
}

const PERIOD_MS = 14 * 86_400_000;
/** Input grows with each turn. */
const TURNS = 5;

export function reportVersions(table: Table, { now }: Clock) {
  const rows = table.list(
    `WITH turns AS (
       SELECT tool, version, model, key, label, session, at, ${addColumns(PROMPT_KINDS)} AS input,
         ROW_NUMBER() OVER (PARTITION BY session, model ORDER BY at, line) AS turn
       FROM requests WHERE at >= $since AND session IS NOT NULL AND agent IS NULL AND version IS NOT NULL
         AND label IS NOT NULL AND ${IS_TURN})
     SELECT tool, version, json_array(model, key, label), MIN(at), SUM(input) FROM turns WHERE turn <= ${TURNS}
     GROUP BY session, model HAVING COUNT(*) = ${TURNS} AND COUNT(DISTINCT version) = 1`,
    { $since: now.getTime() - PERIOD_MS },
  );
  return compareVersions(
    rows.map(([tool, version, kind, at, input]) => ({
      tool: String(tool),
      version: String(version),
      kind: String(kind),
      at: Number(at),
      input: Number(input),
    })),
  );
}

export type VersionChange = ReturnType<typeof compareVersions>[number];

const MIN_SESSIONS = 9;
const MAX_SESSIONS = 250;
const MIN_PERCENT = 5;
/** In standard deviations: equal versions differ this much in one of 4,000 comparisons. */
const BEYOND_CHANCE = 3.5;

/** For each tool: how much more input the newest version has, and the turns compared. */
export function compareVersions(starts: readonly SessionStart[]) {
  return [...Map.groupBy(starts, ({ tool }) => tool)].flatMap(([tool, own]) => {
    const inOrder = own.toSorted((a, b) => a.at - b.at);
    const [older = [], newer = []] = [...Map.groupBy(inOrder, ({ version }) => version).values()]
      .filter(({ length }) => length >= MIN_SESSIONS)
      .map((sessions) => sessions.slice(-MAX_SESSIONS))
      .slice(-2);
    const { percent, deviations, sessions } = compareStarts(newer, older);
    if (percent < MIN_PERCENT || deviations < BEYOND_CHANCE) return [];
    const [turns = 0, turns_before = 0] = sessions.map((count) => count * TURNS);
    const [version = "", before = ""] = [newer, older].map(([first]) => first?.version);
    return [{ tool, version, before, percent, turns, turns_before }];
  });
}

/** The rank test of Mann and Whitney: in how many pairs of one kind the newer session has more
 *  input. `percent`: how much more in the middle pair. Sessions come in runs of similar work: the
 *  more alike they are, the larger the variance. */
function compareStarts(newer: readonly SessionStart[], older: readonly SessionStart[]) {
  const olderByKind = Map.groupBy(older, ({ kind }) => kind);
  const likeness: number[] = [];
  const ratios: number[] = [];
  let [lead, variance, sessions, earlier] = [0, 0, 0, 0];
  for (const [kind, after] of Map.groupBy(newer, (start) => start.kind)) {
    const before = olderByKind.get(kind);
    if (before === undefined) continue;
    const all = [...before, ...after];
    const scores = scoreStarts(after, all);
    addLikeness(likeness, scoreStarts(before, all));
    addLikeness(likeness, scores);
    lead += add(scores);
    variance += (after.length * before.length * (after.length + before.length + 1)) / 12;
    for (const { input } of before) ratios.push(...after.map((start) => start.input / Math.max(1, input)));
    sessions += after.length;
    earlier += before.length;
  }
  const deviation = Math.sqrt(variance * measureRuns(likeness.slice(0, (sessions + earlier) / 4)));
  const ratio = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)] ?? 1;
  return {
    percent: Math.round((ratio - 1) * 100),
    deviations: deviation === 0 ? 0 : lead / deviation,
    sessions: [sessions, earlier],
  };
}

function add(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}

/** The rank of each among all, relative to the middle. */
function scoreStarts(starts: readonly SessionStart[], all: readonly SessionStart[]): number[] {
  return starts.map(({ input }) => add(all.map((other) => Math.sign(input - other.input) / 2)));
}

/** How alike two sessions are, by distance. */
function addLikeness(likeness: number[], scores: readonly number[]): void {
  const mean = add(scores) / scores.length;
  const rests = scores.map((score) => score - mean);
  for (const apart of rests.keys())
    likeness[apart] =
      (likeness[apart] ?? 0) + add(rests.slice(apart).map((rest, at) => rest * (rests[at] ?? 0)));
}

/** How many similar sessions say as much as one independent session. */
function measureRuns([whole = 0, ...others]: readonly number[]): number {
  const end = others.findIndex((each) => each <= 0);
  return whole === 0 ? 1 : 1 + (2 * add(end < 0 ? others : others.slice(0, end))) / whole;
}
