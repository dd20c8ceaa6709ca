// One sending of a request, and what came back.

import type { ClientPlan } from "../plan/plan.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import { type Event, NATURE, type Scheduler } from "../world/scheduler.ts";
import type { Ask } from "./requests.ts";

export interface Reply {
  readonly status: number;
  readonly fields: Map<string, string>;
  /** When it has ended, however it has. */
  body: Buffer;
}

export interface Send extends Ask {
  readonly client: ClientPlan;
  readonly at: number;
  /** The reply, as far as it came. */
  reply: Reply | null;
  /** How many bytes of it have come. */
  received: number;
  /** How it ended. `reply`: with a complete reply; `lost`: the connection broke; `left`: the client left; `refused`: there
   *  was no connection. */
  end: "open" | "reply" | "lost" | "left" | "refused" | "gave up";
  endedAt: number;
  /** The answer, if it came completely. */
  whole: Arrival | null;
  /** A gateway died while it was in flight. */
  orphaned: boolean;
}

/** Longer than every time limit of the gateway in all simulated configs. */
const PATIENCE_MS = 150_000;

/** How long a client waits for an answer. */
export class Patience {
  readonly #scheduler: Scheduler;
  readonly #events: Event[];

  constructor(scheduler: Scheduler, { name, request }: Send, end: (how: "gave up" | "left") => void) {
    this.#scheduler = scheduler;
    const give = (ms: number, label: string, how: "gave up" | "left"): Event =>
      scheduler.after(ms * 1000, NATURE, `${name} ${label}`, () => end(how));
    this.#events = [
      give(PATIENCE_MS, "loses patience", "gave up"),
      ...(request.leave === null ? [] : [give(request.leave.afterMs, "leaves", "left")]),
    ];
  }

  end(): void {
    for (const event of this.#events) this.#scheduler.cancel(event);
  }
}
