// What a socket has not taken yet.

/** A socket. Returns the number of bytes taken, 0 when full, -1 when closed. */
interface ByteSink {
  write(bytes: Uint8Array): number;
}

export class Outbox {
  readonly #pieces: Uint8Array[] = [];
  size = 0;

  /** Returns true if the socket has taken everything. The bytes must not change afterwards. */
  send(sink: ByteSink, bytes: Uint8Array): boolean {
    this.#pieces.push(bytes);
    this.size += bytes.length;
    return this.#pieces.length === 1 ? this.flush(sink) : false;
  }

  /** Continues when the socket is writable again. Returns true if it has taken everything. */
  flush(sink: ByteSink): boolean {
    for (let piece = this.#pieces[0]; piece !== undefined; piece = this.#pieces[0]) {
      const taken = Math.max(0, sink.write(piece));
      this.size -= taken;
      if (taken < piece.length) {
        this.#pieces[0] = piece.subarray(taken);
        return false;
      }
      this.#pieces.shift();
    }
    return true;
  }
}
