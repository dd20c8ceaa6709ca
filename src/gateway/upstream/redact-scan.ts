// Finds secrets in bytes, in every form that redact.ts names. `redact-openings.ts` finds the few places where a match may
// begin, and a walk reads on from there. From each byte, the walk follows both the byte as it is and the character that an
// escape there stands for, and remembers how much of a secret has been read so far. It keeps at most one number for each
// character of a secret, so its work is linear in the bytes.

import { ESCAPE_STARTS, readEscapes } from "../../lib/text/escapes.ts";
import { listForms, Openings, planOpenings, type OpeningPlan, type Secret } from "./redact-openings.ts";

export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface Scan {
  /** In order, without overlaps. */
  readonly found: readonly ByteRange[];
  /** The bytes from here on may be the beginning of a secret whose end has not come yet. */
  readonly holdFrom: number;
}

/** All forms joined to one text. Each index stands for one character of one form. */
export interface Patterns {
  /** By byte: the indexes of the characters that it can be. */
  readonly places: readonly (readonly number[])[];
  /** By byte: those indexes with which a match can begin. */
  readonly first: readonly (readonly number[])[];
  /** By index: the start of its form, and the start of the secret part of that form. */
  readonly starts: readonly number[];
  readonly secretStarts: readonly number[];
  /** By index: how many secret characters must match up to here. */
  readonly enough: readonly number[];
  /** A shorter text holds no secret, and no piece of one that counts. */
  readonly shortest: number;
  /** Only whole secrets count. */
  readonly whole: boolean;
  readonly openings: OpeningPlan;
  /** For the next search: no rows, and rows that are empty. */
  readonly rows: Map<number, Row>;
  readonly spare: Row[];
}

/** `pieceLength`: how many secret characters count as a find; null: only a whole secret does. */
export function compileSecrets(secrets: readonly Secret[], pieceLength: number | null): Patterns {
  const forms = secrets.flatMap((secret) => listForms(secret, pieceLength));
  const places: number[][] = Array.from({ length: 256 }, () => []);
  const starts: number[] = [];
  const secretStarts: number[] = [];
  const enough: number[] = [];
  for (const form of forms) {
    const start = starts.length;
    for (const codes of form.codes) {
      for (const code of codes) places[code]?.push(starts.length);
      starts.push(start);
      secretStarts.push(start + form.publicLength);
      enough.push(form.enough);
    }
  }
  const whole = pieceLength === null;
  const first = whole ? places.map((all) => all.filter((index) => starts[index] === index)) : places;
  const openings = planOpenings(secrets, forms, whole);
  const shortest = Math.min(...enough);
  return {
    places,
    first,
    starts,
    secretStarts,
    enough,
    shortest,
    whole,
    openings,
    rows: new Map(),
    spare: [],
  };
}

/** How much of each form has matched up to one offset. */
interface Row {
  /** The indexes that match here. */
  readonly live: number[];
  /** By index: how many characters of the form have matched, and where the match begins in the bytes. */
  readonly lengths: Uint16Array;
  readonly froms: Int32Array;
}

export function scan(bytes: Buffer, patterns: Patterns): Scan {
  const openings = new Openings(bytes, patterns.openings);
  const first = openings.next(0);
  if (first === bytes.length) return { found: [], holdFrom: first };
  return new Walk(bytes, patterns, openings).run(first);
}

class Walk {
  readonly #bytes: Buffer;
  readonly #patterns: Patterns;
  readonly #openings: Openings;
  readonly #found: ByteRange[] = [];
  /** Rows of offsets that the walk has not reached yet. */
  readonly #rows: Map<number, Row>;
  #holdFrom: number;

  constructor(bytes: Buffer, patterns: Patterns, openings: Openings) {
    this.#bytes = bytes;
    this.#patterns = patterns;
    this.#openings = openings;
    this.#rows = patterns.rows;
    this.#holdFrom = bytes.length;
  }

  run(first: number): Scan {
    const { length } = this.#bytes;
    for (let offset = first; offset <= length; offset += 1) {
      if (this.#rows.size === 0) offset = this.#openings.next(offset);
      const row = this.#arrive(offset);
      if (offset < length) this.#leave(offset, row);
      else this.#hold(offset, row);
      if (row !== null) this.#recycle(row);
    }
    this.#forget();
    return { found: this.#found, holdFrom: this.#holdFrom };
  }

  /** Takes the row of an offset and records the secrets that end there. */
  #arrive(offset: number): Row | null {
    const row = this.#rows.get(offset) ?? null;
    if (row === null) return null;
    this.#rows.delete(offset);
    const { starts, secretStarts, enough, whole } = this.#patterns;
    for (const index of row.live) {
      const first = index - (row.lengths[index] ?? 0) + 1;
      const secret = index - Math.max(first, secretStarts[index] ?? 0) + 1;
      const isWhole = !whole || starts[index + 1] !== starts[index];
      if (!isWhole || secret < (enough[index] ?? 0)) continue;
      this.#note(row.froms[index] ?? 0, offset);
      if (whole) {
        this.#forget();
        this.#recycle(row);
        return null;
      }
    }
    return row;
  }

  #note(start: number, end: number): void {
    let from = start;
    for (let last = this.#found.at(-1); last !== undefined && last.end >= from; last = this.#found.at(-1)) {
      from = Math.min(from, last.start);
      this.#found.pop();
    }
    this.#found.push({ start: from, end });
  }

  #forget(): void {
    for (const row of this.#rows.values()) this.#recycle(row);
    this.#rows.clear();
  }

  #leave(offset: number, row: Row | null): void {
    const code = this.#bytes[offset] ?? 0;
    this.#read(row, code, offset, offset + 1);
    if (!ESCAPE_STARTS.has(code)) return;
    const { quoted } = this.#patterns.openings;
    const cut = readEscapes(this.#bytes, offset, quoted, (read, end) => this.#read(row, read, offset, end));
    if (cut) this.#hold(offset, row);
  }

  /** Extends the matches: the bytes from `offset` to `end` stand for one character. */
  #read(row: Row | null, code: number, offset: number, end: number): void {
    if (row === null) {
      for (const index of this.#patterns.first[code] ?? []) this.#put(end, index, 1, offset);
      return;
    }
    const { places, starts, whole } = this.#patterns;
    for (const index of places[code] ?? []) {
      const isFirst = index === starts[index];
      const before = isFirst ? 0 : (row.lengths[index - 1] ?? 0);
      if (before > 0) this.#put(end, index, before + 1, row.froms[index - 1] ?? offset);
      else if (isFirst || !whole) this.#put(end, index, 1, offset);
    }
  }

  #put(end: number, index: number, length: number, from: number): void {
    const row = this.#rows.get(end) ?? this.#open(end);
    const known = row.lengths[index] ?? 0;
    if (known === 0) row.live.push(index);
    if (known > length || (known === length && (row.froms[index] ?? 0) <= from)) return;
    row.lengths[index] = length;
    row.froms[index] = from;
  }

  #open(end: number): Row {
    const size = this.#patterns.starts.length;
    const row = this.#patterns.spare.pop() ?? {
      live: [],
      lengths: new Uint16Array(size),
      froms: new Int32Array(size),
    };
    this.#rows.set(end, row);
    return row;
  }

  #recycle(row: Row): void {
    for (const index of row.live) row.lengths[index] = 0;
    row.live.length = 0;
    this.#patterns.spare.push(row);
  }

  #hold(offset: number, row: Row | null): void {
    let from = offset;
    for (const index of row?.live ?? []) from = Math.min(from, row?.froms[index] ?? from);
    this.#holdFrom = Math.min(this.#holdFrom, from);
  }
}
