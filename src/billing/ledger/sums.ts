// Charges of keys, groups and channels today, this month and in total, in memory. The first
// question reads a window from the table; then each line adds to it. Days follow the config's zone.

import { roundUsd, subtractUsd, type Usd } from "../../lib/money.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { createNamer, startOfSpan, UTC, type Zone } from "../../lib/text/zone.ts";
import { addAmount, readList, toIso } from "../reports/sums.ts";
import { Table, type CellValue } from "../store/open.ts";
import type { AnyLine, MarkDraft } from "./line.ts";
import { addToSession, readSession, type SessionSum } from "./session-sums.ts";
import { addAmounts, type Amounts, listShares, type MutableAmounts, negate, NOTHING } from "./shares.ts";
import { listMarks, noteMark } from "./mark.ts";

export type Window = "day" | "month" | "total";

export interface Holder {
  readonly kind: "key" | "group" | "session" | "run";
  readonly name: string;
}

/** When each key was created, by its name. An earlier key of the same name spent separately. */
export type Births = ReadonlyMap<string, string>;

export interface SumsOptions {
  readonly path: string;
  readonly now: () => number;
  readonly report: (text: string, level: "note") => void;
  /** Nothing is written next to the ledger. */
  readonly isCopy?: boolean;
  /** Default: UTC. */
  readonly zone?: Zone | undefined;
  /** Default: no key is younger than its lines. */
  readonly births?: Births | undefined;
}

/** More sessions replace the least recently used, which are read again when they continue. */
const MAX_SESSIONS = 10_000;

const ALL = "all";
/** Earlier than all lines. */
const FIRST_MS = Number.MIN_SAFE_INTEGER;

/** What was spent since a day or month began. */
interface Tally {
  /** `2026-11-20` or `2026-11`. */
  readonly span: string;
  /** By names such as `key laptop`. */
  readonly sums: Map<string, MutableAmounts>;
  /** The sums have lines of a later span: the clock was set back. */
  hasLater: boolean;
}

export class Sums {
  readonly #options: SumsOptions;
  zone: Zone;
  #births: Births;
  #nameSpan: Readonly<Record<Window, (time: string) => string>>;
  /** The marks that the owner has not accepted, by id. */
  readonly marks = new Map<string, MarkDraft>();
  /** The windows that somebody asked for. */
  readonly #tallies = new Map<Window, Tally>();
  readonly #lastUsed = new Map<string, string>();
  readonly #sessions = new BoundedMap<string, SessionSum>(MAX_SESSIONS);
  /** Lines that are not yet in the files. */
  #waiting: AnyLine[] = [];
  /** A table in memory is kept: reading it takes long. */
  #table: Table | null = null;
  /** Sums may have been edited: the first question of limits compares them. */
  #isCompared = false;

  constructor(options: SumsOptions) {
    this.#options = options;
    this.zone = options.zone ?? UTC;
    this.#births = options.births ?? new Map();
    this.#nameSpan = nameSpans(this.zone);
    for (const mark of this.ask(listMarks)) this.marks.set(mark.id, mark);
  }

  /** Sums are read again after a change of the zone, or for a new key with an old name. */
  follow(zone: Zone, births: Births): void {
    const tallies = [...this.#tallies.values()];
    const isOther = births.entries().some(([key, time]) => {
      return this.#births.get(key) !== time && tallies.some(({ sums }) => sums.has(`key ${key}`));
    });
    if (zone.name !== this.zone.name || isOther) {
      this.#tallies.clear();
      this.#lastUsed.clear();
    }
    this.zone = zone;
    this.#births = births;
    this.#nameSpan = nameSpans(zone);
  }

  /** Adds a line. It counts at the request's time. */
  add(line: AnyLine): void {
    if ("mark" in line) noteMark(this.marks, line);
    else this.#waiting.push(line);
    for (const window of this.#tallies.keys()) {
      const tally = this.#roll(window);
      if (tally !== null) this.#addLine(window, tally, line);
    }
    const session = this.#sessions.get(line.client?.session ?? "");
    if (session !== undefined) addToSession(session, line);
  }

  /** The added lines are now in the files. */
  clearWaiting(): void {
    this.#waiting = [];
  }

  /** For a session, only the total is known. */
  spentOf({ kind, name }: Holder, window: Window): Amounts {
    return kind === "session" ? this.#findSession(name) : this.#find(window, `${kind} ${name}`);
  }

  /** What went through a channel today. */
  channelDay(name: string): Amounts {
    return this.#find("day", `channel ${name}`);
  }

  /** All groups together, also groups that left the config. */
  spentTogether(window: Window): Usd {
    return this.#find(window, ALL).charged;
  }

  /** The ISO time of a key's last billed request, or null. */
  lastUsed(key: string): string | null {
    this.#find("total", "");
    return this.#lastUsed.get(key) ?? null;
  }

  /** Null: no line has this session. */
  sessionOf(id: string): SessionSum | null {
    const session = this.#findSession(id);
    return session.requests === 0 ? null : session;
  }

  /** Asks the table, which has all lines in the files. `compares`: as in the table's options. */
  ask<T>(question: (table: Table) => T, compares: "spent" | null = null): T {
    const { path, report, isCopy = false } = this.#options;
    this.#table?.advance();
    const table =
      this.#table ?? new Table(path, { report: (text) => report(text, "note"), isCopy, compares });
    try {
      return question(table);
    } finally {
      if (table.isInMemory) this.#table = table;
      else table[Symbol.dispose]();
    }
  }

  #askCompared<T>(question: (table: Table) => T): T {
    const found = this.ask(question, this.#isCompared ? null : "spent");
    this.#isCompared = true;
    return found;
  }

  #find(window: Window, name: string): Amounts {
    const { sums } = this.#roll(window) ?? this.#load(window);
    return sums.get(name) ?? NOTHING;
  }

  get #now(): string {
    return new Date(this.#options.now()).toISOString();
  }

  /** The sums of this day or month. A new day or month begins with 0. Null: read them. */
  #roll(window: Window): Tally | null {
    const span = this.#nameSpan[window](this.#now);
    const known = this.#tallies.get(window);
    if (known === undefined || known.span === span) return known ?? null;
    if (known.hasLater || known.span > span) {
      this.#tallies.delete(window);
      return null;
    }
    const tally: Tally = { span, sums: new Map(), hasLater: false };
    this.#tallies.set(window, tally);
    return tally;
  }

  #load(window: Window): Tally {
    const now = this.#now;
    const local = this.zone.toLocal(Date.parse(now));
    const since = window === "total" ? FIRST_MS : this.zone.fromLocal(startOfSpan(window, local));
    const rows = this.#askCompared((table) => [...this.#listSpent(table, since)]);
    const span = this.#nameSpan[window](now);
    const tally: Tally = { span, sums: new Map(), hasLater: false };
    for (const { names, key, last, amounts } of rows) {
      count(tally, names, amounts);
      tally.hasLater ||= this.#nameSpan[window](last) > span;
      const isOwn = last >= (this.#births.get(key) ?? "");
      if (isOwn && last > (this.#lastUsed.get(key) ?? "")) this.#lastUsed.set(key, last);
    }
    for (const line of [...this.marks.values(), ...this.#waiting]) this.#addLine(window, tally, line);
    this.#tallies.set(window, tally);
    return tally;
  }

  /** All lines since a moment, without the spending of an earlier key of the same name. */
  *#listSpent(table: Table, since: number) {
    const found = table.list(`${SPENT} WHERE at >= $since GROUP BY key, group_name, channel`, {
      $since: since,
    });
    const old = new Set<string>();
    for (const row of found) {
      const { key, group, channel, first, last, amounts } = readSpent(row, table);
      if (first < (this.#births.get(key) ?? "")) old.add(key);
      yield { names: [`key ${key}`, ...listNames(group, channel)], key, last, amounts };
    }
    for (const key of old) {
      const values = { $since: since, $key: key, $until: Date.parse(this.#births.get(key) ?? "") };
      const where = "WHERE key = $key AND at >= $since AND at < $until GROUP BY key";
      for (const row of table.list(`${SPENT} ${where}`, values)) {
        const { last, amounts } = readSpent(row, table);
        yield { names: [`key ${key}`], key, last, amounts: negate(amounts) };
      }
    }
  }

  #addLine(window: Window, tally: Tally, line: AnyLine): void {
    const { key, group } = line;
    const names = listNames(group, "channel" in line ? line.channel : "");
    for (const { time, amounts } of listShares(line)) {
      const isOwn = time >= (this.#births.get(key) ?? "");
      if (isOwn && time > (this.#lastUsed.get(key) ?? "")) this.#lastUsed.set(key, time);
      const span = this.#nameSpan[window](time);
      if (span < tally.span) continue;
      count(tally, isOwn ? [`key ${key}`, ...names] : names, amounts);
      tally.hasLater ||= span > tally.span;
    }
  }

  #findSession(id: string): SessionSum {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const session = this.#askCompared((table) => readSession(table, id));
    for (const line of [...this.marks.values(), ...this.#waiting])
      if (line.client?.session === id) addToSession(session, line);
    this.#sessions.set(id, session);
    return session;
  }
}

function nameSpans(zone: Zone): Readonly<Record<Window, (time: string) => string>> {
  return { day: createNamer("day", zone), month: createNamer("month", zone), total: () => "" };
}

function count({ sums }: Tally, names: readonly string[], amounts: Amounts): void {
  for (const name of names)
    addAmounts(
      sums.getOrInsertComputed(name, () => ({ ...NOTHING })),
      amounts,
    );
}

function listNames(group: string, channel: string): string[] {
  return [`group ${group}`, `channel ${channel}`, ALL];
}

const SPENT = `SELECT key, group_name, channel, MIN(at), MAX(at), SUM(charge), SUM(counted),
  SUM(official) FILTER (WHERE paid_by = 'plan'), group_concat(exact) FROM requests INDEXED BY by_key`;

/** `first`, `last`: ISO times. */
function readSpent(row: readonly CellValue[], table: Table) {
  const [key, group, channel, first, last, charge = null, counted = null, plan = null, text = null] = row;
  const exact = readList(text, table);
  const charged = roundUsd(addAmount(charge, exact, "charge"));
  const estimated = subtractUsd(roundUsd(addAmount(counted, exact, "counted")), charged);
  const amounts = { charged, estimated, byPlan: roundUsd(addAmount(plan, exact, "plan")) };
  const names = { key: String(key ?? ""), group: String(group ?? ""), channel: String(channel ?? "") };
  return { ...names, first: toIso(first), last: toIso(last), amounts };
}
