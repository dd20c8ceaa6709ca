// What both kinds of connections to an upstream have in common: they send bytes in order as the gateway takes them,
// wait in virtual time, and end once.

import type { AnswerPlan } from "../plan/plan.ts";
import type { End } from "../world/network.ts";
import { NATURE } from "../world/scheduler.ts";
import type { Arrival, Upstream } from "./upstream.ts";

interface Ears {
  readonly data: (bytes: Buffer) => void;
  /** The gateway has taken more. */
  readonly drained?: () => void;
  /** Once, however the connection ends. */
  readonly lost: () => void;
}

export class Outlet {
  readonly #upstream: Upstream;
  readonly #end: End;
  readonly #lost: () => void;
  #out: Buffer[] = [];
  #afterSent: (() => void)[] = [];
  #isGone = false;
  /** In bytes, sent or waiting. */
  total = 0;

  constructor(upstream: Upstream, end: End, { data, drained, lost }: Ears) {
    this.#upstream = upstream;
    this.#end = end;
    this.#lost = lost;
    end.ears = {
      data,
      drain: () => {
        this.#flush();
        drained?.();
      },
      finished: () => this.close("fin"),
      lost: () => this.leave(),
    };
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  send(bytes: Buffer): void {
    if (bytes.length > 0) this.#out.push(bytes);
    this.total += bytes.length;
    this.#flush();
  }

  whenSent(run: () => void): void {
    this.#afterSent.push(run);
    this.#flush();
  }

  /** Runs only if the connection is open then. */
  after(ms: number, run: () => void): void {
    const { scheduler, plan } = this.#upstream;
    scheduler.after(ms * 1000, NATURE, `${plan.name} goes on`, () => {
      if (!this.#isGone) run();
    });
  }

  /** What has been sent is the end of an answer. Its connection may pause, or be ended by the gateway, before the upstream
   *  goes on. */
  noteLast(arrival: Arrival): void {
    this.whenSent(() => void (arrival.endedAt = this.#upstream.scheduler.now));
  }

  close(how: "fin" | "rst"): void {
    if (how === "fin") this.#end.fin();
    else this.#end.reset();
    this.leave();
  }

  /** Without an end of its own: it is lost, or it continues as a WebSocket. */
  leave(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#lost();
  }

  /** The beginning of every answer. `respond` runs for all but the two kinds in which the upstream says nothing. */
  begin(arrival: Arrival, answer: AnswerPlan, respond: () => void): void {
    if (answer.slowReadMs > 0) {
      this.#end.setReading(false);
      this.after(answer.slowReadMs, () => this.#end.setReading(true));
    }
    if (answer.kind === "silence") arrival.endedAt = this.#upstream.scheduler.now;
    else if (answer.kind === "close at once")
      this.after(answer.delayMs, () => this.close(answer.cut?.how === "rst" ? "rst" : "fin"));
    else
      this.after(answer.delayMs, () => {
        arrival.waited = this.#upstream.scheduler.now - this.#end.peer.wroteAt;
        respond();
      });
  }

  #flush(): void {
    while (this.#out.length > 0) {
      const bytes = this.#out[0]!;
      const taken = this.#end.write(bytes);
      if (taken < 0) return;
      if (taken < bytes.length) {
        this.#out[0] = bytes.subarray(taken);
        return;
      }
      this.#out.shift();
    }
    const afterSent = this.#afterSent;
    this.#afterSent = [];
    for (const run of afterSent) run();
  }
}
