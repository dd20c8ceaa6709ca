// One client: its requests, one after another, or several at once on a WebSocket, and its retries. What it received for
// each send is kept for the checks.

import type { ClientPlan, RequestPlan } from "../plan/plan.ts";
import type { Network } from "../world/network.ts";
import { NATURE, type Event, type Scheduler } from "../world/scheduler.ts";
import { sendOverHttp } from "./http-send.ts";
import type { Reply, Send } from "./send.ts";
import { SocketLine } from "./socket-line.ts";

export interface ClientWatch {
  sent(send: Send): void;
  /** It has sent all of its requests. */
  done(client: Client): void;
  ended(send: Send): void;
  broken(send: Send | null, client: ClientPlan, text: string): void;
}

const SETTLE_MS = 20;

export class Client {
  readonly plan: ClientPlan;
  readonly #network: Network;
  readonly #scheduler: Scheduler;
  readonly #watch: ClientWatch;
  #line: SocketLine | null = null;
  /** The next request. The requests before it have ended. */
  #at = 0;
  /** How often the previous request was sent again. */
  #again = 0;
  readonly #sendsOf = new Map<number, number>();
  #finished = false;
  /** A WebSocket was refused, so it continues over HTTP, as Codex does. */
  #overHttp = false;
  /** Requests that ended before an earlier one, on another stream. */
  readonly #early = new Set<RequestPlan>();

  constructor(plan: ClientPlan, network: Network, watch: ClientWatch) {
    this.plan = plan;
    this.#network = network;
    this.#scheduler = network.scheduler;
    this.#watch = watch;
  }

  start(): void {
    this.#later(this.plan.startMs, () => this.#next());
  }

  #later(ms: number, run: () => void): Event {
    return this.#scheduler.after(ms * 1000, NATURE, `${this.plan.name} goes on`, run);
  }

  #next(): void {
    const request = this.plan.requests[this.#at];
    if (request === undefined) {
      this.#finish();
      return;
    }
    const send = this.#note(request);
    if (send.events === null) return sendOverHttp(this.#network, send, () => this.#ended(send));
    if (this.#line?.usable !== true) {
      this.#line?.close();
      this.#line = this.#openLine();
    }
    this.#line.send(send);
  }

  #openLine(): SocketLine {
    const line: SocketLine = new SocketLine(this.plan, this.#network, {
      ended: (ended) => this.#ended(ended),
      broken: (text) => this.#watch.broken(line.waiting[0] ?? null, this.plan, text),
      follow: () => this.#follow(line),
    });
    return line;
  }

  /** Another response begins while the ones before it run. An open WebSocket may answer a message with 426, too: what
   *  follows is sent over HTTP. */
  #follow(line: SocketLine): void {
    if (!this.plan.pipelined || line !== this.#line || this.#overHttp) return;
    const request = this.plan.requests[this.#at + line.waiting.length];
    if (request === undefined || this.#early.size > 0) return;
    if (line.usable && line.mayFollow(request)) line.send(this.#note(request));
  }

  #note(request: RequestPlan): Send {
    const index = this.plan.requests.indexOf(request);
    const number = this.#sendsOf.get(index) ?? 0;
    this.#sendsOf.set(index, number + 1);
    const send: Send = {
      name: `${this.plan.name}r${index}s${number}`,
      client: this.plan,
      request,
      at: this.#scheduler.now,
      reply: null,
      received: 0,
      end: "open",
      endedAt: Number.POSITIVE_INFINITY,
      whole: null,
      orphaned: false,
      events: this.plan.socket && !this.#overHttp ? [] : null,
      message: null,
    };
    this.#watch.sent(send);
    const what = send.events === null ? "" : ", over a WebSocket";
    this.#scheduler.note(
      `${send.name} is sent (${this.plan.dialect}${request.stream ? ", stream" : ""}${what})`,
    );
    return send;
  }

  #ended(send: Send): void {
    const { reply } = send;
    const got = reply === null ? "nothing" : `${reply.status}, ${reply.body.length} bytes`;
    this.#scheduler.note(`${send.name} ends (${send.end}): ${got}`);
    this.#watch.ended(send);
    const index = this.plan.requests.indexOf(send.request);
    if (index > this.#at) this.#early.add(send.request);
    if (index === this.#at && !this.#finished) this.#goOn(send);
  }

  #goOn(send: Send): void {
    const waitMs = this.#goesOverToHttp(send) ? 0 : this.#retryAfter(send);
    if (waitMs !== null) {
      this.#again++;
      this.#later(waitMs, () => this.#next());
      return;
    }
    this.#again = 0;
    do this.#at++;
    while (this.#early.delete(this.plan.requests[this.#at]!));
    // Requests that were sent after it and are still answered are not sent again.
    const pending = this.#line?.waiting.find((other) => other.request === this.plan.requests[this.#at]);
    if (pending !== undefined) return;
    const request = this.plan.requests[this.#at];
    this.#later(request?.gapMs ?? SETTLE_MS, () => this.#next());
  }

  /** Codex does the same when a WebSocket is refused with this status. */
  #goesOverToHttp({ events, reply }: Send): boolean {
    if (events === null || reply?.status !== 426) return false;
    this.#overHttp = true;
    return true;
  }

  /** As the official SDKs do: twice, after half a second or more, or after the time in retry-after. */
  #retryAfter(send: Send): number | null {
    const number = this.#again;
    if (number >= this.plan.retries || send.end === "left" || send.end === "gave up") return null;
    const backoff = 500 * 2 ** number;
    if (send.end === "lost" || send.end === "refused") return send.reply === null ? backoff : null;
    return send.reply === null || !mayRetry(send.reply) ? null : (readRetryAfter(send.reply) ?? backoff);
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#line?.close();
    this.#watch.done(this);
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
