// Whether a tool's newest version sends more input per turn than the version before.

import type { Table } from "../store/open.ts";
import { addColumns, IS_TURN } from "../store/schema.ts";
import { PROMPT_KINDS } from "../usage.ts";
import type { Clock } from "./period.ts";

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
    const { percent, compared } = compareStarts(newer, older);
    if (percent < MIN_PERCENT || !isOfVersion(compared)) return [];
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

/** `percent`: how much more input the newer session has in the middle pair of one kind. */
function compareStarts(newer: readonly SessionStart[], older: readonly SessionStart[]) {
  const olderByKind = Map.groupBy(older, ({ kind }) => kind);
  const compared: Compared[] = [];
  const ratios: number[] = [];
  for (const [kind, after] of Map.groupBy(newer, (start) => start.kind)) {
    const before = olderByKind.get(kind) ?? [];
    const all = before.length === 0 ? [] : [...before, ...after];
    const middle = middleOf(all.map(({ input }) => input));
    for (const [index, { at, input }] of all.entries()) {
      const height = Math.log((input + 1) / (middle + 1));
      const isNewer = index >= before.length;
      compared.push({ at, isNewer, height: Math.max(-MAX_HEIGHT, Math.min(MAX_HEIGHT, height)) });
    }
    for (const { input } of before) ratios.push(...after.map((start) => (start.input + 1) / (input + 1)));
  }
  compared.sort((a, b) => a.at - b.at);
  return { percent: Math.round((middleOf(ratios) - 1) * 100), compared };
}

function middleOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 1;
}

/** A change within this many sessions of the update may be the update's own. */
const NEAR = 4;

/** False if a change at another time, or growth until then, explains the input as well: a project
 *  grows, a user adds tools, and sessions come in runs of similar work. */
function isOfVersion(inOrder: readonly Compared[]): boolean {
  const heights = inOrder.map(({ height }) => height);
  const versions = inOrder.map(({ isNewer }) => Number(isNewer));
  const change = versions.filter((version) => version === 0).length;
  // Both are in use, as in a terminal and an editor.
  if (add(versions.slice(0, change)) > NEAR / 2 || change < MIN_SESSIONS) return false;
  const mean = (from: number, to?: number): number => meanOf(heights.slice(from, to));
  const rise = mean(change - NEAR, change) - mean(0, change - NEAR);
  const late = mean(change + NEAR) - mean(change, change + NEAR);
  if (Math.max(rise, late) > (mean(change) - mean(0, change)) / 2) return false;
  const own = fit(heights, versions);
  if (own < BEYOND_CHANCE ** 2) return false;
  return heights.every((_, at) => {
    const growth = heights.map((__, index) => Math.min(index, at));
    if (fit(heights, growth) > own - 1) return false;
    const other = heights.map((__, index) => Number(index >= at));
    return Math.abs(at - change) <= NEAR || fit(heights, other) < own;
  });
}

/** How well a course explains the heights: the square of the deviations from chance. */
function fit(heights: readonly number[], course: readonly number[]): number {
  const [middle, level] = [meanOf(heights), meanOf(course)];
  let [along, size, length] = [0, 0, 0];
  for (const [index, each] of course.entries()) {
    const [height, step] = [(heights[index] ?? 0) - middle, each - level];
    along += height * step;
    size += height ** 2;
    length += step ** 2;
  }
  return along > 0 ? (heights.length * along ** 2) / (size * length) : 0;
}

function meanOf(numbers: readonly number[]): number {
  return add(numbers) / numbers.length;
}

function add(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
