// Whether a version of a tool sends more input per turn than the version before.

import type { Table } from "../store/open.ts";
import { addColumns, IS_TURN } from "../store/schema.ts";
import { PROMPT_KINDS } from "../usage.ts";
import type { Clock } from "./period.ts";

export interface SessionStart {
  readonly tool: string;
  readonly version: string;
  /** The model, key and label. */
  readonly kind: string;
  readonly at: number;
  /** The median input of its first turns, some of which go to a small model. */
  readonly input: number;
}

const WEEK_MS = 7 * 86_400_000;
const PERIOD_MS = 4 * WEEK_MS;
const MAX_STARTS = 300;
/** Only the first turns are compared: input grows with each turn. */
const TURNS = 5;

export function reportVersions(table: Table, { now }: Clock) {
  const turns = `FROM requests WHERE session = begun AND agent IS NULL AND ${IS_TURN} ORDER BY at`;
  const rows = table.list(
    `WITH recent AS (
       SELECT session AS begun, MIN(first_at) AS began FROM names WHERE session IS NOT NULL
       GROUP BY session HAVING began >= $since ORDER BY began DESC LIMIT ${MAX_STARTS})
     SELECT tool, version, json_array(model, key, label), at, (
       SELECT input FROM (SELECT ${addColumns(PROMPT_KINDS)} AS input ${turns} LIMIT ${TURNS})
       ORDER BY input LIMIT 1 OFFSET ${(TURNS - 1) / 2})
     FROM recent JOIN requests ON line = (SELECT line ${turns} LIMIT 1 OFFSET ${TURNS - 1})
     WHERE version IS NOT NULL AND label IS NOT NULL`,
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
const LEAST_OF_KIND = 3;
const MAX_SESSIONS = 24;
const MIN_PERCENT = 5;
/** The input of each kind of session must rise by at least the common rise divided by this. */
const MAX_DIFFERENCE = 3;
/** One session with very much input must not hide the others. */
const MAX_HEIGHT = 0.5;

export function compareVersions(starts: readonly SessionStart[]) {
  return [...Map.groupBy(starts, ({ tool }) => tool)].flatMap(([tool, own]) => {
    const all = own.toSorted((a, b) => a.at - b.at);
    const versions = all.map(({ version }) => version);
    const updates = [...versions.keys()].filter((at) => at > 0 && versions[at] !== versions[at - 1]);
    const ends = [0, ...updates, versions.length];
    return updates.flatMap((place, index) => {
      const [start = 0, , end = 0] = ends.slice(index);
      const [older, newer] = [all.slice(start, place), all.slice(place, end)];
      const kinds = listKinds(older).intersection(listKinds(newer));
      const alike = (some: readonly SessionStart[]) => some.filter(({ kind }) => kinds.has(kind));
      const inOrder = alike(all);
      const heights = listHeights(inOrder);
      const at = alike(all.slice(0, place)).length;
      const width = Math.min(MAX_SESSIONS, alike(older).length, alike(newer).length);
      const rise = middleOf(heights.slice(at, at + width)) - middleOf(heights.slice(at - width, at));
      const percent = Math.round((Math.exp(rise) - 1) * 100);
      if (width < MIN_SESSIONS || percent < MIN_PERCENT) return [];
      if (!hasOtherWeek(inOrder, at, width) || !isLargestStep(heights, at, width)) return [];
      if (listRises(inOrder, heights, at).some((own) => own < rise / MAX_DIFFERENCE)) return [];
      const [before = "", version = ""] = versions.slice(place - 1);
      return [{ tool, version, before, percent, turns: width * TURNS }];
    });
  });
}

function listKinds(starts: readonly SessionStart[]): ReadonlySet<string> {
  const kinds = [...Map.groupBy(starts, ({ kind }) => kind)];
  return new Set(kinds.flatMap(([kind, own]) => (own.length < LEAST_OF_KIND ? [] : kind)));
}

function hasOtherWeek(inOrder: readonly SessionStart[], update: number, width: number): boolean {
  const timeOf = (index: number): number => inOrder.at(index)?.at ?? 0;
  const [first, place, last] = [timeOf(width), timeOf(update), timeOf(-width)];
  return place - first >= WEEK_MS || last - place >= WEEK_MS;
}

/** How far the input of each kind rose, from shortly before the update to shortly after it.
 *  If only the projects changed, some kinds do not rise. */
function listRises(inOrder: readonly SessionStart[], heights: readonly number[], update: number): number[] {
  const places = [...heights.keys()].slice(Math.max(0, update - 2 * MAX_SESSIONS), update + 2 * MAX_SESSIONS);
  return [...Map.groupBy(places, (at) => inOrder[at]?.kind).values()].map((own) => {
    const meanOfSide = (isNewer: boolean): number =>
      meanOf(own.filter((at) => at >= update === isNewer).map((at) => heights[at] ?? 0));
    return meanOfSide(true) - meanOfSide(false);
  });
}

function listHeights(starts: readonly SessionStart[]): number[] {
  const kinds = [...Map.groupBy(starts, ({ kind }) => kind)];
  const middles = new Map(kinds.map(([kind, own]) => [kind, middleOf(own.map(({ input }) => input))]));
  return starts.map(({ kind, input }) => {
    const height = Math.log((input + 1) / ((middles.get(kind) ?? 0) + 1));
    return Math.max(-MAX_HEIGHT, Math.min(MAX_HEIGHT, height));
  });
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
}

function middleOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

/** Most of the step has to happen within this many sessions. */
const NEAR = 5;
const LEAST_RATIO = 1.5;

/** Weekends, other projects and added tools make steps at other times, too. */
function isLargestStep(heights: readonly number[], update: number, width: number): boolean {
  const step = (at: number, size = width): number =>
    meanOf(heights.slice(at, at + size)) - meanOf(heights.slice(at - size, at));
  const own = step(update);
  if (step(update, NEAR) < own / 2) return false;
  for (let at = width; at <= heights.length - width; at += 1) {
    const distance = Math.abs(at - update);
    const isOther = distance >= width;
    if (isOther && Math.abs(step(at)) * LEAST_RATIO > own) return false;
    if (!isOther && distance > NEAR / 2 && step(at) > own) return false;
  }
  return true;
}
