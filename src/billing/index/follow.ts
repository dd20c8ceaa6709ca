// Brings an index up to date with its ledger, in transactions of many lines. Each transaction notes how far it has read: a
// killed gateway leaves an index that lacks lines at most.

import { getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import {
  type Decimal,
  parseUsd,
  splitAmount,
  splitUsd,
  subtractDecimals,
  subtractUsd,
  type Usd,
  ZERO_DECIMAL,
  ZERO_USD,
} from "../../lib/money.ts";
import { type Derivable, deriveCacheSaving } from "../charge.ts";
import { hashLine } from "../ledger/line.ts";
import { readLines, type Source } from "../ledger/reader.ts";
import { findPlace } from "../ledger/rotation.ts";
import { readRow, type Row } from "../ledger/row.ts";
import { entryOf } from "../ledger/sums/entry.ts";
import { COUNTS, createIndex, type IndexDatabase, INSERT_REQUEST, WRITE_PROGRESS } from "./schema.ts";
import { type Progress, readProgress } from "./progress.ts";
import { MARK } from "./ledger-index.ts";
import { encodeOdd } from "./cells.ts";
import { SessionChanges } from "./sessions.ts";
import { SumChanges } from "./sum-changes.ts";
import { encodeTraits, type RowType } from "./traits.ts";

/** A line's numbers. */
interface Amounts {
  readonly official: Decimal | null;
  readonly charge: Usd | null;
  readonly counts: readonly number[];
  /** What the cache saved, and what it missed. */
  readonly saved?: Usd;
  readonly missed?: Usd;
}

/** What a row of the index says beside its numbers. */
interface RowNames {
  readonly id: string | null;
  readonly corrects: string | null;
  readonly time: string;
  readonly trait: number;
  readonly sender: Place;
  readonly miss: string | null;
  readonly answer?: Answer;
}

/** Of a sender, and of the first one of its session. */
interface Place {
  readonly id: number;
  readonly root: number;
}

interface Answer {
  readonly status: number | null;
  readonly firstByte: number | null;
  readonly duration: number | null;
}

const HOUR_MS = 3_600_000;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const MAX_COUNT = 2 ** 31;
/** Names that clients invent must not fill the memory. */
const MAX_NAMES = 50_000;
/** What sums gain is written after so many lines, for the same reason. */
const MAX_UNWRITTEN = 50_000;

export class IndexFollower {
  readonly #database: IndexDatabase;
  readonly #insertRow: ReturnType<IndexDatabase["query"]>;
  readonly #traits = new Map<string, number>();
  readonly #senders = new Map<string, Place>();
  #sums = new SumChanges();
  #sessions = new SessionChanges();
  #progress: Progress;
  #next: number;
  #line = 0;
  #at = 0;

  /** `progress`: how far another part of the index has read, which this one continues. */
  constructor(database: IndexDatabase, progress: Progress = readProgress(database)) {
    this.#database = database;
    this.#insertRow = database.query(INSERT_REQUEST);
    this.#progress = progress;
    this.#next = this.#findNext("requests", "number");
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Adds about `most` bytes of new lines, or an index. True: everything is there. */
  advance(sources: readonly Source[], most = Number.POSITIVE_INFINITY): boolean {
    let left = most;
    for (const [index, source] of sources.entries()) {
      if (left <= 0) return false;
      if (index < this.#progress.files.length - 1) continue;
      left -= this.#readFile(index, source, left);
    }
    if (left <= 0) return false;
    while (createIndex(this.#database)) if (most < Number.POSITIVE_INFINITY) return false;
    return true;
  }

  /** Returns how many bytes it read. */
  #readFile(index: number, source: Source, most: number): number {
    const { files, lines, unreadable } = this.#progress;
    const place = files[index] ?? { offset: 0, prev: "", first: lines + 1 };
    let [count, damaged, last] = [0, 0, ""];
    this.#at = place.offset;
    this.#database.run("BEGIN");
    try {
      for (const { text, next, whole } of readLines(source, place.offset)) {
        if (!whole || this.#at - place.offset >= most) break;
        count += 1;
        this.#line = lines + count;
        if (!this.#addLine(text)) damaged += 1;
        last = text;
        this.#at = next;
      }
      if (count > 0 || files[index] === undefined) {
        this.#writeSums();
        const prev = count > 0 ? hashLine(last) : (findPlace(source, 0)?.prev ?? "");
        const known = files.slice(0, index);
        const progress = {
          files: [...known, { offset: this.#at, prev, first: place.first }],
          lines: lines + count,
          unreadable: unreadable + damaged,
        };
        this.#database.query(WRITE_PROGRESS).run(JSON.stringify(progress));
        this.#progress = progress;
      }
      this.#database.run("COMMIT");
    } catch (error) {
      this.#forget();
      throw error;
    }
    return this.#at - place.offset;
  }

  #writeSums(): void {
    this.#sums.write(this.#database);
    this.#sessions.write(this.#database);
  }

  /** What a transaction that failed has added is not there. */
  #forget(): void {
    this.#traits.clear();
    this.#senders.clear();
    this.#sums = new SumChanges();
    this.#sessions = new SessionChanges();
    try {
      this.#database.run("ROLLBACK");
      this.#progress = readProgress(this.#database);
      this.#next = this.#findNext("requests", "number");
    } catch {
      // The error that led here says more.
    }
  }

  /** False: it is not a row. */
  #addLine(text: string): boolean {
    const row = readRow(text);
    if (row === null) {
      this.#addDamaged(text);
      return false;
    }
    const sender = this.#findSender(row);
    const trait = this.#findTrait(encodeTraits(row, typeOf(row)));
    const { id, time, was } = row;
    const names = { id: readText(id), corrects: nameCorrected(row.line), time, trait, sender };
    if (was === null) this.#addRequest(row, names);
    else {
      const official = subtract(row.official, was.official);
      const charge = subtractUsd(row.charge ?? ZERO_USD, was.charge ?? ZERO_USD);
      this.#insert({ ...names, miss: null }, { official, charge, counts: [] });
    }
    this.#sessions.add(entryOf(row), this.#line, this.#database);
    if (this.#line % MAX_UNWRITTEN === 0) this.#writeSums();
    if (row.limit !== null || row.replaced !== null) this.#addEstimates(row, sender);
    return true;
  }

  #addRequest(row: Row, names: Omit<RowNames, "miss">): void {
    const { official, charge, line, usage } = row;
    const { cache, status, first_byte_ms: firstByte, duration_ms: duration } = line;
    const miss = cache === undefined ? null : JSON.stringify(cache);
    const answer = {
      status: readCount(status),
      firstByte: readCount(firstByte),
      duration: readCount(duration),
    };
    const money = { saved: readSaving(row), missed: readUsd(getField(cache, "usd")) };
    this.#insert({ ...names, miss, answer }, { official, charge, counts: Object.values(usage), ...money });
  }

  #addEstimates(row: Row, sender: Place): void {
    const { time, limit, replaced, charge, was } = row;
    const trait = this.#findTrait(encodeTraits(row, "estimate"));
    const names = { id: null, corrects: null, trait, sender, miss: null };
    const none = { official: null, counts: [] };
    if (limit !== null)
      this.#insert({ ...names, time }, { ...none, charge: subtractUsd(limit, charge ?? ZERO_USD) });
    if (replaced === null) return;
    const back = subtractUsd(was?.charge ?? ZERO_USD, replaced.limit);
    this.#insert({ ...names, time: replaced.time }, { ...none, charge: back });
  }

  /** A person may look for its id. */
  #addDamaged(text: string): void {
    const line = parseJson(text);
    const [id, corrects] = [readText(getField(line, "id")), readText(getField(line, "corrects"))];
    if (id === null) return;
    const names = { id, corrects, time: "", trait: 0, sender: NO_PLACE, miss: null };
    this.#insert(names, { official: null, charge: null, counts: [] });
  }

  #insert(names: RowNames, amounts: Amounts): void {
    const { id, corrects, time, trait, sender, miss, answer = NO_ANSWER } = names;
    const moment = ISO_TIME.test(time) ? Date.parse(time) : Number.NaN;
    const sums = Number.isNaN(moment) ? null : encodeSums(amounts);
    const odd = sums === null ? encodeOdd(amounts) : null;
    const hour = Number.isNaN(moment) ? 0 : Math.floor(moment / HOUR_MS);
    if (sums !== null) {
      const isRequest = answer !== NO_ANSWER;
      this.#sums.add({
        line: this.#line,
        moment,
        time,
        trait,
        sender: sender.id,
        root: sender.root,
        numbers: sums,
        firstByte: isRequest ? answer.firstByte : undefined,
      });
    }
    const place = [this.#next, this.#line, this.#at, id, corrects, time, hour, trait, sender.id, miss, odd];
    const { status, firstByte, duration } = answer;
    this.#insertRow.run(...place, status, firstByte, duration, ...(sums ?? NO_SUMS));
    this.#next += 1;
  }

  #findTrait(text: string): number {
    const known = this.#traits.get(text);
    if (known !== undefined) return known;
    const [[found] = []] = this.#database.query("SELECT id FROM traits WHERE text = ?").values(text);
    const id = found === undefined ? this.#findNext("traits", "id") : Number(found);
    if (found === undefined) this.#database.query("INSERT INTO traits VALUES (?, ?)").run(id, text);
    return remember(this.#traits, text, id);
  }

  #findSender({ client }: Row): Place {
    const { session = "", agent = "", parent = null } = client ?? {};
    const name = `${session}\n${agent}\n${parent ?? ""}${parent === null ? "\n" : ""}`;
    const known = this.#senders.get(name);
    if (known !== undefined) return known;
    const [[found, root] = []] = this.#database
      .query("SELECT id, root FROM senders WHERE session = ? AND agent = ? AND parent IS ?")
      .values(session, agent, parent);
    const place =
      found === undefined
        ? this.#addSender(session, agent, parent)
        : { id: Number(found), root: Number(root) };
    return remember(this.#senders, name, place);
  }

  #addSender(session: string, agent: string, parent: string | null): Place {
    const id = this.#findNext("senders", "id");
    const [[root] = []] = this.#database
      .query("SELECT root FROM senders WHERE session = ? LIMIT 1")
      .values(session);
    const place = { id, root: root === undefined ? id : Number(root) };
    this.#database
      .query("INSERT INTO senders VALUES (?, ?, ?, ?, ?)")
      .run(id, session, agent, parent, place.root);
    return place;
  }

  #findNext(table: "requests" | "traits" | "senders", column: string): number {
    const [[last] = []] = this.#database.query(`SELECT MAX(${column}) FROM ${table}`).values();
    return Number(last ?? 0) + 1;
  }
}

function remember<T>(names: Map<string, T>, name: string, place: T): T {
  if (names.size >= MAX_NAMES) names.clear();
  names.set(name, place);
  return place;
}

/** `MARK`: the line is a mark. */
function nameCorrected({ corrects, mark }: Row["line"]): string | null {
  return mark === undefined ? readText(corrects) : MARK;
}

function readText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function typeOf({ was, official, line }: Row): RowType {
  if (line["mark"] !== undefined) return "mark";
  if (was === null) return "request";
  return was.official === null && official !== null ? "priced" : "correction";
}

function subtract(now: Decimal | null, before: Decimal | null): Decimal {
  return subtractDecimals(now ?? ZERO_DECIMAL, before ?? ZERO_DECIMAL);
}

const NO_PLACE: Place = { id: 0, root: 0 };

const NO_ANSWER: Answer = { status: null, firstByte: null, duration: null };

function readCount(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < MAX_COUNT
    ? value
    : null;
}

function readUsd(value: unknown): Usd {
  try {
    return typeof value === "string" ? parseUsd(value) : ZERO_USD;
  } catch {
    return ZERO_USD;
  }
}

/** Only `verify` checks that a line is right: prices that cannot be read save nothing. */
function readSaving({ official, charge, usage, line }: Row): Usd {
  if (official === null || charge === null || charge === ZERO_USD) return ZERO_USD;
  try {
    const { multiplier, prices, parts } = line;
    if (typeof multiplier !== "string" || !isObject(prices)) return ZERO_USD;
    const own = { usage, prices: readPrices(prices), multiplier, official };
    return deriveCacheSaving(parts === undefined ? own : { ...own, parts: readParts(parts) });
  } catch {
    return ZERO_USD;
  }
}

function readParts(parts: unknown): NonNullable<Derivable["parts"]> {
  return getList(parts).map((part) => {
    const [usage, prices] = [getField(part, "usage"), getField(part, "prices")];
    return { usage: readNumbers(usage), prices: isObject(prices) ? readPrices(prices) : null };
  });
}

function readPrices(prices: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const kind in prices) texts[kind] = String(prices[kind]);
  return texts;
}

function readNumbers(usage: unknown): Record<string, number> {
  return Object.fromEntries(
    Object.entries(isObject(usage) ? usage : {}).map(([kind, count]) => [kind, Number(count)]),
  );
}

const NO_SUMS = Array.from({ length: 10 + COUNTS }, () => 0);

/** Null: a number does not fit. */
function encodeSums(amounts: Amounts): number[] | null {
  const { official, counts } = amounts;
  const whole = splitAmount(official ?? ZERO_DECIMAL);
  const [paid, less, more] = splitCharges(amounts);
  const areFew = counts.length <= COUNTS && counts.every(isSmall);
  if (!whole || !paid || !less || !more || !areFew) return null;
  const sums = [1, whole.milli, whole.pico, whole.rest, paid.milli, paid.pico];
  sums.push(less.milli, less.pico, more.milli, more.pico);
  for (let index = 0; index < COUNTS; index += 1) sums.push(counts[index] ?? 0);
  return sums;
}

function splitCharges({ charge, saved = ZERO_USD, missed = ZERO_USD }: Amounts) {
  return [charge ?? ZERO_USD, saved, missed].map(splitUsd);
}

function isSmall(count: number): boolean {
  return Number.isInteger(count) && Math.abs(count) < MAX_COUNT;
}
