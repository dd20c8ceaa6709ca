// Joins bytes: of many packets into one buffer, or of head, framing and payload into one socket write.

import { asBuffer } from "../memory/bytes.ts";

/** Collects pieces into one buffer. A single piece is kept without a copy. */
export class ByteCollector {
  #bytes: Buffer = EMPTY;
  #size = 0;
  #owned = false;
  readonly #expected: number;

  /** `expected`: the size that the sender has announced, or 0. */
  constructor(expected = 0) {
    this.#expected = expected;
  }

  get size(): number {
    return this.#size;
  }

  add(piece: Buffer): void {
    if (this.#size === 0) {
      this.#bytes = piece;
      this.#size = piece.length;
      this.#owned = false;
      return;
    }
    const size = this.#size + piece.length;
    if (!this.#owned || size > this.#bytes.length) this.#grow(size);
    this.#bytes.set(piece, this.#size);
    this.#size = size;
  }

  view(): Buffer {
    return this.#size === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#size);
  }

  clear(): void {
    this.#bytes = EMPTY;
    this.#size = 0;
  }

  /** Announcing a size costs a sender nothing. So memory for it is allocated only after a part has arrived. */
  #grow(needed: number): void {
    const believed = needed > TRUST_AFTER_BYTES ? this.#expected : 0;
    const grown = Buffer.allocUnsafe(
      Math.max(needed, believed, Math.min(needed * 2, needed + MAX_HEADROOM_BYTES)),
    );
    grown.set(this.view());
    this.#bytes = grown;
    this.#owned = true;
  }
}

const EMPTY = Buffer.alloc(0);
const TRUST_AFTER_BYTES = 256 * 1024;
const MAX_HEADROOM_BYTES = 16 * 1024 * 1024;

/** A socket. Returns the number of bytes taken, 0 when full, -1 when closed. The runtime keeps no reference to the bytes. */
export interface ByteSink {
  write(bytes: Uint8Array, offset: number, length: number): number;
}

/** What a socket has not taken yet. Adding a piece costs only that piece, however many bytes wait already. */
export class Outbox {
  #unsent: Buffer | null = null;
  /** Follows the unsent bytes. */
  readonly #later = new ByteCollector();

  get size(): number {
    return (this.#unsent?.length ?? 0) + this.#later.size;
  }

  /** Sends all as one packet. Head and tail are latin-1, and the payload must not change afterwards. Returns true if the
   *  socket has taken everything. */
  send(sink: ByteSink, head: string, payload: Uint8Array, tail: string): boolean {
    if (this.#unsent !== null) {
      this.#later.add(Buffer.concat([Buffer.from(head, "latin1"), payload, Buffer.from(tail, "latin1")]));
      return false;
    }
    const length = head.length + payload.length + tail.length;
    const packet = length === payload.length ? asBuffer(payload) : joinPacket(head, payload, tail);
    const taken = Math.max(0, sink.write(packet, 0, length));
    if (taken < length)
      this.#unsent =
        packet === scratch ? Buffer.from(packet.subarray(taken, length)) : packet.subarray(taken, length);
    return this.#unsent === null;
  }

  /** Continues when the socket is writable again. Returns true if it has taken everything. */
  flush(sink: ByteSink): boolean {
    while (this.#unsent !== null) {
      const taken = Math.max(0, sink.write(this.#unsent, 0, this.#unsent.length));
      if (taken < this.#unsent.length) {
        this.#unsent = this.#unsent.subarray(taken);
        return false;
      }
      this.#unsent = this.#later.size > 0 ? this.#later.view() : null;
      this.#later.clear();
    }
    return true;
  }

  clear(): void {
    this.#unsent = null;
    this.#later.clear();
  }
}

const MAX_SCRATCH_BYTES = 1024 * 1024;
/** It starts small and grows once: the collector counts it, and would run before the first response. */
let scratch = Buffer.allocUnsafeSlow(64 * 1024);

/** The parts one after the other: in the scratch memory, if they fit, which may be longer. */
function joinPacket(head: string, payload: Uint8Array, tail: string): Buffer {
  const length = head.length + payload.length + tail.length;
  if (length > scratch.length && length <= MAX_SCRATCH_BYTES)
    scratch = Buffer.allocUnsafeSlow(MAX_SCRATCH_BYTES);
  const packet = length <= scratch.length ? scratch : Buffer.allocUnsafe(length);
  packet.write(head, 0, "latin1");
  packet.set(payload, head.length);
  if (tail !== "") packet.write(tail, head.length + payload.length, "latin1");
  return packet;
}
