// Requests that wait for room at a limit. Those at one limit enter in order.

import type { GatewayError } from "../../lib/errors.ts";
import { Deadline } from "../../lib/time/deadline.ts";
import type { Admission, NoRoom } from "./limits.ts";

/** Agents retry after five minutes without an answer. */
const MAX_WAIT_MS = 240_000;
const MAX_WAITING = 1000;

type Arm = (ms: number, expire: () => void) => () => void;

type Ask = () => Admission | NoRoom;

interface Waiting {
  at: NoRoom["at"];
  readonly ask: () => NoRoom | null;
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

  hold({ at }: NoRoom, ask: Ask) {
    if (this.#all.size >= MAX_WAITING) return null;
    const { promise: entered, resolve: enter, reject: refuse } = Promise.withResolvers<Admission>();
    const leave = (): boolean => {
      if (!this.#all.delete(own)) return false;
      own.at.waiting -= 1;
      disarm();
      return true;
    };
    const end = (error: GatewayError): void => {
      if (!leave()) return;
      refuse(error);
      this.freed();
    };
    const askAgain = (): NoRoom | null => {
      try {
        const answer = ask();
        if ("noRoom" in answer) {
          own.at.waiting -= 1;
          own.at = answer.at;
          own.at.waiting += 1;
          return answer;
        }
        leave();
        enter(answer);
      } catch (error) {
        leave();
        refuse(error);
      }
      return null;
    };
    const own: Waiting = { at, ask: askAgain };
    const disarm = this.#arm(MAX_WAIT_MS, () => {
      const answer = askAgain();
      if (answer !== null) end(answer.noRoom);
    });
    at.waiting += 1;
    this.#all.add(own);
    return { entered, end };
  }

  freed(): void {
    if (this.#isDue || this.#all.size === 0) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      const full = new Set<NoRoom["at"]>();
      for (const waiting of this.#all) {
        const answer = full.has(waiting.at) ? null : waiting.ask();
        if (answer !== null) full.add(answer.at);
      }
    });
  }
}

function armDeadline(ms: number, expire: () => void): () => void {
  const deadline = new Deadline(expire);
  deadline.arm(ms);
  return () => deadline.disarm();
}
