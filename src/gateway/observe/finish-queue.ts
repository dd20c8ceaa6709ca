// Work for many finished requests together. Limits empty the queue first.

import { atTurnEnd } from "../../lib/time/next-turn.ts";

export interface FinishQueueOptions<T> {
  readonly record: (request: T) => void;
  readonly written: () => void;
  readonly onError: (error: unknown) => void;
}

export class FinishQueue<T> {
  readonly #options: FinishQueueOptions<T>;
  #waiting: T[] = [];
  /** Neither recorded nor refused. */
  #running = 0;
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(options: FinishQueueOptions<T>) {
    this.#options = options;
  }

  enter(): void {
    this.#running += 1;
  }

  leave(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#idle?.resolve();
  }

  /** The client has its answer. */
  add(request: T): void {
    if (this.#waiting.push(request) === 1) atTurnEnd("finished", () => this.flush());
  }

  flush(): void {
    if (this.#waiting.length === 0) return;
    const batch = this.#waiting;
    this.#waiting = [];
    const { record, written, onError } = this.#options;
    for (const request of batch) {
      try {
        record(request);
      } catch (error) {
        onError(error);
      }
    }
    written();
    for (let left = batch.length; left > 0; left -= 1) this.leave();
  }

  ended(): Promise<void> {
    this.#idle ??= Promise.withResolvers<void>();
    if (this.#running === 0) this.#idle.resolve();
    return this.#idle.promise;
  }
}
