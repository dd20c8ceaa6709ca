// Charges today, this month and in total, in memory. The first query reads the
// table; after that, each line adds to the sums. Days follow the config's zone.

import { roundUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { getList, parseJson } from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { findNextSpan, startOfSpan, UTC, type Zone } from "../../lib/text/zone.ts";
import { addAmount, readList, type Span } from "../reports/sums.ts";
import { Table } from "../store/open.ts";
import { isZero, PAID, weighText } from "../store/weights.ts";
import type { AnyLine, MarkDraft } from "./line.ts";
import {
  addAmounts,
  addToSession,
  type Amounts,
  listShares,
  type MutableAmounts,
  NOTHING,
  readSession,
  type SessionSum,
} from "./shares.ts";
import { listMarks } from "./mark.ts";

/** The longest first. */
const WINDOWS = ["total", "month", "day"] as const;
export type Window = (typeof WINDOWS)[number];

export interface Holder {
  readonly kind: "key" | "group" | "channel" | "session" | "run";
  readonly name: string;
}

/** When keys were made, in ms. */
export type Births = ReadonlyMap<string, number>;

export interface SumsOptions {
  readonly path: string;
  readonly now: () => number;
  readonly report: (text: string, level: "note") => void;
  /** The ledger is a copy: nothing is written next to it. */
  readonly isCopy?: boolean;
  readonly zone?: Zone | undefined;
  /** Absent: all lines with a key's name count for it. */
  readonly births?: Births | undefined;
}

/** Older sessions are read again when they continue. */
const MAX_SESSIONS = 10_000;

const FIRST_MS = Number.MIN_SAFE_INTEGER;
const NONE: Readonly<Sum> = { ...NOTHING, last: FIRST_MS };
const startSum = (): Sum => ({ ...NONE });
const startSums = (): Map<string, Sum> => new Map();

interface Tally {
  readonly since: number;
  readonly until: number;
  readonly all: Sum;
  readonly sums: Readonly<Record<"key" | "group" | "channel", Map<string, Sum>>>;
}

interface Sum extends MutableAmounts {
  last: number;
}

type Place = Readonly<Record<"key" | "group" | "channel", string> & Record<"start", number>>;

export class Sums {
  readonly #options: SumsOptions;
  zone: Zone;
  #births: Births;
  readonly marks = new Map<string, MarkDraft>();
  readonly #tallies = new Map<Window, Tally>();
  readonly #sessions = new BoundedMap<string, SessionSum>(MAX_SESSIONS);
  /** Lines that are not yet in the files. */
  #waiting: AnyLine[] = [];
  /** Making a table in memory takes long, so it is kept.
   *  A table in a file is opened for each query. */
  #table: Table | null = null;

  constructor(options: SumsOptions) {
    this.#options = options;
    this.zone = options.zone ?? UTC;
    this.#births = options.births ?? new Map();
    for (const mark of this.ask(listMarks)) this.marks.set(mark.id, mark);
  }

  follow(zone: Zone, births: Births): void {
    const isOther = births.entries().some(([key, time]) => {
      const isKnown = this.#tallies.values().some(({ sums }) => sums.key.has(key));
      return isKnown && this.#births.get(key) !== time;
    });
    if (zone.name !== this.zone.name || isOther) this.#tallies.clear();
    this.zone = zone;
    this.#births = births;
  }

  add(line: AnyLine): void {
    if (!("mark" in line)) this.#waiting.push(line);
    else if (line.accepts === undefined) this.marks.set(line.id, line);
    else this.marks.delete(line.accepts);
    const now = this.#options.now();
    const tallies = WINDOWS.map((window) => this.#roll(window, now));
    this.#addLine(tallies, line);
    const session = this.#sessions.get(line.client?.session ?? "");
    if (session !== undefined) addToSession(session, line);
  }

  clearWaiting(): void {
    this.#waiting = [];
  }

  /** For a session, this is always the total. */
  spentOf({ kind, name }: Holder, window: Window): Amounts {
    if (kind === "session") return this.#findSession(name);
    return kind === "run" ? NONE : (this.#find(window).sums[kind].get(name) ?? NONE);
  }

  /** The charges of all groups, also of removed ones. */
  spentTogether(window: Window): Usd {
    return this.#find(window).all.charged;
  }

  lastUsed(key: string): string | null {
    const { last } = this.#find("total").sums.key.get(key) ?? NONE;
    return last === FIRST_MS || last < this.#bornAt(key) ? null : new Date(last).toISOString();
  }

  sessionOf(id: string): SessionSum | null {
    const session = this.#findSession(id);
    return session.requests === 0 ? null : session;
  }

  /** `compares`: the table is made again if somebody changed it. */
  ask<T>(query: (table: Table) => T, compares = false): T {
    const { path, report, isCopy = false } = this.#options;
    this.#table?.advance();
    const table =
      this.#table ?? new Table(path, { report: (text) => report(text, "note"), isCopy, compares });
    try {
      return query(table);
    } finally {
      if (table.isInMemory) this.#table = table;
      else table[Symbol.dispose]();
    }
  }

  #find(window: Window): Tally {
    return this.#roll(window) ?? this.load(window);
  }

  /** A new day or month begins with 0. Null: the table has to be read. */
  #roll(window: Window, now = this.#options.now()): Tally | null {
    const known = this.#tallies.get(window);
    if (known === undefined || (now >= known.since && now < known.until)) return known ?? null;
    this.#tallies.delete(window);
    return now < known.until || known.all.last >= known.until ? null : this.#open(window);
  }

  #open(window: Window): Tally {
    const { zone } = this;
    const now = this.#options.now();
    const [since, until] =
      window === "total"
        ? [FIRST_MS, Infinity]
        : [zone.fromLocal(startOfSpan(window, zone.toLocal(now))), findNextSpan(window, zone, now)];
    const sums = { key: startSums(), group: startSums(), channel: startSums() };
    const tally: Tally = { since, until, all: startSum(), sums };
    this.#tallies.set(window, tally);
    return tally;
  }

  /** Reads the window and all shorter ones with one query.
   *  A start does this for `total`, so that no request waits for the table. */
  load(window: Window = "total"): Tally {
    const tallies = WINDOWS.slice(WINDOWS.indexOf(window)).map((each) => this.#open(each));
    const [tally = this.#open(window)] = tallies;
    const begins = [...this.#births.values(), ...tallies.map(({ since }) => since)];
    const starts = [...new Set(begins)].filter((at) => at >= tally.since).toSorted((a, b) => a - b);
    const spans = starts.map((at, index): Span => [String(at), at, starts[index + 1] ?? -FIRST_MS]);
    const read = (table: Table) => listSpent(table, spans);
    let found = this.ask(read);
    if (!found.isIntact) found = this.ask(read, true);
    for (const { place, last, amounts } of found.spent)
      for (const each of tallies) if (place.start >= each.since) this.#count(each, place, last, amounts);
    for (const line of [...this.marks.values(), ...this.#waiting]) this.#addLine(tallies, line);
    return tally;
  }

  /** What an earlier key of this name spent counts only for its group and channel. */
  #count({ all, sums }: Tally, { key, group, channel, start }: Place, last: number, amounts: Amounts): void {
    addToSum(all, last, amounts);
    addToSum(sums.group.getOrInsertComputed(group, startSum), last, amounts);
    addToSum(sums.channel.getOrInsertComputed(channel, startSum), last, amounts);
    if (start >= this.#bornAt(key)) addToSum(sums.key.getOrInsertComputed(key, startSum), last, amounts);
  }

  #bornAt(key: string): number {
    return this.#births.get(key) ?? FIRST_MS;
  }

  #addLine(tallies: readonly (Tally | null)[], line: AnyLine): void {
    const { key, group } = line;
    const channel = "channel" in line ? line.channel : "";
    for (const { at, amounts } of listShares(line))
      for (const tally of tallies)
        if (tally !== null && at >= tally.since)
          this.#count(tally, { key, group, channel, start: at }, at, amounts);
  }

  #findSession(id: string): SessionSum {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const session = this.ask((table) => readSession(table, id));
    for (const line of [...this.marks.values(), ...this.#waiting])
      if (line.client?.session === id) addToSession(session, line);
    this.#sessions.set(id, session);
    return session;
  }
}

function addToSum(sum: Sum, last: number, amounts: Amounts): void {
  addAmounts(sum, amounts);
  sum.last = Math.max(sum.last, last);
}

/** Reads two indexes in their order, so that nothing is sorted. */
const SPENT = `SELECT key, group_name, channel, paid_by, since, MAX(at),
    SUM(charge), SUM(counted), SUM(official), ${PAID.exact}, ${PAID.payer}, ${PAID.amounts}
  FROM spans CROSS JOIN names INDEXED BY by_key CROSS JOIN lines USING (who)
  WHERE last_at >= since AND first_at < until AND at >= since AND at < until
  GROUP BY since, key, group_name, channel, paid_by`;

/** `isIntact`: the amounts have the noted checksum.
 *  This is tested only if the spans have all lines. */
function listSpent(table: Table, spans: readonly Span[]) {
  const [[noted] = []] = table.list("SELECT paid FROM state");
  let difference = Number(noted);
  const found = table.list(SPENT, { $spans: JSON.stringify(spans) });
  const spent = found.map(([key, group, channel, payer, start, last, ...sums]) => {
    const [charge = null, counted = null, official = null, rare = null, who, weight] = sums;
    difference -= weighText(who, weight, rare);
    const texts = readList(rare, table).map((row) => parseJson(String(getList(row)[2])));
    const charged = roundUsd(addAmount(charge, texts, "charge"));
    const estimated = subtractUsd(roundUsd(addAmount(counted, texts, "counted")), charged);
    const byPlan = payer === "plan" ? roundUsd(addAmount(official, texts, "plan")) : ZERO_USD;
    const place = { key: String(key), group: String(group), channel: String(channel), start: Number(start) };
    return { place, last: Number(last), amounts: { charged, estimated, byPlan } };
  });
  return { spent, isIntact: spans[0]?.[1] !== FIRST_MS || isZero(difference) };
}
