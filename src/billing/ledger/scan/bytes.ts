// Finds known pieces of text in bytes, comparing eight bytes at a time.

export interface Bytes {
  readonly buffer: Buffer;
  readonly view: DataView;
}

export function viewBytes(buffer: Buffer): Bytes {
  return { buffer, view: new DataView(buffer.buffer, buffer.byteOffset, buffer.length) };
}

/** Texts of printable characters in one block of memory: they are compared millions of times. */
export class Pieces {
  readonly #bytes: Bytes;
  readonly #ends: readonly number[];

  constructor(texts: readonly string[]) {
    const pieces = texts.map((text) => Buffer.from(text));
    let end = 0;
    this.#ends = pieces.map(({ length }) => (end += length));
    this.#bytes = viewBytes(Buffer.concat(pieces));
  }

  /**
   * The offset after the piece, if it is at `at`; otherwise -1, and also if `at` is negative. Eight bytes of printable
   * text compare correctly as a float: they are never zero, which would equal minus zero, and NaN equals nothing, so
   * that such bytes are read another way.
   */
  pass({ buffer, view }: Bytes, at: number, piece: number): number {
    const own = this.#bytes;
    let from = piece === 0 ? 0 : (this.#ends[piece - 1] ?? 0);
    const to = this.#ends[piece] ?? 0;
    const offset = at - from;
    if (at < 0 || offset + to > buffer.length) return -1;
    for (; from + 8 <= to; from += 8) {
      if (view.getFloat64(offset + from, true) !== own.view.getFloat64(from, true)) return -1;
    }
    for (; from < to; from += 1) if (buffer[offset + from] !== own.buffer[from]) return -1;
    return offset + to;
  }
}
