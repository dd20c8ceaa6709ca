// A connection after an upgrade: bytes of another protocol, in both directions.

export interface Wire {
  /** False: the other side reads slowly. The listener's `drain` is called when everything has left. */
  write(bytes: Uint8Array): boolean;
  readonly unsentBytes: number;
  pause(): void;
  resume(): void;
  /** Sends what is unsent, then closes our side, and the connection soon after. */
  end(): void;
  /** Closes the connection at once. */
  reset(): void;
}

export interface WireListener {
  /** The bytes belong to the listener, which may change them. */
  receive(chunk: Buffer): void;
  drain(): void;
  /** Called once, also after `end` and `reset`. */
  closed(): void;
}
