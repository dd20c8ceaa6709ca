// Tries the addresses of a host until one connects: the next one as soon as one fails, or after 250 ms (RFC 8305). The
// runtime does this for the first four addresses only: with more than four IPv6 addresses that do not respond, it would
// never try IPv4.

import { Deadline } from "../../time/deadline.ts";

const STEP_MS = 250;

interface RaceOptions {
  /** Starts an attempt. It rejects if the attempt fails. */
  readonly connect: (address: string) => Promise<unknown>;
  /** All attempts have failed. */
  readonly failed: (firstError: unknown) => void;
  /** The attempt failed for a reason that all others share. */
  readonly isFinal: (error: unknown) => boolean;
}

export class Race {
  readonly #left: string[];
  readonly #options: RaceOptions;
  readonly #step = new Deadline(() => this.#next());
  #running = 0;
  #firstError: unknown = null;
  #ended = false;

  constructor(addresses: readonly string[], options: RaceOptions) {
    this.#left = [...addresses];
    this.#options = options;
    this.#next();
  }

  /** No more attempts are started. Those that run can still succeed. */
  end(): void {
    this.#ended = true;
    this.#step.disarm();
  }

  #next(): void {
    const address = this.#left.shift();
    if (address === undefined || this.#ended) return;
    this.#running += 1;
    if (this.#left.length > 0) this.#step.arm(STEP_MS);
    Promise.try(() => this.#options.connect(address)).catch((error: unknown) => this.#lose(error));
  }

  #lose(error: unknown): void {
    this.#running -= 1;
    this.#firstError ??= error;
    if (this.#ended) return;
    const isOver = this.#left.length === 0 && this.#running === 0;
    if (!isOver && !this.#options.isFinal(error)) {
      this.#next();
      return;
    }
    this.end();
    this.#options.failed(this.#options.isFinal(error) ? error : this.#firstError);
  }
}
