// Warns once for each percentage of a USD limit. A file remembers the warnings.

import type { Key, Limits } from "../../config/catalog.ts";
import { formatMoment } from "../../config/changes/names.ts";
import { readOwn, replaceFile } from "../../lib/files/own-file.ts";
import { getField, isObject, parseJson } from "../../lib/json/json.ts";
import { addUsd, formatUsd, isShareReached, parseUsd, type Usd } from "../../lib/money.ts";
import type { Holder } from "../ledger/sums.ts";
import { findReset, listSessionLimits, listUsdLimits, type Spending, type UsdLimit } from "./limits.ts";

export interface LimitUse {
  readonly holder: Holder;
  readonly limit: string;
  readonly usd: Usd;
  /** Includes estimates for requests with unknown cost. */
  readonly spent: Usd;
  /** When the period ends, in milliseconds. Null: never. */
  readonly resets: number | null;
  /** When the key was made: a new key with an old name starts over. */
  readonly since?: string | undefined;
}

export interface LimitWarning extends LimitUse {
  readonly percent: number;
}

export type Alerts = ReturnType<typeof createAlerts>;

export interface AlertOptions {
  readonly path: string;
  readonly percentages: () => readonly number[];
  readonly report: (warning: LimitWarning) => void;
  readonly now: () => number;
}

/** Warnings in this time are saved with one write. */
const DELAY_MS = 50;
/** Sessions never end, so the oldest are forgotten. */
const MAX_REMEMBERED = 20_000;

interface ReportedLimit {
  readonly usd: string;
  readonly resets: number | null;
  readonly percent: number;
  /** Version 0.2 did not note this. */
  readonly since?: string | null;
}

export function createAlerts({ path, percentages, report, now }: AlertOptions) {
  const reported = readReported(path);
  let waiting: LimitWarning[] = [];
  let timer: Timer | null = null;
  /** Saves first: a gateway killed in between must not warn twice. */
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const warnings = waiting;
    waiting = [];
    if (warnings.length === 0) return;
    forgetOld(reported, now());
    try {
      replaceFile(path, `${JSON.stringify({ v: 1, reported: Object.fromEntries(reported) })}\n`);
    } catch {
      // If the disk is full, the ledger reports it.
    }
    warnings.forEach(report);
  };
  const note = (warning: LimitWarning): void => {
    const { holder, limit, usd, resets, percent, since = null } = warning;
    const id = `${holder.kind} ${limit} ${holder.name}`;
    const entry = { usd: formatUsd(usd), resets, percent, since };
    const known = reported.get(id);
    if (known !== undefined && isSamePeriod(known, entry) && known.percent >= entry.percent) return;
    reported.delete(id);
    reported.set(id, entry);
    waiting.push(warning);
    timer ??= setTimeout(flush, DELAY_MS);
  };
  return {
    check: (uses: Iterable<LimitUse>): void => {
      for (const use of uses) {
        const warning = findWarning(use, percentages());
        if (warning !== null) note(warning);
      }
    },
    close: flush,
  };
}

export function findWarning(use: LimitUse, percentages: readonly number[]): LimitWarning | null {
  const percent = percentages.findLast((each) => isShareReached(use.spent, use.usd, each));
  return percent === undefined ? null : { ...use, percent };
}

/** A changed limit warns anew, as in a new period. */
function isSamePeriod(one: ReportedLimit, other: ReportedLimit): boolean {
  const isSameKey = one.since === undefined || one.since === other.since;
  return isSameKey && one.usd === other.usd && one.resets === other.resets;
}

export function listLimitUses(keys: Iterable<Key>, sums: Spending, now: number): LimitUse[] {
  const uses: LimitUse[] = [];
  const groups = new Map<string, Limits>();
  for (const { name, limits, group, created } of keys) {
    const own = readUses({ kind: "key", name }, listUsdLimits(limits), sums, now);
    uses.push(...own.map((use) => ({ ...use, since: created?.toISOString() })));
    groups.set(group.name, group.limits);
  }
  for (const [name, limits] of groups)
    uses.push(...readUses({ kind: "group", name }, listUsdLimits(limits), sums, now));
  return uses;
}

export function listSessionUses({ limits, group }: Key, session: string, sums: Spending): LimitUse[] {
  const both = [limits, group.limits].flatMap(listSessionLimits);
  return readUses({ kind: "session", name: session }, both, sums, 0);
}

function readUses(holder: Holder, limits: readonly UsdLimit[], sums: Spending, now: number): LimitUse[] {
  const read = ({ limit, window, usd }: UsdLimit): LimitUse => {
    const { charged, estimated } = sums.spentOf(holder, window);
    const resets = findReset(window, sums.zone, now);
    return { holder, limit, usd: parseUsd(usd), spent: addUsd(charged, estimated), resets };
  };
  // The longest period first: its query reads the shorter ones, too.
  return limits.toReversed().map(read).toReversed();
}

export function describeWarning(warning: LimitWarning): string {
  const { holder, limit, usd, spent, resets, percent } = warning;
  const end = resets === null ? "" : `. It resets at ${formatMoment(new Date(resets))}`;
  const share = spent < usd ? `${percent} % of its limit` : "its limit";
  return `The ${holder.kind} "${holder.name}" has reached ${share}: $${formatUsd(spent)} of $${formatUsd(usd)} (${limit})${end}`;
}

function forgetOld(reported: Map<string, ReportedLimit>, now: number): void {
  for (const [id, { resets }] of reported) {
    const isOver = resets !== null && resets <= now;
    if (isOver || reported.size > MAX_REMEMBERED) reported.delete(id);
  }
}

/** At worst, a damaged file makes a warning come twice. */
function readReported(path: string): Map<string, ReportedLimit> {
  try {
    const reported = getField(parseJson(readOwn(path) ?? ""), "reported");
    const isReported = (entry: [string, unknown]): entry is [string, ReportedLimit] => {
      const resets = getField(entry[1], "resets");
      return resets === null || typeof resets === "number";
    };
    return new Map(isObject(reported) ? Object.entries(reported).filter(isReported) : []);
  } catch {
    return new Map();
  }
}
