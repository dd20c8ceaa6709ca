// One connection of a client: its open requests, how long it waits, how fast it reads, and when it leaves. http-line.ts and
// socket-line.ts have the form of requests and replies.

import type { ClientPlan, RequestPlan } from "../plan/plan.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import type { End } from "../world/network.ts";
import { NATURE, type Event, type Scheduler } from "../world/scheduler.ts";
import type { Reply } from "./reply.ts";
import type { Ask } from "./requests.ts";

/** One sending of a request. */
export interface Send extends Ask {
  readonly client: ClientPlan;
  readonly at: number;
  /** The reply, as far as it came. */
  reply: Reply | null;
  /** How it ended. `reply`: with a complete reply; `lost`: the connection broke; `left`: the client left; `refused`: there
   *  was no connection. */
  end: "open" | "reply" | "lost" | "left" | "refused" | "gave up";
  endedAt: number;
  /** The answer, if it came completely. */
  whole: Arrival | null;
  /** A gateway died while it was in flight. */
  orphaned: boolean;
  /** On a WebSocket: the messages that belong to it. Null: over HTTP. */
  events: string[] | null;
  /** On a WebSocket: its own message. */
  message: string | null;
}

export interface LineWatch {
  ended(send: Send): void;
  broken(text: string): void;
  /** Another request may be sent after the open ones. */
  follow(): void;
}

/** Longer than every time limit of the gateway in all simulated configs. */
const PATIENCE_MS = 150_000;

export abstract class Line {
  readonly waiting: Send[] = [];
  protected readonly plan: ClientPlan;
  protected readonly scheduler: Scheduler;
  protected readonly watch: LineWatch;
  protected end: End | null = null;
  protected closing = false;
  /** Whatever still comes is ignored. */
  protected gone = false;
  #out: Buffer[] = [];
  #patience: Event | null = null;
  #leaving: Event | null = null;
  #got = 0;
  #sinceRest = 0;

  constructor(plan: ClientPlan, scheduler: Scheduler, watch: LineWatch) {
    this.plan = plan;
    this.scheduler = scheduler;
    this.watch = watch;
  }

  /** The bytes of a request. */
  protected abstract write(send: Send): Buffer;
  protected abstract read(bytes: Buffer): void;
  /** Keeps the part of the reply that has come. */
  protected abstract keep(send: Send): void;
  /** The other side has closed its direction. */
  protected abstract finish(): void;
  /** Another request may be sent before the open ones have their replies. */
  abstract mayFollow(request: RequestPlan): boolean;

  get usable(): boolean {
    return this.end !== null && !this.end.closed && !this.closing;
  }

  open(end: End): void {
    this.end = end;
    end.ears = {
      data: (bytes) => this.#receive(bytes),
      drain: () => this.#flush(),
      finished: () => {
        this.finish();
        this.end?.fin();
        this.lose("lost");
      },
      lost: () => this.lose("lost"),
    };
  }

  close(): void {
    this.closing = true;
    this.end?.fin();
  }

  send(send: Send): void {
    this.waiting.push(send);
    const bytes = this.write(send);
    if (this.waiting.length === 1) this.#await(send);
    this.put(bytes);
    this.watch.follow();
  }

  protected put(bytes: Buffer): void {
    if (bytes.length > 0) this.#out.push(bytes);
    this.#flush();
  }

  /** The next reply belongs to it. */
  #await(send: Send): void {
    this.#got = 0;
    this.#sinceRest = 0;
    this.#patience = this.scheduler.after(PATIENCE_MS * 1000, NATURE, `${send.name} loses patience`, () => {
      this.#patience = null;
      this.lose("gave up");
    });
    const { leave } = send.request;
    if (leave === null) return;
    this.#leaving = this.scheduler.after(leave.afterMs * 1000, NATURE, `${send.name} leaves`, () => {
      this.#leaving = null;
      this.#leave(send);
    });
  }

  #leave(send: Send): void {
    if (send.request.leave?.how === "rst") this.end?.reset();
    else this.close();
    this.lose("left");
  }

  #receive(bytes: Buffer): void {
    if (this.gone) return;
    this.#got += bytes.length;
    this.read(bytes);
    const send = this.waiting[0];
    if (send === undefined) return;
    this.#beSlow(send, bytes.length);
    const { leave } = send.request;
    if (leave !== null && this.#got >= leave.afterBytes) this.#leave(send);
  }

  #beSlow({ request }: Send, came: number): void {
    const { slow } = request;
    if (slow === null) return;
    this.#sinceRest += came;
    if (this.#sinceRest < slow.everyBytes) return;
    this.#sinceRest = 0;
    this.end?.setReading(false);
    this.scheduler.after(slow.ms * 1000, NATURE, `${this.plan.name} reads again`, () =>
      this.end?.setReading(true),
    );
  }

  protected endSend(send: Send, end: Send["end"]): void {
    const isFirst = send === this.waiting[0];
    this.waiting.splice(this.waiting.indexOf(send), 1);
    if (isFirst) this.#unawait();
    send.end = end;
    send.endedAt = this.scheduler.now;
    const next = this.waiting[0];
    if (isFirst && next !== undefined) this.#await(next);
    this.watch.ended(send);
  }

  #unawait(): void {
    if (this.#patience !== null) this.scheduler.cancel(this.#patience);
    if (this.#leaving !== null) this.scheduler.cancel(this.#leaving);
    this.#patience = this.#leaving = null;
  }

  protected lose(how: Send["end"]): void {
    this.closing = true;
    this.gone = true;
    if (how === "gave up") this.end?.reset();
    const first = this.waiting[0];
    for (const send of this.waiting) this.keep(send);
    for (const send of this.waiting.slice()) {
      // Only the first one left or gave up. The others lost their connection with it.
      this.endSend(send, send === first ? how : "lost");
    }
  }

  #flush(): void {
    const { piece } = this.plan;
    while (this.#out.length > 0 && this.end !== null) {
      const bytes = this.#out[0]!;
      const part = piece === 0 ? bytes : bytes.subarray(0, piece);
      const taken = this.end.write(part);
      if (taken < 0) return;
      if (taken === bytes.length) this.#out.shift();
      else this.#out[0] = bytes.subarray(taken);
      if (taken < part.length) return;
      if (piece !== 0 && this.#out.length > 0) {
        this.scheduler.after(300, NATURE, `${this.plan.name} sends on`, () => this.#flush());
        return;
      }
    }
  }
}
