// A client sends its requests, one after another, and retries them. It keeps the bytes that it received, for the checks.

import type { ClientPlan, RequestPlan } from "../plan/plan.ts";
import type { Network } from "../world/network.ts";
import { NATURE, type Scheduler } from "../world/scheduler.ts";
import { type Reply, type Send, sendRequest } from "./send.ts";

export interface ClientWatch {
  sent(send: Send): void;
  /** Called when the client has sent all of its requests. */
  done(): void;
  ended(send: Send): void;
}

const SETTLE_MS = 20;

export class Client {
  readonly plan: ClientPlan;
  readonly #network: Network;
  readonly #scheduler: Scheduler;
  readonly #watch: ClientWatch;
  /** The index of the next request. */
  #at = 0;
  /** How often this request was sent before. */
  #again = 0;

  constructor(plan: ClientPlan, network: Network, watch: ClientWatch) {
    this.plan = plan;
    this.#network = network;
    this.#scheduler = network.scheduler;
    this.#watch = watch;
  }

  start(): void {
    this.#later(this.plan.startMs, () => this.#next());
  }

  #later(ms: number, run: () => void): void {
    this.#scheduler.after(ms * 1000, NATURE, `${this.plan.name} goes on`, run);
  }

  #next(): void {
    const request = this.plan.requests[this.#at];
    if (request === undefined) return this.#watch.done();
    const send = this.#note(request);
    sendRequest(this.#network, send, () => this.#ended(send));
  }

  #note(request: RequestPlan): Send {
    const send: Send = {
      name: `${this.plan.name}r${this.#at}s${this.#again}`,
      client: this.plan,
      request,
      at: this.#scheduler.now,
      reply: null,
      end: "open",
      endedAt: Number.POSITIVE_INFINITY,
      whole: null,
      orphaned: false,
    };
    this.#watch.sent(send);
    this.#scheduler.note(`${send.name} is sent (${this.plan.dialect}${request.stream ? ", stream" : ""})`);
    return send;
  }

  #ended(send: Send): void {
    const { reply } = send;
    const got = reply === null ? "nothing" : `${reply.status}, ${reply.body.length} bytes`;
    this.#scheduler.note(`${send.name} ends (${send.end}): ${got}`);
    this.#watch.ended(send);
    const waitMs = this.#retryAfter(send);
    if (waitMs === null) {
      this.#again = 0;
      this.#at++;
    } else {
      this.#again++;
    }
    this.#later(waitMs ?? this.plan.requests[this.#at]?.gapMs ?? SETTLE_MS, () => this.#next());
  }

  /** Returns after how many ms the client retries, as the official SDKs do, or null if it does not retry. */
  #retryAfter({ end, reply }: Send): number | null {
    if (this.#again >= this.plan.retries || end === "left" || end === "gave up") return null;
    const backoff = 500 * 2 ** this.#again;
    if (end === "lost" || end === "refused") return reply === null ? backoff : null;
    return reply === null || !mayRetry(reply) ? null : (readRetryAfter(reply) ?? backoff);
  }
}

function mayRetry({ status, fields }: Reply): boolean {
  if (fields.get("x-should-retry") === "false") return false;
  return [408, 409, 429].includes(status) || status >= 500;
}

function readRetryAfter({ fields }: Reply): number | null {
  const ms = Number(fields.get("retry-after") ?? Number.NaN) * 1000;
  return ms > 0 && ms <= 60_000 ? ms : null;
}
