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
/** In standard deviations: one of 700 comparisons of equal versions differs this much. */
const BEYOND_CHANCE = 3;
/** So that one session with very much input does not hide the others. */
const MAX_HEIGHT = 0.5;

/** For each tool: how much more input the newest version has, and the turns compared. */
export function compareVersions(starts: readonly SessionStart[]) {
  return [...Map.groupBy(starts, ({ tool }) => tool)].flatMap(([tool, own]) => {
    const inOrder = own.toSorted((a, b) => a.at - b.at);
    const [older = [], newer = []] = [...Map.groupBy(inOrder, ({ version }) => version).values()]
      .filter(({ length }) => length >= MIN_SESSIONS)
      .map((sessions) => sessions.slice(-MAX_SESSIONS))
      .slice(-2);
    const { percent, deviations, compared } = compareStarts(newer, older);
    if (percent < MIN_PERCENT || deviations < BEYOND_CHANCE || !isOfVersion(compared)) return [];
    const turns = compared.filter(({ isNewer }) => isNewer).length * TURNS;
    const [version = "", before = ""] = [newer, older].map(([first]) => first?.version);
    return [{ tool, version, before, percent, turns, turns_before: compared.length * TURNS - turns }];
  });
}

interface Compared {
  readonly at: number;
  readonly isNewer: boolean;
  /** The logarithm of the input, relative to the middle session of its kind. */
  readonly height: number;
}

/** The rank test of Mann and Whitney: in how many pairs of one kind the newer session has more
 *  input. `percent`: how much more in the middle pair. */
function compareStarts(newer: readonly SessionStart[], older: readonly SessionStart[]) {
  const olderByKind = Map.groupBy(older, ({ kind }) => kind);
  const compared: Compared[] = [];
  const ratios: number[] = [];
  let [lead, variance] = [0, 0];
  for (const [kind, after] of Map.groupBy(newer, (start) => start.kind)) {
    const before = olderByKind.get(kind);
    if (before === undefined) continue;
    const all = [...before, ...after];
    const middle = middleOf(all.map(({ input }) => Math.max(1, input)));
    for (const [index, { at, input }] of all.entries()) {
      const isNewer = index >= before.length;
      if (isNewer) lead += add(all.map((other) => Math.sign(input - other.input) / 2));
      const height = Math.log(Math.max(1, input) / middle);
      compared.push({ at, isNewer, height: Math.max(-MAX_HEIGHT, Math.min(MAX_HEIGHT, height)) });
    }
    variance += (after.length * before.length * (all.length + 1)) / 12;
    for (const { input } of before) ratios.push(...after.map((start) => start.input / Math.max(1, input)));
  }
  return {
    percent: Math.round((middleOf(ratios) - 1) * 100),
    deviations: variance === 0 ? 0 : lead / Math.sqrt(variance),
    compared: compared.toSorted((a, b) => a.at - b.at),
  };
}

function middleOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 1;
}

/** False if a change at another time, or growth until then, explains the input as well: a project
 *  grows, a user adds tools, and sessions come in runs of similar work. */
function isOfVersion(inOrder: readonly Compared[]): boolean {
  const heights = inOrder.map(({ height }) => height);
  const versions = inOrder.map(({ isNewer }) => Number(isNewer));
  const own = fit(heights, versions);
  return heights.every((_, at) => {
    const change = heights.map((__, index) => Number(index >= at));
    const growth = heights.map((__, index) => Math.min(index, at));
    return fit(heights, change) < own + 1.5 && fit(heights, growth) < own - 1;
  });
}

/** How well a course explains the heights: the square of the deviations from chance. */
function fit(heights: readonly number[], course: readonly number[]): number {
  const [a = [], b = []] = [heights, course].map((all) => {
    const mean = add(all) / all.length;
    return all.map((each) => each - mean);
  });
  const multiply = (left: readonly number[], right: readonly number[]): number =>
    add(left.map((each, index) => each * (right[index] ?? 0)));
  const along = multiply(a, b);
  return along > 0 ? (a.length * along ** 2) / (multiply(a, a) * multiply(b, b)) : 0;
}

function add(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
