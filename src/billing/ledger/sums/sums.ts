// What each key and group has been charged per day, per month and in total. The
// sums are computed from the ledger's lines and kept in memory, because every
// request with a limit needs them. Days and months are those of the config's time
// zone, by the request's `time`. At a start they come from the index, if there is one that fits.

import { getErrorMessage } from "../../../lib/errors.ts";
import { createNamer, startOfSpan, UTC, type Zone } from "../../../lib/text/zone.ts";
import type { Usd } from "../../../lib/money.ts";
import { addUsd, roundUsd, subtractUsd, ZERO_USD } from "../../../lib/money.ts";
import { LAST, listFirstTimes, listGroups, listLastTimes } from "../../index/groups.ts";
import { type LedgerIndex, listMarks } from "../../index/ledger-index.ts";
import { openIndexFile } from "../../index/open.ts";
import { measureUnread, NOTHING_READ, type Progress, reportLongReading } from "../../index/progress.ts";
import { listSessionSums } from "../../index/sessions.ts";
import type { Traits } from "../../index/traits.ts";
import { type MarkDraft, markSchema } from "../line.ts";
import { noteMark } from "../start/mark.ts";
import { readLines, type Source } from "../reader.ts";
import { holdLedgerFiles } from "../rotation.ts";
import { readRow } from "../row.ts";
import { type Entry, entryOf } from "./entry.ts";
import { MAX_SESSIONS, type SessionSum, SessionSums } from "./session-sums.ts";

export type Window = "day" | "month" | "total";

export interface Holder {
  readonly kind: "key" | "group" | "session";
  readonly name: string;
}

/** Late lines and corrections change earlier days. Before this, only months and totals are kept. */
const MAX_DAYS = 40;

interface Tally {
  total: Usd;
  readonly months: Map<string, Usd>;
  readonly days: Map<string, Usd>;
}

interface SpanNames {
  readonly day: string;
  readonly month: string;
}

interface Sum {
  lastUsed: string | null;
  readonly charged: Tally;
  /** What limits count in addition: estimates of requests whose cost is not known. */
  readonly estimated: Tally;
}

/** What went through a channel. */
interface ChannelSum {
  readonly charged: Tally;
  /** What a plan paid, by official prices. It is no part of the charge. */
  readonly byPlan: Tally;
}

export type ChannelDay = { readonly [part in keyof ChannelSum]: Usd };

/** By name. */
export interface Tallies {
  readonly key: Map<string, Sum>;
  readonly group: Map<string, Sum>;
}

/** When each key was created, in ISO times, by its name. What a removed key of the same name has spent is not its own. */
export type Births = ReadonlyMap<string, string>;

const NO_BIRTHS: Births = new Map();

export class Sums {
  readonly zone: Zone;
  #births: Births;
  /** Keys of which the index has more than their own lines. */
  readonly #reborn = new Set<string>();
  readonly #sums: Tallies = { key: new Map(), group: new Map() };
  readonly #channels = new Map<string, ChannelSum>();
  readonly #sessions = new SessionSums();
  /** Those that the owner has not accepted, by id. */
  #marks = new Map<string, MarkDraft>();
  /** What the index had, until the ledger was added up. */
  #indexed: Tallies | null = null;
  /** A request's ISO time → the name of its day, and of its month. */
  readonly #names: { readonly [span in keyof SpanNames]: (time: string) => string };

  constructor(zone: Zone = UTC, births: Births = NO_BIRTHS) {
    this.zone = zone;
    this.#births = births;
    this.#names = { day: createNamer("day", zone), month: createNamer("month", zone) };
  }

  /** Adds what a line or a correction says. It counts at the request's time. */
  add(entry: Entry): void {
    const { key, group, channel, time, session, charged, byPlan, estimated, replaced } = entry;
    const at = this.#nameSpans(time);
    this.#noteUse(key, time);
    for (const kind of ["key", "group"] as const) {
      const name = kind === "key" ? key : group;
      const counts = (of: string): boolean => kind === "group" || this.#isOwn(key, of);
      const sum = this.#sumOf(kind, name);
      if (counts(time)) addAt(sum.charged, at, charged);
      if (counts(time) && estimated !== ZERO_USD) addAt(sum.estimated, at, estimated);
      if (replaced !== null && counts(replaced.time))
        addAt(sum.estimated, this.#nameSpans(replaced.time), subtractUsd(ZERO_USD, replaced.estimated));
    }
    if (charged !== ZERO_USD) addAt(this.#channelOf(channel).charged, at, charged);
    if (byPlan !== ZERO_USD) addAt(this.#channelOf(channel).byPlan, at, byPlan);
    if (session !== undefined) this.#sessions.add(session, entry);
  }

  /** Of the day that `now` is in. */
  channelDay(name: string, now: number): ChannelDay {
    const { charged = openTally(), byPlan = openTally() } = this.#channels.get(name) ?? {};
    return {
      charged: this.#readTally(charged, "day", now),
      byPlan: this.#readTally(byPlan, "day", now),
    };
  }

  #isOwn(key: string, time: string): boolean {
    return time >= (this.#births.get(key) ?? "");
  }

  /** Keys were created or changed. A key that was created after all of its lines has spent nothing. Returns the names of
   *  these keys, or null: for one of the others, the lines have to be added up again. */
  follow(births: Births): string[] | null {
    const before = this.#births;
    const changed = [...births].filter(([name, time]) => before.get(name) !== time);
    this.#births = births;
    const used = changed.filter(([name]) => this.lastUsed(name) !== null);
    if (used.some(([name, time]) => (this.lastUsed(name) ?? "") >= time)) return null;
    for (const [name] of used) this.#sums.key.delete(name);
    return used.map(([name]) => name);
  }

  /** What was charged. Of a session, only the total is known. */
  spentOf({ kind, name }: Holder, window: Window, now: number): Usd {
    if (kind === "session") return this.#sessions.get(name)?.charged ?? ZERO_USD;
    const sum = this.#sums[kind].get(name);
    return sum === undefined ? ZERO_USD : this.#readTally(sum.charged, window, now);
  }

  /** The estimates that limits count in addition. */
  estimatedOf({ kind, name }: Holder, window: Window, now: number): Usd {
    if (kind === "session") return this.#sessions.get(name)?.estimated ?? ZERO_USD;
    const sum = this.#sums[kind].get(name);
    return sum === undefined ? ZERO_USD : this.#readTally(sum.estimated, window, now);
  }

  /** Null: no line has this session, or it was used too long ago. */
  sessionOf(id: string): SessionSum | null {
    return this.#sessions.get(id);
  }

  /** The sum of all groups, including those that the config no longer has. */
  spentTogether(window: Window, now: number): Usd {
    const names = [...this.#sums.group.keys()];
    return names.reduce(
      (sum, name) => addUsd(sum, this.spentOf({ kind: "group", name }, window, now)),
      ZERO_USD,
    );
  }

  noteMark(mark: MarkDraft): void {
    noteMark(this.#marks, mark);
  }

  get marks(): ReadonlyMap<string, MarkDraft> {
    return this.#marks;
  }

  lastUsed(key: string): string | null {
    return this.#sums.key.get(key)?.lastUsed ?? null;
  }

  /** Takes the sums of an index. Of earlier months than this one, it takes the total only. */
  addIndex(index: LedgerIndex, now: number): void {
    const { zone } = this;
    const all = { since: null, until: null, zone, bySender: false };
    const month = new Date(zone.fromLocal(startOfSpan("month", zone.toLocal(now)))).toISOString();
    for (const { traits, charge } of listGroups(index, all))
      for (const tally of this.#talliesOf(traits)) tally.total = addUsd(tally.total, charge);
    for (const { traits, official, charge, span } of listGroups(index, {
      ...all,
      since: month,
      span: "day",
    })) {
      const at = { day: span, month: span.slice(0, 7) };
      for (const tally of this.#talliesOf(traits)) addToSpans(tally, at, charge);
      if (traits.type === "estimate") continue;
      const channel = this.#channelOf(traits.channel);
      addToSpans(channel.charged, at, charge);
      if (traits.paidBy === "plan") addToSpans(channel.byPlan, at, roundUsd(official));
    }
    for (const [key, time] of listLastTimes(index)) this.#noteUse(key, time);
    this.#addOwnLines(index);
    this.#sessions.load(listSessionSums(index, MAX_SESSIONS));
    this.#marks = listMarks(index);
    this.#indexed = structuredClone(this.#sums);
  }

  /** Of keys that have lines of an earlier key of their name, only their own lines count. */
  #addOwnLines(index: LedgerIndex): void {
    const first = listFirstTimes(index);
    for (const [name, since] of this.#births) {
      if ((first.get(name) ?? LAST) >= since) continue;
      this.#reborn.add(name);
      const lastUsed = this.lastUsed(name);
      this.#sums.key.delete(name);
      if (lastUsed !== null && lastUsed >= since) this.#noteUse(name, lastUsed);
      const { zone } = this;
      for (const { traits, charge, span } of listGroups(index, {
        since,
        until: null,
        zone,
        span: "day",
        bySender: false,
      })) {
        if (traits.key !== name) continue;
        const tally = this.#sumOf("key", name)[traits.type === "estimate" ? "estimated" : "charged"];
        addAt(tally, { day: span, month: span.slice(0, 7) }, charge);
      }
    }
  }

  #talliesOf({ type, key, group }: Traits): readonly Tally[] {
    const kind = type === "estimate" ? "estimated" : "charged";
    return [this.#sumOf("key", key)[kind], this.#sumOf("group", group)[kind]];
  }

  /** Of keys and groups. */
  get tallies(): Tallies {
    return this.#sums;
  }

  /** Takes the sums of the lines that `addIndex` had, added up from the ledger: the larger amount counts. */
  raise(tallies: Tallies): void {
    const indexed = this.#indexed;
    this.#indexed = null;
    if (indexed === null) return;
    for (const each of ["key", "group"] as const) {
      for (const [name, sum] of tallies[each]) {
        if (each === "key" && this.#reborn.has(name)) continue;
        const own = this.#sumOf(each, name);
        raiseTally(own.charged, indexed[each].get(name)?.charged, sum.charged);
        raiseTally(own.estimated, indexed[each].get(name)?.estimated, sum.estimated);
      }
    }
  }

  /** Reads the lines of these files, from where an index has read to. */
  addFiles(files: readonly Source[], { files: read }: Pick<Progress, "files"> = NOTHING_READ): void {
    for (const [index, file] of files.entries()) {
      if (index < read.length - 1) continue;
      for (const { text, whole } of readLines(file, read[index]?.offset)) if (whole) this.#addLine(text);
    }
  }

  /** Lines that are not in the files yet. */
  addLines(lines: readonly string[]): void {
    for (const line of lines) this.#addLine(line);
  }

  #addLine(text: string): void {
    const row = readRow(text);
    if (row === null) return;
    this.add(entryOf(row));
    const mark = row.line["mark"] === undefined ? undefined : markSchema.safeParse(row.line).data;
    if (mark !== undefined) this.noteMark(mark);
  }

  #readTally(tally: Tally, window: Window, now: number): Usd {
    if (window === "total") return tally.total;
    const today = this.#names[window](new Date(now).toISOString());
    return (window === "day" ? tally.days : tally.months).get(today) ?? ZERO_USD;
  }

  #nameSpans(time: string): SpanNames {
    return { day: this.#names.day(time), month: this.#names.month(time) };
  }

  #noteUse(name: string, time: string): void {
    if (!this.#isOwn(name, time)) return;
    const key = this.#sumOf("key", name);
    if (key.lastUsed === null || time > key.lastUsed) key.lastUsed = time;
  }

  #channelOf(name: string): ChannelSum {
    return this.#channels.getOrInsertComputed(name, () => ({ charged: openTally(), byPlan: openTally() }));
  }

  #sumOf(kind: "key" | "group", name: string): Sum {
    const known = this.#sums[kind].get(name);
    if (known !== undefined) return known;
    const sum: Sum = { lastUsed: null, charged: openTally(), estimated: openTally() };
    this.#sums[kind].set(name, sum);
    return sum;
  }
}

export interface StartSums {
  readonly sums: Sums;
  /** How many lines of them are from the index. Null: all are from the ledger. */
  readonly indexedLines: number | null;
}

interface StartOptions {
  readonly zone?: Zone | undefined;
  readonly births?: Births | undefined;
  readonly now: number;
  readonly report: (text: string, level: "note") => void;
}

/** From the index if it can be used, and what it lacks from the ledger. */
export function readSums(path: string, { zone, births, now, report }: StartOptions): StartSums {
  using held = holdLedgerFiles(path);
  const note = (text: string): void => report(text, "note");
  const addRest = (sums: Sums, progress: Progress): void => {
    reportLongReading(measureUnread(progress, held.sources), note);
    sums.addFiles(held.sources, progress);
  };
  try {
    using index = openIndexFile(path, held.sources, note);
    const indexed = new Sums(zone, births);
    if (index !== null) {
      indexed.addIndex(index, now);
      addRest(indexed, index.progress);
      return { sums: indexed, indexedLines: index.progress.lines };
    }
  } catch (error) {
    // A damaged page is found only when it is read.
    note(`${getErrorMessage(error)}. The ledger itself is read.`);
  }
  const sums = new Sums(zone, births);
  addRest(sums, NOTHING_READ);
  return { sums, indexedLines: null };
}

function addAt(tally: Tally, spans: SpanNames, amount: Usd): void {
  tally.total = addUsd(tally.total, amount);
  addToSpans(tally, spans, amount);
}

function addToSpans({ months, days }: Tally, { day, month }: SpanNames, amount: Usd): void {
  months.set(month, addUsd(months.get(month) ?? ZERO_USD, amount));
  const known = days.get(day);
  days.set(day, addUsd(known ?? ZERO_USD, amount));
  if (known === undefined && days.size > MAX_DAYS) days.delete([...days.keys()].sort()[0] ?? day);
}

function raiseTally(tally: Tally, indexed: Tally | undefined, real: Tally): void {
  tally.total = raiseAmount(tally.total, indexed?.total, real.total);
  for (const span of ["months", "days"] as const) {
    for (const [name, amount] of real[span])
      tally[span].set(name, raiseAmount(tally[span].get(name), indexed?.[span].get(name), amount));
  }
}

function raiseAmount(amount = ZERO_USD, indexed = ZERO_USD, real = ZERO_USD): Usd {
  return real > indexed ? addUsd(amount, subtractUsd(real, indexed)) : amount;
}

function openTally(): Tally {
  return { total: ZERO_USD, months: new Map(), days: new Map() };
}
