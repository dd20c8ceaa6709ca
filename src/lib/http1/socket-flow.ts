// Whether a socket is read. It is paused for two reasons: its reader is behind, or it has delivered so much that everything
// else has a turn of the event loop first.

/** The runtime reads a socket on and on while each read fills its buffer: many megabytes in one turn. */
const FULL_READ_BYTES = 256 * 1024;

interface Pausable {
  pause(): void;
  resume(): void;
}

export class SocketFlow {
  readonly #socket: Pausable;
  #isHeld = false;
  #isResting = false;

  constructor(socket: Pausable) {
    this.#socket = socket;
  }

  /** The reader is behind. */
  hold(): void {
    if (!this.#isHeld && !this.#isResting) this.#socket.pause();
    this.#isHeld = true;
  }

  /** The reader has caught up. */
  release(): void {
    if (this.#isHeld && !this.#isResting) this.#socket.resume();
    this.#isHeld = false;
  }

  /** Call this for each chunk that has arrived. */
  noteRead(bytes: number): void {
    if (bytes < FULL_READ_BYTES || this.#isResting) return;
    if (!this.#isHeld) this.#socket.pause();
    this.#isResting = true;
    setImmediate(() => {
      this.#isResting = false;
      if (!this.#isHeld) this.#socket.resume();
    });
  }
}
