// One client: its requests one after another (or pipelined), its patience, its retries.
// What it got of each send is kept for the checks.

import type { ClientPlan, RequestPlan } from "../plan/plan.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import type { End, Network } from "../world/network.ts";
import { NATURE, type Event, type Scheduler } from "../world/scheduler.ts";
import { type Reply, ReplyReader } from "./reply.ts";
import { type Ask, writeRequest } from "./requests.ts";

/** One request as it was sent once. */
export interface Send extends Ask {
  readonly client: ClientPlan;
  readonly at: number;
  /** What came of the reply, whole or not. */
  reply: Reply | null;
  /** How it ended: `reply`: with a whole reply; `lost`: the connection was; `left`: the client left; `refused`: no connection. */
  end: "open" | "reply" | "lost" | "left" | "refused" | "gave up";
  endedAt: number;
  /** The answer that it got whole. */
  whole: Arrival | null;
  /** A gateway died while it was on its way. */
  orphaned: boolean;
}

export interface ClientWatch {
  readonly address: string;
  readonly sends: Send[];
  /** Everything it wanted to do is done. */
  done(client: Client): void;
  ended(send: Send): void;
  broken(send: Send | null, client: ClientPlan, text: string): void;
}

/** Longer than every time limit of the gateway in all simulated configs. */
const PATIENCE_MS = 150_000;
const SETTLE_MS = 20;

export class Client {
  readonly plan: ClientPlan;
  readonly #network: Network;
  readonly #scheduler: Scheduler;
  readonly #watch: ClientWatch;
  #line: Line | null = null;
  /** The request that is next; those before it have ended. */
  #at = 0;
  /** How often the one before the next was sent again. */
  #again = 0;
  readonly #sendsOf = new Map<number, number>();
  /** The response that the next send fetches. */
  #fetching: string | null = null;
  #polls = 0;
  #finished = false;

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
    if (this.#line !== null && this.#line.usable && this.plan.keepAlive) {
      this.#line.send(send);
      return;
    }
    this.#line?.close();
    this.#dial(send);
  }

  #dial(send: Send): void {
    const line = new Line(this.plan, this.#scheduler, {
      ended: (ended) => this.#ended(ended),
      broken: (text) => this.#watch.broken(line.waiting[0] ?? null, this.plan, text),
      follow: () => this.#follow(line),
    });
    this.#line = line;
    this.#network.connect(this.#watch.address, { name: this.plan.name, owner: NATURE }, (result) => {
      if (typeof result === "string") {
        send.end = "refused";
        send.endedAt = this.#scheduler.now;
        this.#ended(send);
        return;
      }
      line.open(result);
      line.send(send);
    });
  }

  /** Pipelining: the request after the one that has just been sent. */
  #follow(line: Line): void {
    if (!this.plan.pipelined || line !== this.#line) return;
    // What follows a request whose framing is broken would be taken for a part of it.
    if (line.waiting.some(({ request }) => request.bad !== null || isBackground(request))) return;
    const ahead = this.#at + line.waiting.length;
    const request = this.plan.requests[ahead];
    if (request === undefined || isBackground(request) || line.waiting.length > 3 || !line.usable) return;
    line.send(this.#note(request));
  }

  #note(request: RequestPlan): Send {
    const index = this.plan.requests.indexOf(request);
    const number = this.#sendsOf.get(index) ?? 0;
    this.#sendsOf.set(index, number + 1);
    const send: Send = {
      name: `${this.plan.name}r${index}s${number}`,
      client: this.plan,
      request,
      fetches: this.#fetching,
      at: this.#scheduler.now,
      reply: null,
      end: "open",
      endedAt: Number.POSITIVE_INFINITY,
      whole: null,
      orphaned: false,
    };
    this.#watch.sends.push(send);
    const what = this.#fetching === null ? "" : `, fetches ${this.#fetching}`;
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
    if (this.#finished) return;
    const index = this.plan.requests.indexOf(send.request);
    if (index !== this.#at) return;
    const waitMs = this.#retryAfter(send);
    if (waitMs !== null) {
      this.#again++;
      this.#later(waitMs, () => this.#next());
      return;
    }
    this.#again = 0;
    const pollMs = this.#poll(send);
    if (pollMs !== null) {
      this.#later(pollMs, () => this.#next());
      return;
    }
    this.#at = index + 1;
    // What was pipelined behind it and is still coming needs no new send.
    const pending = this.#line?.waiting.find((other) => other.request === this.plan.requests[this.#at]);
    if (pending !== undefined) return;
    const request = this.plan.requests[this.#at];
    this.#later(request?.gapMs ?? SETTLE_MS, () => this.#next());
  }

  /** Until what goes on in the background is there, and once more where the plan says so. */
  #poll(send: Send): number | null {
    const { background } = send.request;
    if (!background) return null;
    const { id, goesOn } = readStored(send);
    const isFirst = this.#polls++ === 0;
    const goes = id !== null && (goesOn || isFirst || (background.again && this.#fetching !== null));
    if (goes && this.#polls < MOST_POLLS) {
      this.#fetching = id;
      // The last one.
      if (!goesOn && !isFirst) this.#polls = MOST_POLLS;
      return background.pollMs;
    }
    this.#fetching = null;
    this.#polls = 0;
    return null;
  }

  /** As the official SDKs: twice, after half a second and more, or after what they are asked to wait. */
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

function isBackground({ background }: RequestPlan): boolean {
  return background !== undefined && background !== null;
}

const MOST_POLLS = 12;
const NOT_STORED = { id: null, goesOn: false };

function readStored({ reply, end }: Send): { id: string | null; goesOn: boolean } {
  if (end !== "reply" || reply?.status !== 200) return NOT_STORED;
  const text = reply.body.toString();
  const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? null;
  return { id, goesOn: /"status":"(?:queued|in_progress)"/.test(text) };
}

function mayRetry({ status, fields }: Reply): boolean {
  if (fields.get("x-should-retry") === "false") return false;
  return [408, 409, 429].includes(status) || status >= 500;
}

function readRetryAfter({ fields }: Reply): number | null {
  const ms = Number(fields.get("retry-after") ?? Number.NaN) * 1000;
  return ms > 0 && ms <= 60_000 ? ms : null;
}

interface LineWatch {
  ended(send: Send): void;
  broken(text: string): void;
  follow(): void;
}

/** One connection of a client. */
class Line {
  readonly waiting: Send[] = [];
  readonly #plan: ClientPlan;
  readonly #scheduler: Scheduler;
  readonly #watch: LineWatch;
  readonly #reader = new ReplyReader();
  #end: End | null = null;
  #out: Buffer[] = [];
  #patience: Event | null = null;
  #leaving: Event | null = null;
  #got = 0;
  #sinceRest = 0;
  #closing = false;
  /** Nothing that still comes is for anybody. */
  #gone = false;

  constructor(plan: ClientPlan, scheduler: Scheduler, watch: LineWatch) {
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#watch = watch;
  }

  get usable(): boolean {
    return this.#end !== null && !this.#end.closed && !this.#closing;
  }

  open(end: End): void {
    this.#end = end;
    end.ears = {
      data: (bytes) => this.#receive(bytes),
      drain: () => this.#flush(),
      finished: () => this.#finished(),
      lost: () => this.#lose("lost"),
    };
  }

  close(): void {
    this.#closing = true;
    this.#end?.fin();
  }

  send(send: Send): void {
    this.waiting.push(send);
    const bytes = writeRequest(this.#plan, send);
    if (this.waiting.length === 1) this.#await(send);
    this.#out.push(bytes);
    this.#flush();
    this.#watch.follow();
  }

  /** Its reply is the next one. */
  #await(send: Send): void {
    this.#got = 0;
    this.#sinceRest = 0;
    this.#patience = this.#scheduler.after(PATIENCE_MS * 1000, NATURE, `${send.name} loses patience`, () => {
      this.#patience = null;
      this.#lose("gave up");
    });
    const { leave } = send.request;
    if (leave === null) return;
    this.#leaving = this.#scheduler.after(leave.afterMs * 1000, NATURE, `${send.name} leaves`, () => {
      this.#leaving = null;
      this.#leave(send);
    });
  }

  #leave(send: Send): void {
    if (send.request.leave?.how === "rst") this.#end?.reset();
    else this.#end?.fin();
    this.#lose("left");
  }

  #receive(bytes: Buffer): void {
    if (this.#gone) return;
    this.#got += bytes.length;
    for (let reply = this.#reader.read(bytes); reply !== null; reply = this.#reader.next()) {
      const send = this.waiting[0];
      if (send === undefined) {
        this.#watch.broken(`got a reply that it did not ask for (status ${reply.status})`);
        return;
      }
      this.#take(send, reply);
    }
    if (this.#reader.broken !== null) {
      this.#watch.broken(`got bytes that are no HTTP: ${this.#reader.broken}`);
      this.#end?.reset();
      this.#lose("lost");
      return;
    }
    const send = this.waiting[0];
    if (send === undefined) {
      if (this.#reader.unread > 0) this.#watch.broken("got bytes that it did not ask for");
      return;
    }
    send.reply = this.#reader.current;
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
    this.#end?.setReading(false);
    this.#scheduler.after(slow.ms * 1000, NATURE, `${this.#plan.name} reads again`, () =>
      this.#end?.setReading(true),
    );
  }

  #take(send: Send, reply: Reply): void {
    send.reply = reply;
    if (reply.fields.get("connection") === "close") this.#closing = true;
    this.#endSend(send, "reply");
    if (this.#closing && this.waiting.length === 0) this.#end?.fin();
  }

  #endSend(send: Send, end: Send["end"]): void {
    this.waiting.splice(this.waiting.indexOf(send), 1);
    if (this.#patience !== null) this.#scheduler.cancel(this.#patience);
    if (this.#leaving !== null) this.#scheduler.cancel(this.#leaving);
    this.#patience = this.#leaving = null;
    send.end = end;
    send.endedAt = this.#scheduler.now;
    const next = this.waiting[0];
    if (next !== undefined) this.#await(next);
    this.#watch.ended(send);
  }

  /** The other side has said that nothing more comes. */
  #finished(): void {
    const send = this.waiting[0];
    const reply = this.#reader.finish();
    if (send !== undefined && reply !== null) this.#take(send, reply);
    this.#end?.fin();
    this.#lose("lost");
  }

  #lose(how: Send["end"]): void {
    this.#closing = true;
    this.#gone = true;
    if (how === "gave up") this.#end?.reset();
    const first = this.waiting[0];
    if (first !== undefined) first.reply = this.#reader.current ?? first.reply;
    for (const send of this.waiting.slice()) {
      // Only the first of them left or gave up; the others lost their connection with it.
      this.#endSend(send, send === first ? how : "lost");
    }
  }

  #flush(): void {
    const { piece } = this.#plan;
    while (this.#out.length > 0 && this.#end !== null) {
      const bytes = this.#out[0]!;
      const part = piece === 0 ? bytes : bytes.subarray(0, piece);
      const taken = this.#end.write(part);
      if (taken < 0) return;
      if (taken === bytes.length) this.#out.shift();
      else this.#out[0] = bytes.subarray(taken);
      if (taken < part.length) return;
      if (piece !== 0 && this.#out.length > 0) {
        this.#scheduler.after(300, NATURE, `${this.#plan.name} sends on`, () => this.#flush());
        return;
      }
    }
  }
}
