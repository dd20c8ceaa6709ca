// Requests that wait until requests in flight leave room, in order at each limit.

import type { GatewayError } from "../../lib/errors.ts";
import { Deadline } from "../../lib/time/deadline.ts";
import type { Admission, NoRoom } from "./limits.ts";

/** Agents retry five minutes after a request if no answer has begun. */
const MAX_WAIT_MS = 240_000;
/** Further requests are refused at once. */
const MAX_WAITING = 1000;

type Arm = (ms: number, expire: () => void) => () => void;

type Ask = () => Admission | NoRoom;

export interface Wait {
  readonly admitted: Promise<Admission>;
  /** Ends the wait because the client left. `error`: why the request is not admitted. */
  readonly end: (error: GatewayError) => void;
}

interface Waiting {
  readonly ask: Ask;
  at: NoRoom["at"];
  readonly admit: (admission: Admission) => void;
  readonly refuse: (error: unknown) => void;
  readonly disarm: () => void;
}

export class WaitingRequests {
  readonly #arm: Arm;
  readonly #all = new Set<Waiting>();
  #isDue = false;

  constructor(arm: Arm = armDeadline) {
    this.#arm = arm;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Null: too many requests wait. */
  hold({ at }: NoRoom, ask: Ask): Wait | null {
    if (this.#all.size >= MAX_WAITING) return null;
    const { promise: admitted, resolve: admit, reject: refuse } = Promise.withResolvers<Admission>();
    const disarm = this.#arm(MAX_WAIT_MS, () => {
      const answer = this.#ask(own);
      if (answer !== null) this.#end(own, answer.noRoom);
    });
    const own: Waiting = { ask, at, admit, refuse, disarm };
    at.waiting += 1;
    this.#all.add(own);
    return { admitted, end: (error) => this.#end(own, error) };
  }

  /** Room came free. All requests that end in one turn of the event loop are handled together. */
  freed(): void {
    if (this.#isDue || this.#all.size === 0) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      const full = new Set<NoRoom["at"]>();
      for (const waiting of this.#all) {
        const answer = full.has(waiting.at) ? null : this.#ask(waiting);
        if (answer !== null) full.add(answer.at);
      }
    });
  }

  /** Null: the request no longer waits. */
  #ask(waiting: Waiting): NoRoom | null {
    try {
      const answer = waiting.ask();
      if ("noRoom" in answer) {
        waiting.at.waiting -= 1;
        waiting.at = answer.at;
        waiting.at.waiting += 1;
        return answer;
      }
      this.#remove(waiting);
      waiting.admit(answer);
    } catch (error) {
      this.#remove(waiting);
      waiting.refuse(error);
    }
    return null;
  }

  #end(waiting: Waiting, error: GatewayError): void {
    if (!this.#remove(waiting)) return;
    waiting.refuse(error);
    this.freed();
  }

  /** False: the request no longer waits. */
  #remove(waiting: Waiting): boolean {
    if (!this.#all.delete(waiting)) return false;
    waiting.at.waiting -= 1;
    waiting.disarm();
    return true;
  }
}

function armDeadline(ms: number, expire: () => void): () => void {
  const deadline = new Deadline(expire);
  deadline.arm(ms);
  return () => deadline.disarm();
}
