// What each key and group has been charged per day, per month and in total. The
// sums are computed from the ledger's lines and kept in memory, because every
// request with a limit needs them. Days and months are those of the config's time
// zone, by the request's `time`. At a start they come from the index, if there is one that fits.

import { getErrorMessage } from "../../../lib/errors.ts";
import { createNamer, UTC, type Zone } from "../../../lib/text/zone.ts";
import type { Usd } from "../../../lib/money.ts";
import { addUsd, subtractUsd, ZERO_USD } from "../../../lib/money.ts";
import { type Group, listGroups, listLastTimes } from "../../index/groups.ts";
import type { LedgerIndex } from "../../index/ledger-index.ts";
import { openIndexFile } from "../../index/open.ts";
import { listSessionSums } from "../../index/sessions.ts";
import type { ClientIdentity } from "../line.ts";
import { readLines, type Source } from "../reader.ts";
import { readRow, type Row } from "../row.ts";
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

/** A request's ISO time → the name of its day and of its month. */
interface SpanNames {
  readonly day: (time: string) => string;
  readonly month: (time: string) => string;
}

interface Sum {
  lastUsed: string | null;
  readonly charged: Tally;
  /** What limits count in addition: estimates of requests whose cost is not known. */
  readonly estimated: Tally;
}

/** By name. */
export interface Tallies {
  readonly key: Map<string, Sum>;
  readonly group: Map<string, Sum>;
}

/** Whose request it is, and when it came. */
interface RequestOwner {
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly model: string;
  readonly client?: ClientIdentity | null | undefined;
}

export class Sums {
  readonly zone: Zone;
  readonly #sums: Tallies = { key: new Map(), group: new Map() };
  readonly #sessions = new SessionSums();
  /** What the index had, until the ledger was added up. */
  #indexed: Tallies | null = null;
  readonly #names: SpanNames;

  constructor(zone: Zone = UTC) {
    this.zone = zone;
    this.#names = { day: createNamer("day", zone), month: createNamer("month", zone) };
  }

  /** Adds a line's charge, or the difference that a correction makes, at the request's time. */
  add(request: RequestOwner, amount: Usd): void {
    this.#noteUse(request.key, request.time);
    this.#addAt(this.#sumOf("key", request.key).charged, request.time, amount);
    this.#addAt(this.#sumOf("group", request.group).charged, request.time, amount);
    const session = request.client?.session;
    if (session !== undefined) this.#sessions.add(session, amount);
  }

  /** Counts a request and its tokens. To be called before its amounts are added. */
  addRequest(request: RequestOwner, usage: Readonly<Record<string, number>>): void {
    const session = request.client?.session;
    if (session !== undefined) this.#sessions.addRequest(session, request, usage);
  }

  /** Adds what limits count beyond a line's charge. */
  addEstimate({ key, group, time, client }: RequestOwner, amount: Usd): void {
    this.#addAt(this.#sumOf("key", key).estimated, time, amount);
    this.#addAt(this.#sumOf("group", group).estimated, time, amount);
    if (client?.session !== undefined) this.#sessions.addEstimate(client.session, amount);
  }

  /** Removes the estimate of a request that came at `time`: its real cost is known now. */
  dropEstimate(request: Omit<RequestOwner, "time">, time: string, amount: Usd): void {
    this.addEstimate({ ...request, time }, subtractUsd(ZERO_USD, amount));
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

  lastUsed(key: string): string | null {
    return this.#sums.key.get(key)?.lastUsed ?? null;
  }

  /** Takes the sums of an index. */
  addIndex(index: LedgerIndex): void {
    const all = { since: null, until: null, zone: this.zone, span: "day", bySender: false } as const;
    for (const group of listGroups(index, all)) this.#addGroup(group);
    for (const [key, time] of listLastTimes(index)) this.#noteUse(key, time);
    this.#sessions.load(listSessionSums(index, MAX_SESSIONS));
    this.#indexed = structuredClone(this.#sums);
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
        const own = this.#sumOf(each, name);
        raiseTally(own.charged, indexed[each].get(name)?.charged, sum.charged);
        raiseTally(own.estimated, indexed[each].get(name)?.estimated, sum.estimated);
      }
    }
  }

  #addGroup({ traits, span, charge }: Group): void {
    const kind = traits.type === "estimate" ? "estimated" : "charged";
    for (const each of ["key", "group"] as const)
      addAt(this.#sumOf(each, traits[each])[kind], { day: span, month: span.slice(0, 7) }, charge);
  }

  /** Reads every line. */
  addFiles(files: readonly Source[]): void {
    for (const file of files) {
      for (const { text, whole } of readLines(file)) if (whole) this.#addLine(text);
    }
  }

  /** Lines that are not in the files yet. */
  addLines(lines: readonly string[]): void {
    for (const line of lines) this.#addLine(line);
  }

  #addLine(text: string): void {
    const row = readRow(text);
    if (row !== null) this.addRow(row);
  }

  addRow(row: Row): void {
    const { time, key, group, model, client, usage } = row;
    const request: RequestOwner = { time, key, group, model, client };
    const charge = row.charge ?? ZERO_USD;
    const before = row.was?.charge ?? ZERO_USD;
    if (row.was === null) this.addRequest(request, Object.fromEntries(usage));
    this.add(request, subtractUsd(charge, before));
    if (row.limit !== null) this.addEstimate(request, subtractUsd(row.limit, charge));
    if (row.replaced !== null)
      this.dropEstimate(request, row.replaced.time, subtractUsd(row.replaced.limit, before));
  }

  #readTally(tally: Tally, window: Window, now: number): Usd {
    if (window === "total") return tally.total;
    const today = this.#names[window](new Date(now).toISOString());
    return (window === "day" ? tally.days : tally.months).get(today) ?? ZERO_USD;
  }

  #addAt(sum: Tally, time: string, amount: Usd): void {
    addAt(sum, { day: this.#names.day(time), month: this.#names.month(time) }, amount);
  }

  #noteUse(name: string, time: string): void {
    const key = this.#sumOf("key", name);
    if (key.lastUsed === null || time > key.lastUsed) key.lastUsed = time;
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
  readonly report: (text: string) => void;
}

/** From the index if it can be used, and else from all lines. */
export function readSums(path: string, files: readonly Source[], { zone, report }: StartOptions): StartSums {
  try {
    using index = openIndexFile(path, report);
    const indexed = new Sums(zone);
    if (index !== null) {
      indexed.addIndex(index);
      return { sums: indexed, indexedLines: index.progress.lines };
    }
  } catch (error) {
    // A damaged page is found only when it is read.
    report(`${getErrorMessage(error)}. The ledger itself is read.`);
  }
  const sums = new Sums(zone);
  sums.addFiles(files);
  return { sums, indexedLines: null };
}

function addAt(
  tally: Tally,
  { day, month }: { readonly day: string; readonly month: string },
  amount: Usd,
): void {
  tally.total = addUsd(tally.total, amount);
  tally.months.set(month, addUsd(tally.months.get(month) ?? ZERO_USD, amount));
  const known = tally.days.get(day);
  tally.days.set(day, addUsd(known ?? ZERO_USD, amount));
  if (known === undefined && tally.days.size > MAX_DAYS)
    tally.days.delete([...tally.days.keys()].sort()[0] ?? day);
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
