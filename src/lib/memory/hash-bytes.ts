// A hash of a part of some bytes, as a number. It is for comparing, and no protection against an adversary.
// Of a short part it is computed here: a view of the part and a native call would take longer than the work on its bytes.

/** The hash of a longer part is native. */
const MAX_SHORT_BYTES = 160;
/** Two words, one for each half of the hash: they are independent, so that a processor works on both at once. */
const STEP_BYTES = 8;

const FACTOR_LOW = 0x9e3779b1;
const FACTOR_HIGH = 0x85ebca6b;
const HIGH_BITS = 0x1fffff;
const WORD_VALUES = 0x1_0000_0000;

/** The hash of the bytes [start, end). It depends on nothing else. */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > MAX_SHORT_BYTES) return Number(Bun.hash.wyhash(bytes.subarray(start, end)));
  let low = 0;
  let high = 0;
  let at = start;
  for (; at + STEP_BYTES <= end; at += STEP_BYTES) {
    low = mixLow(low, readWord(bytes, at));
    high = mixHigh(high, readWord(bytes, at + 4));
  }
  for (; at < end; at += 1) low = mixLow(low, bytes[at] ?? 0);
  return joinHalves(low, high, end - start);
}

// Each step can be undone, so that two parts which differ in one word never have the same hash.

function mixLow(low: number, word: number): number {
  const mixed = Math.imul(low ^ word, FACTOR_LOW);
  return mixed ^ (mixed >>> 15);
}

function mixHigh(high: number, word: number): number {
  const mixed = Math.imul(high ^ word, FACTOR_HIGH);
  return mixed ^ (mixed >>> 13);
}

function joinHalves(low: number, high: number, length: number): number {
  const left = mixHigh(high, low ^ length);
  const right = mixLow(low, high ^ (high >>> 16));
  return (left & HIGH_BITS) * WORD_VALUES + (right >>> 0);
}

function readWord(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}
