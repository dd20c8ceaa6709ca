// Bytes as the runtime likes them. To make a view of a buffer that came from a socket,
// or to ask it for its ArrayBuffer, costs more than most of what is then done with it.

/** The same bytes, with a Buffer's words. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A copy of so few bytes takes less time than a view of them. */
const SHORT_BYTES = 1000;

/** The bytes from `from` to `to`, which may be a copy. */
export function cutBytes(bytes: Buffer, from: number, to: number): Buffer {
  if (to - from > SHORT_BYTES) return bytes.subarray(from, to);
  const copy = Buffer.allocUnsafe(to - from);
  bytes.copy(copy, 0, from, to);
  return copy;
}
