// Numbers of many traits as the index keeps them for an hour or a day: column by column, each as narrow as its numbers
// are. A report of a month reads hundreds of these in a few milliseconds. Rows of a database take fifty times as long.

import { getList, parseJson } from "../../lib/json/json.ts";
import {
  carryParts,
  type Decimal,
  formatDecimal,
  formatUsd,
  joinAmount,
  joinUsd,
  parseDecimal,
  parseUsd,
  type Usd,
  ZERO_DECIMAL,
  ZERO_USD,
} from "../../lib/money.ts";
import { CELL, SUM } from "./schema.ts";
import { NO_TRAITS, type Traits } from "./traits.ts";

export type Column = Int8Array | Int16Array | Int32Array | Float64Array;

export interface Cells {
  readonly rows: number;
  /** Null: every number is 0. */
  readonly columns: readonly (Column | null)[];
}

type MakeColumn = (buffer: ArrayBuffer, at: number, rows: number) => Column;

/** By the size of a number, which is the code of a column. The widest columns come first, so that each begins at a multiple of
 *  its size. */
const KINDS: readonly (readonly [size: number, make: MakeColumn])[] = [
  [8, (buffer, at, rows) => new Float64Array(buffer, at, rows)],
  [4, (buffer, at, rows) => new Int32Array(buffer, at, rows)],
  [2, (buffer, at, rows) => new Int16Array(buffer, at, rows)],
  [1, (buffer, at, rows) => new Int8Array(buffer, at, rows)],
];

const ROWS_BYTES = 4;

/** The number of rows, and the codes of the columns. */
function measureHead(width: number): number {
  return Math.ceil((ROWS_BYTES + width) / 8) * 8;
}

export function encodeCells(rows: readonly (readonly number[])[], width: number): Uint8Array {
  const codes = Array.from({ length: width }, (_, column) => findCode(rows, column));
  let at = measureHead(width);
  const bytes = new Uint8Array(codes.reduce((sum, code) => sum + code * rows.length, at));
  new DataView(bytes.buffer).setUint32(0, rows.length, true);
  bytes.set(codes, ROWS_BYTES);
  for (const [size, make] of KINDS)
    for (let column = codes.indexOf(size); column >= 0; column = codes.indexOf(size, column + 1)) {
      const numbers = make(bytes.buffer, at, rows.length);
      for (let row = 0; row < rows.length; row += 1) numbers[row] = rows[row]?.[column] ?? 0;
      at += numbers.byteLength;
    }
  return bytes;
}

/** 0: every number of the column is 0. */
function findCode(rows: readonly (readonly number[])[], column: number): number {
  let code = 0;
  for (const row of rows) {
    const number = row[column] ?? 0;
    if (number === 0) continue;
    const own = number === (number << 24) >> 24 ? 1 : number === (number << 16) >> 16 ? 2 : 4;
    code = Math.max(code, number === (number | 0) ? own : 8);
    if (code === 8) break;
  }
  return code;
}

/** Throws if they are damaged. */
export function decodeCells(bytes: Uint8Array, width: number): Cells {
  const rows = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  const codes = bytes.subarray(ROWS_BYTES, ROWS_BYTES + width);
  const head = measureHead(width);
  if (codes.reduce((sum, code) => sum + code * rows, head) !== bytes.length)
    throw new RangeError("sums of a span have another size");
  // Numbers of eight bytes must begin at a multiple of eight.
  const isAligned = bytes.byteOffset === 0 && bytes.buffer instanceof ArrayBuffer;
  const buffer = isAligned ? bytes.buffer : new Uint8Array(bytes).buffer;
  const columns = Array.from<Column | null>({ length: width }).fill(null);
  let at = head;
  for (const [size, make] of KINDS)
    for (let column = codes.indexOf(size); column >= 0; column = codes.indexOf(size, column + 1)) {
      columns[column] = make(buffer, at, rows);
      at += size * rows;
    }
  return { rows, columns };
}

/** Row by row, to change them. */
export function listRows({ rows, columns }: Cells): number[][] {
  return Array.from({ length: rows }, (_, row) => columns.map((column) => column?.[row] ?? 0));
}

/** Of numbers in the order of the sums, from a place on. */
export function carrySums(numbers: { [place: number]: number }, from: number): void {
  for (const places of [SUM.official, SUM.charge, SUM.saved, SUM.missed]) carryParts(numbers, places, from);
}

/** Which traits a report wants, and what it tells apart. Those that differ in nothing else are one class. */
export interface Fold {
  readonly wants: (traits: Traits) => boolean;
  readonly keeps: readonly (keyof Traits)[];
}

export function keepTraits(traits: Traits, keeps: readonly (keyof Traits)[]): Traits {
  return { ...NO_TRAITS, ...Object.fromEntries(keeps.map((name) => [name, traits[name]])) };
}

/** The traits of one part by class, from 0. */
export class Classes {
  readonly #traitsOf: (trait: number) => Traits;
  readonly #fold: Fold | undefined;
  readonly #classes: number[] = [];
  readonly #byName = new Map<string, number>();
  readonly #traits: { readonly traits: Traits; readonly trait: number }[] = [];

  constructor(traitsOf: (trait: number) => Traits, fold?: Fold) {
    this.#traitsOf = traitsOf;
    this.#fold = fold;
  }

  get size(): number {
    return this.#traits.length;
  }

  /** `trait`: one of the class. */
  get(own: number): { readonly traits: Traits; readonly trait: number } | undefined {
    return this.#traits[own];
  }

  /** Negative: it is left out. */
  of(trait: number): number {
    return (this.#classes[trait] ??= this.#find(trait));
  }

  #find(trait: number): number {
    const traits = this.#traitsOf(trait);
    const fold = this.#fold;
    if (fold === undefined) return this.#traits.push({ traits, trait }) - 1;
    if (!fold.wants(traits)) return -1;
    // A report has many traits and few classes.
    const open = (): number => this.#traits.push({ traits: keepTraits(traits, fold.keeps), trait }) - 1;
    return this.#byName.getOrInsertComputed(nameTraits(traits, fold.keeps), open);
  }
}

/** Another name for other traits. Clients choose some of the texts, so their lengths are in it. */
function nameTraits(traits: Traits, keeps: readonly (keyof Traits)[]): string {
  let name = "";
  for (const each of keeps) {
    const value = traits[each];
    name += typeof value === "string" ? `${value.length} ${value}` : `${String(value)},`;
  }
  return name;
}

/** Each part of an amount of a cell is below 2^30, so that the sum of this many cells is below 2^53. */
const MOST_CELLS = 2 ** 22;
const FIRST_SIZE = 64;

/** What is added up of one span. */
export class ClassSums {
  readonly #classes: Classes;
  #sums = new Float64Array(FIRST_SIZE * CELL.width);
  #own = new Int32Array(0);
  #cells = 0;

  constructor(classes: Classes) {
    this.#classes = classes;
  }

  add({ rows, columns }: Cells): void {
    const traits = columns[CELL.trait];
    if (traits === null || traits === undefined) return;
    if (this.#own.length < rows) this.#own = new Int32Array(rows);
    const own = this.#own;
    for (let row = 0; row < rows; row += 1) own[row] = this.#classes.of(traits[row] ?? 0) * CELL.width;
    this.#makeRoom();
    this.#noteFirst(own, rows, columns[CELL.first] ?? null);
    for (let index = CELL.sums; index < CELL.width; index += 1) {
      const column = columns[index] ?? null;
      if (column !== null) addColumn(this.#sums, { own, index, column });
    }
    this.#cells += rows;
    if (this.#cells > MOST_CELLS) this.#carry();
  }

  #noteFirst(own: Int32Array, rows: number, lines: ArrayLike<number> | null): void {
    const sums = this.#sums;
    for (let row = 0; row < rows; row += 1) {
      const place = (own[row] ?? 0) + CELL.first;
      if (place < CELL.first) continue;
      const [known = 0, line = 0] = [sums[place], lines?.[row]];
      if (known === 0 || line < known) sums[place] = line;
    }
  }

  #makeRoom(): void {
    const size = this.#classes.size * CELL.width;
    if (size <= this.#sums.length) return;
    const wider = new Float64Array(size * 2);
    wider.set(this.#sums);
    this.#sums = wider;
  }

  #carry(): void {
    for (let own = 0; own < this.#classes.size; own += 1) carrySums(this.#sums, own * CELL.width + CELL.sums);
    this.#cells = 0;
  }

  /** And forgets them. */
  take(): ClassSum[] {
    const found: ClassSum[] = [];
    for (let own = 0; own < this.#classes.size; own += 1) {
      const at = own * CELL.width;
      const sums = this.#sums.subarray(at + CELL.sums, at + CELL.width);
      const known = this.#classes.get(own);
      if (known === undefined || (sums[SUM.requests] ?? 0) === 0) continue;
      const { traits, trait } = known;
      // One spread that comes first is copied at once, and there are thousands of groups.
      found.push({ ...readSums(sums, traits), traits, trait, first: this.#sums[at + CELL.first] ?? 0 });
    }
    this.#sums.fill(0);
    this.#cells = 0;
    return found;
  }
}

interface Adding {
  /** Where the sums of each row's class begin. */
  readonly own: Int32Array;
  readonly index: number;
  readonly column: ArrayLike<number>;
}

function addColumn(sums: Float64Array, { own, index, column }: Adding): void {
  for (let row = 0; row < column.length; row += 1) {
    const place = (own[row] ?? 0) + index;
    if (place >= index) sums[place] = (sums[place] ?? 0) + (column[row] ?? 0);
  }
}

/** Numbers of a line, or sums of many. */
export interface Summed {
  readonly requests: number;
  readonly official: Decimal;
  readonly charge: Usd;
  /** What the cache saved, and what it missed, at each request's own prices. */
  readonly saved: Usd;
  readonly missed: Usd;
  /** In the order of the kinds of the traits. */
  readonly counts: readonly number[];
}

export interface ClassSum extends Summed {
  readonly traits: Traits;
  /** One of the class. */
  readonly trait: number;
  /** The number of its first line. */
  readonly first: number;
}

/** Of whole numbers in the order of the sums. */
export function readSums(sums: ArrayLike<number>, { kinds }: Pick<Traits, "kinds">): Summed {
  const read = (place: number): bigint => BigInt(sums[place] ?? 0);
  const { official, charge, saved, missed } = SUM;
  return {
    requests: sums[SUM.requests] ?? 0,
    official: joinAmount(read(official[0]), read(official[1]), read(official[2])),
    charge: joinUsd(read(charge[0]), read(charge[1])),
    saved: joinUsd(read(saved[0]), read(saved[1])),
    missed: joinUsd(read(missed[0]), read(missed[1])),
    counts: kinds.map((_, index) => sums[SUM.counts + index] ?? 0),
  };
}

/** Numbers that do not fit are kept as text. */
interface OddAmounts {
  readonly official: Decimal | null;
  readonly charge: Usd | null;
  readonly counts: readonly number[];
}

export function encodeOdd({ official, charge, counts }: OddAmounts): string {
  return JSON.stringify([
    official === null ? null : formatDecimal(official),
    charge === null ? null : formatUsd(charge),
    counts,
  ]);
}

/** An amount that is not known counts as 0. */
export function readOdd(text: string): { official: Decimal; charge: Usd; counts: number[] } {
  const [official, charge, counts] = getList(parseJson(text));
  return {
    official: typeof official === "string" ? parseDecimal(official) : ZERO_DECIMAL,
    charge: typeof charge === "string" ? parseUsd(charge) : ZERO_USD,
    counts: getList(counts).map(Number),
  };
}
