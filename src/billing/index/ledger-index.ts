// An index as reports see it: one part, or two where the file lacks the last lines and the rest of them is in memory. A
// report asks each part and adds up what they answer.

import { getErrorMessage } from "../../lib/errors.ts";
import { readLines } from "../ledger/reader.ts";
import { holdLedgerFiles, listLedgerFiles, nameOf } from "../ledger/rotation.ts";
import { readRow, type Row } from "../ledger/row.ts";
import type { Progress } from "./progress.ts";
import type { IndexDatabase } from "./schema.ts";
import { decodeTraits, NO_SENDER, type Sender, type Traits } from "./traits.ts";

type Value = string | number | bigint | null | boolean | Uint8Array;

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
    try {
      const query = this.#database.query(sql).safeIntegers(true);
      return query.values(...values);
    } catch (error) {
      if (this.#name === null) throw error;
      const why = `The index ${this.#name} is damaged (${getErrorMessage(error)})`;
      if (this.#makeAgain === null) throw new DamagedIndex(why, { cause: error });
      const fresh = this.#makeAgain(why);
      this.#makeAgain = null;
      this.#database.close();
      this.#database = fresh;
      return this.list(sql, ...values);
    }
  }

  traitsOf(id: Value | undefined): Traits {
    const number = Number(id);
    const known = this.#traits.get(number);
    if (known !== undefined) return known;
    const [[text] = []] = this.list("SELECT text FROM traits WHERE id = ?", number);
    const traits = decodeTraits(String(text));
    this.#traits.set(number, traits);
    return traits;
  }

  senderOf(id: Value | undefined): Sender {
    const number = Number(id);
    const known = this.#senders.get(number);
    if (known !== undefined) return known;
    const [row] = this.list("SELECT session, agent, parent FROM senders WHERE id = ?", number);
    const [session, agent, parent = null] = row ?? [];
    const sender =
      row === undefined
        ? NO_SENDER
        : { session: String(session), agent: String(agent), parent: parent === null ? null : String(parent) };
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
