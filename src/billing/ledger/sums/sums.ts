// What each key and group has been charged per day, per month and in total. The
// sums are computed from the ledger's lines and kept in memory, because every
// request with a limit needs them. Days and months are those of the config's time
// zone, by the request's `time`. At a start they come from the table.

import { createNamer, nameSpan, startOfSpan, UTC, type Zone } from "../../../lib/text/zone.ts";
import type { Usd } from "../../../lib/money.ts";
import { addUsd, subtractUsd, ZERO_USD } from "../../../lib/money.ts";
import {
  type Counted,
  listChannelsSpent,
  listMarks,
  listSessionsSpent,
  listSpent,
  type SessionSpent,
  type Spent,
} from "../../reports/spent.ts";
import { Table } from "../../store/open.ts";
import { type MarkDraft, markSchema } from "../line.ts";
import { noteMark } from "../start/mark.ts";
import { readRow } from "../row.ts";
import { type Entry, entryOf } from "./entry.ts";
import { addWindows, type MutableSum, readWindows, type SessionSum, SessionSums } from "./session-sums.ts";

export type Window = "day" | "month" | "total";

export interface Holder {
  readonly kind: "key" | "group" | "session";
  readonly name: string;
}

/** Late lines and corrections change earlier days. Before this, only months and totals are kept. */
const MAX_DAYS = 40;

/** At a start, the sessions of these are known. */
const RECENT_REQUESTS = 10_000;

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
interface Tallies {
  readonly key: Map<string, Sum>;
  readonly group: Map<string, Sum>;
}

/** When each key was created, in ISO times, by its name. What a removed key of the same name has spent is not its own. */
export type Births = ReadonlyMap<string, string>;

const NO_BIRTHS: Births = new Map();

export class Sums {
  readonly zone: Zone;
  #births: Births;
  readonly #sums: Tallies = { key: new Map(), group: new Map() };
  readonly #channels = new Map<string, ChannelSum>();
  readonly #sessions = new SessionSums();
  /** Those that the owner has not accepted, by id. */
  #marks = new Map<string, MarkDraft>();
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

  /** Takes the sums of a table. Of earlier months than this one, it takes the total only. */
  addTable(table: Table, now: number): void {
    const local = this.zone.toLocal(now);
    const [month, day] = (["month", "day"] as const).map((span) => startOfSpan(span, local));
    const names = { month: nameSpan("month", local), day: nameSpan("day", local) };
    const begun = { month: this.zone.fromLocal(month ?? local), day: this.zone.fromLocal(day ?? local) };
    const all = listSpent(table, begun, this.#births);
    for (const kind of ["key", "group"] as const) {
      for (const spent of all[kind]) {
        const sum = this.#sumOf(kind, spent.name);
        setTally(sum.charged, names, spent, ({ charged }) => charged);
        setTally(sum.estimated, names, spent, ({ charged, limited }) => subtractUsd(limited, charged));
        if (kind === "key") this.#noteUse(spent.name, spent.lastUsed);
      }
    }
    for (const { channel, charged, byPlan } of listChannelsSpent(table, begun.day)) {
      const sum = this.#channelOf(channel);
      addToSpans(sum.charged, names, charged);
      addToSpans(sum.byPlan, names, byPlan);
    }
    this.#sessions.load(listSessionsSpent(table, RECENT_REQUESTS).map(readSession));
    for (const text of listMarks(table)) this.#addLine(text);
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

interface StartOptions {
  readonly zone?: Zone | undefined;
  readonly births?: Births | undefined;
  readonly now: number;
  readonly report: (text: string, level: "note") => void;
}

/** Of all lines in the files. */
export function readSums(path: string, { zone, births, now, report }: StartOptions): Sums {
  using table = new Table(path, { report: (text) => report(text, "note"), check: true });
  const sums = new Sums(zone, births);
  sums.addTable(table, now);
  return sums;
}

function setTally(
  tally: Tally,
  { month, day }: SpanNames,
  spent: Spent<Counted>,
  read: (of: Counted) => Usd,
): void {
  tally.total = read(spent.total);
  tally.months.set(month, read(spent.month));
  tally.days.set(day, read(spent.day));
}

function readSession({ session, charged, limited, windows, ...sum }: SessionSpent): [string, MutableSum] {
  let rises: SessionSum["windows"] = {};
  for (const each of windows) rises = addWindows(rises, readWindows(each));
  return [session, { ...sum, charged, estimated: subtractUsd(limited, charged), windows: rises }];
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

function openTally(): Tally {
  return { total: ZERO_USD, months: new Map(), days: new Map() };
}
