// Bytes, and whether pieces of text stand in them: compared eight bytes at a time.

export interface Bytes {
  readonly buffer: Buffer;
  readonly view: DataView;
}

export function viewBytes(buffer: Buffer): Bytes {
  return { buffer, view: new DataView(buffer.buffer, buffer.byteOffset, buffer.length) };
}

/** Printed texts, one behind the other in memory, where they are looked up a million times. */
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
   * Where the piece ends that stands at `at`; -1: it does not, or `at` is negative. Eight bytes of printed text
   * are never zero, which as a number equals the negative one; where they are no number, they equal nothing.
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
