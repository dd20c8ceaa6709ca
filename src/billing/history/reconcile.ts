// What the ledger and somebody else say of the same requests: only theirs, only ours, both but different.

import {
  addDecimals,
  type Decimal,
  formatDecimal,
  parseDecimal,
  subtractDecimals,
  ZERO_DECIMAL,
} from "../../lib/money.ts";
import { differsFromSeller } from "../charge.ts";
import type { Usage } from "../usage.ts";
import type { LogEntry } from "./entry.ts";
import { addUsage, joinHistory, type Pair } from "./join.ts";
import type { OurLine } from "./our-lines.ts";
import { type BookPrices, priceEntry } from "./priced.ts";
import { describeLack } from "./read-history.ts";

/** One side of a request, or of several that can only be compared together. */
export interface Side {
  readonly usage: Usage;
  /** Null: it names no amount, or none is known. */
  readonly usd: Decimal | null;
}

/** What does not agree. */
export interface Difference {
  readonly time: number;
  /** Of the request, or of what it belongs to. */
  readonly id: string;
  readonly model: string;
  /** Null: only the other one has it. */
  readonly ours: Side | null;
  readonly theirs: Side | null;
  readonly because: string | null;
}

export interface Reconciliation {
  readonly differences: readonly Difference[];
  /** How many requests, or groups of them, agree. */
  readonly agree: number;
  readonly ours: Decimal;
  readonly theirs: Decimal;
  readonly notes: readonly string[];
}

/** `isWithin`: the period. Requests at its edges are joined before they are left out. */
export function reconcileLogs(
  entries: readonly LogEntry[],
  lines: readonly OurLine[],
  prices: BookPrices,
  isWithin: (time: number) => boolean,
): Reconciliation {
  const used = lines.filter(({ usage, basis }) => basis === "unknown" || Object.values(usage).some(Boolean));
  const { pairs, onlyEntries, onlyLines } = joinHistory(entries, used);
  const all = [
    ...pairs,
    ...onlyEntries.map((entry) => ({ entries: [entry], lines: [], agrees: false })),
    ...onlyLines.map((line) => ({ entries: [], lines: [line], agrees: false })),
  ];
  const compared = all.values().map((pair) => describePair(pair, prices));
  return conclude(
    compared.filter(({ time }) => isWithin(time)),
    [],
  );
}

function describePair({ entries, lines, agrees }: Pair, prices: BookPrices): Compared {
  const [[entry], [line]] = [entries, lines];
  const theirs = {
    usage: addUsage(entries),
    usd: sumUsd(entries.map((each) => priceEntry(each, prices).official)),
  };
  const ours = { usage: addUsage(lines), usd: sumUsd(lines.map(({ official }) => official)) };
  return {
    time: (line ?? entry)?.time ?? 0,
    id: line?.id ?? nameEntry(entry),
    model: (line ?? entry)?.model ?? "",
    ours: line === undefined ? null : ours,
    theirs: entry === undefined ? null : theirs,
    because: explain(entry, line),
    agrees,
  };
}

function nameEntry(entry: LogEntry | undefined): string {
  return entry?.requestId ?? entry?.session ?? "";
}

function explain(entry: LogEntry | undefined, line: OurLine | undefined): string | null {
  if (line === undefined) return "no line has it: it went past this gateway";
  if (line.outcome !== "complete") return `the response ended early (${line.outcome})`;
  if (entry?.isRest === true) return "the log counts these together only";
  if (entry?.basis === "partial") return "the log was written before the response ended";
  return entry === undefined ? describeLack(line.client.tool ?? "") : null;
}

/** The amounts that sellers put into their answers. */
export function reconcileSellers(lines: Iterable<OurLine>): Reconciliation {
  let [all, others] = [0, 0];
  function* compare(): Generator<Compared, void> {
    for (const { time, id, model, usage, official, providerUsd, isOwnKey } of lines) {
      all += 1;
      if (providerUsd === "" || isOwnKey) {
        others += 1;
        continue;
      }
      const usd = parseDecimal(providerUsd);
      const agrees = official !== null && !differsFromSeller(formatDecimal(official), formatDecimal(usd));
      const because = official === null ? "the ledger has no price" : null;
      yield { time, id, model, ours: { usage, usd: official }, theirs: { usage, usd }, because, agrees };
    }
  }
  const found = conclude(compare(), []);
  const note = `${others} of ${all} requests have no amount of their seller's to compare with`;
  return { ...found, notes: others === 0 ? [] : [note] };
}

export type Compared = Difference & { readonly agrees: boolean };

/** Of those that agree, which may be a million, only sums are kept. */
export function conclude(compared: Iterable<Compared>, notes: readonly string[]): Reconciliation {
  const differences: Difference[] = [];
  let agree = 0;
  let [ours, theirs] = [ZERO_DECIMAL, ZERO_DECIMAL];
  for (const each of compared) {
    ours = addDecimals(ours, each.ours?.usd ?? ZERO_DECIMAL);
    theirs = addDecimals(theirs, each.theirs?.usd ?? ZERO_DECIMAL);
    if (each.agrees) agree += 1;
    else differences.push(each);
  }
  return { differences: differences.toSorted((a, b) => a.time - b.time), agree, ours, theirs, notes };
}

/** What is known of it. Null: nothing is. */
export function sumUsd(amounts: Iterable<Decimal | null>): Decimal | null {
  let sum: Decimal | null = null;
  for (const each of amounts) sum = sum === null || each === null ? (sum ?? each) : addDecimals(sum, each);
  return sum;
}

/** At most by `most`. */
export function isNear(one: Decimal, other: Decimal, most: Decimal): boolean {
  const { units, scale } = subtractDecimals(one, other);
  return subtractDecimals({ units: units < 0n ? -units : units, scale }, most).units <= 0n;
}
