// Charges of keys, groups and channels today, this month and in total, in memory. The first
// question reads a window from the table; then each line adds to it. Days follow the config's zone.

import { roundUsd, subtractUsd, type Usd } from "../../lib/money.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { findNextSpan, startOfSpan, UTC, type Zone } from "../../lib/text/zone.ts";
import { addAmount, readList } from "../reports/sums.ts";
import { Table, type CellValue } from "../store/open.ts";
import type { AnyLine, MarkDraft } from "./line.ts";
import {
  addAmounts,
  addToSession,
  type Amounts,
  listShares,
  type MutableAmounts,
  negate,
  NOTHING,
  readSession,
  type SessionSum,
} from "./shares.ts";
import { listMarks } from "./mark.ts";

export type Window = "day" | "month" | "total";

export interface Holder {
  readonly kind: "key" | "group" | "session" | "run";
  readonly name: string;
}

/** When each key was created, in ms. An earlier key of the same name spent separately. */
export type Births = ReadonlyMap<string, number>;

export interface SumsOptions {
  readonly path: string;
  readonly now: () => number;
  readonly report: (text: string, level: "note") => void;
  /** Only a command says whether it may write next to the ledger. It compares no sums. */
  readonly isCopy?: boolean;
  readonly zone?: Zone | undefined;
  /** Default: no key is younger than its lines. */
  readonly births?: Births | undefined;
}

/** More sessions replace the least recently used, which are read again when they continue. */
const MAX_SESSIONS = 10_000;

const ALL = "all";
const FIRST_MS = Number.MIN_SAFE_INTEGER;

/** What was spent since a day or month began. In ms. */
interface Tally {
  readonly since: number;
  readonly until: number;
  /** By names such as `key laptop`. */
  readonly sums: Map<string, MutableAmounts>;
  /** The last line. It is after `until` if the clock was set back. */
  latest: number;
}

export class Sums {
  readonly #options: SumsOptions;
  zone: Zone;
  #births: Births;
  readonly marks = new Map<string, MarkDraft>();
  /** The windows that somebody asked for. */
  readonly #tallies = new Map<Window, Tally>();
  readonly #lastUsed = new Map<string, number>();
  readonly #sessions = new BoundedMap<string, SessionSum>(MAX_SESSIONS);
  /** Lines that are not yet in the files. */
  #waiting: AnyLine[] = [];
  /** A table in memory is kept: reading it takes long. */
  #table: Table | null = null;
  /** Sums may have been edited: the first question of limits compares them. */
  #isCompared: boolean;

  constructor(options: SumsOptions) {
    this.#options = options;
    this.#isCompared = options.isCopy !== undefined;
    this.zone = options.zone ?? UTC;
    this.#births = options.births ?? new Map();
    for (const mark of this.ask(listMarks)) this.marks.set(mark.id, mark);
  }

  /** Sums are read again after a change of the zone, or for a new key with an old name. */
  follow(zone: Zone, births: Births): void {
    const isOther = births.entries().some(([key, time]) => {
      const isKnown = this.#tallies.values().some(({ sums }) => sums.has(`key ${key}`));
      return isKnown && this.#births.get(key) !== time;
    });
    if (zone.name !== this.zone.name || isOther) {
      this.#tallies.clear();
      this.#lastUsed.clear();
    }
    this.zone = zone;
    this.#births = births;
  }

  /** Adds a line. It counts at the request's time. */
  add(line: AnyLine): void {
    if (!("mark" in line)) this.#waiting.push(line);
    else if (line.accepts === undefined) this.marks.set(line.id, line);
    else this.marks.delete(line.accepts);
    for (const window of this.#tallies.keys()) {
      const tally = this.#roll(window);
      if (tally !== null) this.#addLine(tally, line);
    }
    const session = this.#sessions.get(line.client?.session ?? "");
    if (session !== undefined) addToSession(session, line);
  }

  clearWaiting(): void {
    this.#waiting = [];
  }

  /** For a session, only the total is known. */
  spentOf({ kind, name }: Holder, window: Window): Amounts {
    return kind === "session" ? this.#findSession(name) : this.#find(window, `${kind} ${name}`);
  }

  channelDay(name: string): Amounts {
    return this.#find("day", `channel ${name}`);
  }

  /** All groups together, also groups that left the config. */
  spentTogether(window: Window): Usd {
    return this.#find(window, ALL).charged;
  }

  lastUsed(key: string): string | null {
    this.#find("total", "");
    const time = this.#lastUsed.get(key);
    return time === undefined ? null : new Date(time).toISOString();
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

  /** A day's or month's sums. Without later lines, the next one begins with 0. Null: read them. */
  #roll(window: Window): Tally | null {
    const now = this.#options.now();
    const known = this.#tallies.get(window);
    if (known === undefined || (now >= known.since && now < known.until)) return known ?? null;
    this.#tallies.delete(window);
    return now < known.until || known.latest >= known.until ? null : this.#open(window);
  }

  #open(window: Window): Tally {
    const { zone } = this;
    const now = this.#options.now();
    const [since, until] =
      window === "total"
        ? [FIRST_MS, Number.POSITIVE_INFINITY]
        : [zone.fromLocal(startOfSpan(window, zone.toLocal(now))), findNextSpan(window, zone, now)];
    const tally: Tally = { since, until, sums: new Map(), latest: FIRST_MS };
    this.#tallies.set(window, tally);
    return tally;
  }

  #load(window: Window): Tally {
    const tally = this.#open(window);
    for (const { names, key, last, amounts } of this.#askCompared((table) =>
      this.#listSpent(table, tally.since),
    )) {
      count(tally, names, last, amounts);
      this.#noteUse(key, last);
    }
    for (const line of [...this.marks.values(), ...this.#waiting]) this.#addLine(tally, line);
    return tally;
  }

  /** All lines since a moment, without the spending of an earlier key of the same name. */
  #listSpent(table: Table, since: number) {
    const list = (where: string, values = {}) =>
      table
        .list(`${SPENT} WHERE at >= $since ${where}`, { $since: since, ...values })
        .map((row) => readSpent(row, table));
    const all = list("GROUP BY key, group_name, channel").map(({ group, channel, ...spent }) => {
      return { ...spent, names: [`key ${spent.key}`, ...listNames(group, channel)] };
    });
    const reused = new Set(all.filter(({ key, first }) => first < this.#bornAt(key)).map(({ key }) => key));
    const before = [...reused].flatMap((key) =>
      list("AND key = $key AND at < $until GROUP BY key", { $key: key, $until: this.#bornAt(key) }),
    );
    return [
      ...all,
      ...before.map((spent) => ({ ...spent, names: [`key ${spent.key}`], amounts: negate(spent.amounts) })),
    ];
  }

  #bornAt(key: string): number {
    return this.#births.get(key) ?? FIRST_MS;
  }

  #noteUse(key: string, at: number): void {
    if (at >= this.#bornAt(key) && at > (this.#lastUsed.get(key) ?? FIRST_MS)) this.#lastUsed.set(key, at);
  }

  #addLine(tally: Tally, line: AnyLine): void {
    const { key, group } = line;
    const names = listNames(group, "channel" in line ? line.channel : "");
    for (const { at, amounts } of listShares(line)) {
      this.#noteUse(key, at);
      if (at >= tally.since)
        count(tally, at >= this.#bornAt(key) ? [`key ${key}`, ...names] : names, at, amounts);
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

function count(tally: Tally, names: readonly string[], at: number, amounts: Amounts): void {
  tally.latest = Math.max(tally.latest, at);
  for (const name of names) addAmounts(tally.sums.getOrInsert(name, { ...NOTHING }), amounts);
}

function listNames(group: string, channel: string): string[] {
  return [`group ${group}`, `channel ${channel}`, ALL];
}

const SPENT = `SELECT key, group_name, channel, MIN(at), MAX(at), SUM(charge), SUM(counted),
  SUM(official) FILTER (WHERE paid_by = 'plan'), group_concat(exact) FROM requests INDEXED BY by_key`;

function readSpent(row: readonly CellValue[], table: Table) {
  const [key, group, channel, first, last, charge = null, counted = null, plan = null, text = null] = row;
  const exact = readList(text, table);
  const charged = roundUsd(addAmount(charge, exact, "charge"));
  const estimated = subtractUsd(roundUsd(addAmount(counted, exact, "counted")), charged);
  const amounts = { charged, estimated, byPlan: roundUsd(addAmount(plan, exact, "plan")) };
  const names = { key: String(key ?? ""), group: String(group ?? ""), channel: String(channel ?? "") };
  return { ...names, first: Number(first), last: Number(last), amounts };
}
