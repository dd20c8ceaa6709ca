// Helpers that avoid slow operations of the runtime: making a view of a buffer that came from a socket, or asking it for
// its ArrayBuffer, takes longer than most of the work on the bytes.

export const NOTHING: Buffer = Buffer.alloc(0);

/** The same bytes as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

export function joinChunks<Chunk extends Uint8Array>(chunks: readonly Chunk[]): Chunk | Buffer {
  const [first = NOTHING] = chunks;
  return chunks.length <= 1 ? first : Buffer.concat(chunks);
}

/** Where it comes next; the end of the bytes, if it does not. */
export function findFrom(bytes: Buffer, wanted: Buffer | string, from: number): number {
  const at = bytes.indexOf(wanted, from);
  return at < 0 ? bytes.length : at;
}

/** Up to this size, a copy takes less time than a view. */
const MAX_COPIED_BYTES = 1000;

/** The bytes from `from` to `to`: a view or a copy. */
export function cutBytes(bytes: Buffer, from: number, to: number): Buffer {
  if (to - from > MAX_COPIED_BYTES) return bytes.subarray(from, to);
  const copy = Buffer.allocUnsafe(to - from);
  bytes.copy(copy, 0, from, to);
  return copy;
}
