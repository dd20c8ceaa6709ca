// Handles finished requests together, before the next check of a limit.

import { atTurnEnd } from "../../lib/time/next-turn.ts";

export class FinishQueue<T> {
  readonly #finish: (batch: readonly T[]) => void;
  #waiting: T[] = [];
  /** Requests that have neither a line nor a refusal. */
  #running = 0;
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(finish: (batch: readonly T[]) => void) {
    this.#finish = finish;
  }

  enter(): void {
    this.#running += 1;
  }

  leave(count = 1): void {
    this.#running -= count;
    if (this.#running === 0) this.#idle?.resolve();
  }

  /** Called when the client has its answer. */
  add(request: T): void {
    if (this.#waiting.push(request) === 1) atTurnEnd("finished", () => this.flush());
  }

  flush(): void {
    if (this.#waiting.length === 0) return;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#finish(batch);
    this.leave(batch.length);
  }

  ended(): Promise<void> {
    this.#idle ??= Promise.withResolvers<void>();
    if (this.#running === 0) this.#idle.resolve();
    return this.#idle.promise;
  }
}
