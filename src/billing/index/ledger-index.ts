// An index as reports see it: one part, or two where the file lacks the last lines and the rest of them is in memory. A
// report asks each part and adds up what they answer.

import { parseJson } from "../../lib/json/json.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { readLines } from "../ledger/reader.ts";
import { holdLedgerFiles, listLedgerFiles, nameOf } from "../ledger/rotation.ts";
import { readRow, type Row } from "../ledger/row.ts";
import { type MarkDraft, markSchema } from "../ledger/line.ts";
import { noteMark } from "../ledger/start/mark.ts";
import type { Progress } from "./progress.ts";
import { type Cells, decodeCells } from "./cells.ts";
import { CELL, type IndexDatabase, LATENCY } from "./schema.ts";
import { decodeTraits, NO_SENDER, readSender, type Sender, type Traits } from "./traits.ts";

type Value = string | number | bigint | null | boolean | Uint8Array;

interface Span {
  /** In hours. */
  readonly start: number;
  readonly cells: Cells;
}

/** Every session has one at least: a long ledger's must not fill the memory. */
const MOST_SENDERS = 10_000;

const WIDTHS = { cells: CELL.width, latencies: LATENCY.width } as const;
/** The number of spans that one query reads. */
const MANY = 64;

function readCells(bytes: unknown, width: number): Cells {
  if (bytes instanceof Uint8Array) return decodeCells(bytes, width);
  throw new TypeError("a span has no sums");
}

/** A damaged page is found only when a question reads it. */
export class DamagedIndex extends Error {}

/** Makes the same rows from the ledger. Gets a line for people. */
type MakeAgain = (why: string) => IndexDatabase;

export class IndexPart {
  #database: IndexDatabase;
  readonly #name: string | null;
  #makeAgain: MakeAgain | null;
  readonly #traits = new Map<number, Traits>();
  readonly #senders = new Map<number, Sender>();

  /** `name`: that of its file. Null: it is in memory. */
  constructor(database: IndexDatabase, name: string | null = null, makeAgain: MakeAgain | null = null) {
    this.#database = database;
    this.#name = name;
    this.#makeAgain = makeAgain;
  }

  /** Whole numbers come as bigints. */
  list(sql: string, ...values: (string | number | null)[]): Value[][] {
    return this.#attempt((database) =>
      database
        .query(sql)
        .safeIntegers(true)
        .values(...values),
    );
  }

  /** The spans with a length of `hours` that begin at `from` or later and before `to`. */
  *listSpans(
    hours: number,
    from: number,
    to: number,
    what: keyof typeof WIDTHS = "cells",
  ): Generator<Span, void> {
    const sql = `SELECT start, ${what} FROM spans WHERE hours = ? AND start >= ? AND start < ? ORDER BY start LIMIT ${MANY}`;
    for (let next: number | null = from; next !== null;) {
      const first: number = next;
      const spans: Span[] = this.#attempt((database) =>
        database
          .query(sql)
          .values(hours, first, to)
          .map(([start, bytes]) => ({ start: Number(start), cells: readCells(bytes, WIDTHS[what]) })),
      );
      yield* spans;
      const last = spans.at(-1);
      next = last === undefined || spans.length < MANY ? null : last.start + 1;
    }
  }

  #attempt<T>(ask: (database: IndexDatabase) => T): T {
    try {
      return ask(this.#database);
    } catch (error) {
      if (this.#name === null) throw error;
      const why = `The index ${this.#name} is damaged (${getErrorMessage(error)})`;
      if (this.#makeAgain === null) throw new DamagedIndex(why, { cause: error });
      const fresh = this.#makeAgain(why);
      this.#makeAgain = null;
      this.#database.close();
      this.#database = fresh;
      return this.#attempt(ask);
    }
  }

  traitsOf(id: Value | undefined): Traits {
    const number = Number(id);
    const known = this.#traits.get(number);
    if (known !== undefined) return known;
    // New ones have larger numbers. A report needs many of them.
    for (const [each, text] of this.list("SELECT id, text FROM traits WHERE id > ?", this.#traits.size))
      this.#traits.set(Number(each), decodeTraits(String(text)));
    const traits = this.#traits.get(number);
    if (traits === undefined) throw new DamagedIndex(`The index has no traits ${number}`);
    return traits;
  }

  senderOf(id: Value | undefined): Sender {
    const number = Number(id);
    const known = this.#senders.get(number);
    if (known !== undefined) return known;
    const [row] = this.list("SELECT session, agent, parent FROM senders WHERE id = ?", number);
    const [session, agent, parent] = row ?? [];
    const sender = row === undefined ? NO_SENDER : readSender(session, agent, parent);
    if (this.#senders.size >= MOST_SENDERS) this.#senders.clear();
    this.#senders.set(number, sender);
    return sender;
  }

  close(): void {
    this.#database.close();
  }
}

export interface LedgerIndex extends Disposable {
  readonly path: string;
  readonly parts: readonly IndexPart[];
  readonly progress: Progress;
}

export interface FoundText {
  readonly file: string;
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

/** The text of a line. Null: the ledger has changed since. */
export function readLineAt({ path, progress }: LedgerIndex, line: number, at: number): FoundText | null {
  const index = progress.files.findLastIndex(({ first }) => first <= line);
  const file = listLedgerFiles(path)[index];
  const first = progress.files[index]?.first ?? 1;
  if (file === undefined) return null;
  for (const { text, whole } of readLines(file, at))
    return whole ? { file: nameOf(file, path), number: line - first + 1, text } : null;
  return null;
}

const HOUR_MS = 3_600_000;

/** The lines from the first one on that is of this moment or later. ISO; null: all. Lines that cannot be read are left out. */
export function* readRowsSince(index: LedgerIndex, since: string | null): Generator<Row, void> {
  const hour = since === null ? Number.MIN_SAFE_INTEGER : Math.floor(Date.parse(since) / HOUR_MS);
  const sql = `SELECT line, at FROM requests WHERE number = (SELECT MIN(number) FROM requests WHERE hour >= ?)`;
  const [[line, at] = []] = index.parts.flatMap((part) => part.list(sql, hour));
  if (line === undefined) return;
  const from = index.progress.files.findLastIndex(({ first }) => first <= Number(line));
  using held = holdLedgerFiles(index.path);
  for (const [number, source] of held.sources.slice(Math.max(0, from)).entries())
    for (const { text, whole } of readLines(source, number === 0 ? Number(at) : 0)) {
      const row = whole ? readRow(text) : null;
      if (row !== null && (since === null || row.time >= since)) yield row;
    }
}

/** What the rows of marks have in place of the id of a corrected request. */
export const MARK = "mark";

/** Those that the owner of the ledger has not accepted, by id. */
export function listMarks(index: LedgerIndex): Map<string, MarkDraft> {
  const marks = new Map<string, MarkDraft>();
  const sql = `SELECT DISTINCT line, at FROM requests WHERE corrects = '${MARK}' ORDER BY line`;
  for (const [line, at] of index.parts.flatMap((part) => part.list(sql))) {
    const { data } = markSchema.safeParse(parseJson(readLineAt(index, Number(line), Number(at))?.text ?? ""));
    if (data !== undefined) noteMark(marks, data);
  }
  return marks;
}
