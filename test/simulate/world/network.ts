// The simulated network between the clients, the gateway's processes and the upstreams. Bytes in flight stay
// in order. They may be cut into pieces anywhere, their number is limited, and the last of them may be lost.

import type { Trouble } from "../plan/plan.ts";
import type { Call, ClientEars, SimExchange, SimServer } from "./client-side.ts";
import { Random } from "./random.ts";
import { NATURE, type Owner, type Scheduler } from "./scheduler.ts";
import type { Arriving } from "./upstream-side.ts";

/** How a connection treats bytes. */
export interface Weather {
  /** The time that bytes need in one direction, in microseconds. */
  readonly latency: number;
  /** How many bytes may be in flight. */
  readonly window: number;
  /** The largest piece that arrives at once; 0: no limit. */
  readonly piece: number;
}

interface Ends {
  readonly name: string;
  readonly from: Owner;
  readonly to: Owner;
  readonly weather: Weather;
  data(bytes: Buffer): void;
  /** Called when there is room again after a write that was told to wait. */
  drained(): void;
}

/** One direction of a connection. */
export class Pipe {
  closed = false;
  /** How many bytes have arrived. */
  read = 0;
  readonly #net: Network;
  readonly #ends: Ends;
  readonly #random: Random;
  /** Bytes in flight, and functions that run once all bytes before them have arrived. */
  #queue: (Buffer | (() => void))[] = [];
  #queued = 0;
  #isReading = true;
  #isArriving = false;
  #isFull = false;

  constructor(net: Network, ends: Ends) {
    this.#net = net;
    this.#ends = ends;
    this.#random = new Random(net.seed, ends.name);
  }

  /** How many bytes the writer still holds, because the network is full. */
  get unsent(): number {
    return Math.max(0, this.#queued - this.#ends.weather.window);
  }

  /** Writes bytes. False: the network is full, and `drained` is called when there is room again. */
  write(bytes: Uint8Array): boolean {
    if (this.closed) return true;
    if (bytes.length > 0) {
      this.#queue.push(Buffer.from(bytes));
      this.#queued += bytes.length;
      this.#wake(this.#ends.weather.latency);
    }
    this.#isFull ||= this.unsent > 0;
    return !this.#isFull;
  }

  /** Calls `run` when everything that was written before has arrived. */
  mark(run: () => void): void {
    if (this.closed) return;
    this.#queue.push(run);
    this.#wake(this.#ends.weather.latency);
  }

  setReading(isReading: boolean): void {
    if (this.#isReading === isReading) return;
    this.#isReading = isReading;
    if (isReading) this.#wake(0);
  }

  /** Breaks the connection. If the receiver reads, a random number of the bytes in flight still arrive. */
  break(run: () => void): void {
    if (this.closed) return;
    const isKept = this.#random.chance(300);
    let left = isKept ? Number.POSITIVE_INFINITY : this.#random.int(this.#queued + 1);
    const end = this.#queue.findIndex((each) => typeof each !== "function" && (left -= each.length) < 0);
    const cut = this.#queue[end];
    if (end >= 0) this.#queue.length = end;
    if (cut instanceof Buffer && left + cut.length > 0) this.#queue.push(cut.subarray(0, left + cut.length));
    this.#queued = this.#queue.reduce((sum, each) => sum + (typeof each === "function" ? 0 : each.length), 0);
    const { latency } = this.#ends.weather;
    const delay = latency + this.#random.int(latency + 100);
    this.#net.scheduler.after(delay, this.#ends.to, `${this.#ends.name} breaks`, () => {
      if (this.closed) return;
      this.close();
      run();
    });
  }

  /** From now on, nothing more arrives. */
  close(): void {
    this.closed = true;
    this.#queue = [];
    this.#queued = 0;
  }

  #wake(delay: number): void {
    if (this.#isArriving || this.closed) return;
    this.#isArriving = true;
    const jitter = this.#random.int(20 + (delay >> 2));
    this.#net.scheduler.after(delay + jitter, this.#ends.to, `${this.#ends.name} has something`, () =>
      this.#arrive(),
    );
  }

  #arrive(): void {
    this.#isArriving = false;
    if (this.closed || !this.#isReading) return;
    const [first] = this.#queue;
    if (first === undefined) return;
    if (typeof first === "function") {
      this.#queue.shift();
      first();
      // The next element of the queue arrives at the same moment or a little later.
      if (this.#queue.length > 0 && this.#random.chance(500)) return this.#arrive();
    } else {
      const bytes = this.#take(first);
      this.read += bytes.length;
      this.#ends.data(bytes);
      this.#noticeRoom();
    }
    if (this.#queue.length > 0) this.#wake(0);
  }

  /** Takes the next bytes. They were copied when they were written, so nothing else refers to them. */
  #take(first: Buffer): Buffer {
    const { weather } = this.#ends;
    const ends = this.#queue.findIndex((each) => typeof each === "function");
    const run = this.#queue
      .slice(0, ends < 0 ? undefined : ends)
      .filter((each) => typeof each !== "function");
    const there = run.reduce((sum, { length }) => sum + length, 0);
    const limit = weather.piece === 0 ? weather.window : this.#random.between(1, weather.piece);
    const most = Math.min(there, limit);
    if (most <= first.length) return this.#drop(first, most);
    const taken = Buffer.allocUnsafeSlow(most);
    for (let at = 0; at < most;) {
      const next = run.shift()!;
      const part = Math.min(next.length, most - at);
      this.#drop(next, part).copy(taken, at);
      at += part;
    }
    return taken;
  }

  #drop(first: Buffer, count: number): Buffer {
    this.#queued -= count;
    if (count === first.length) this.#queue.shift();
    else this.#queue[0] = first.subarray(count);
    return first.subarray(0, count);
  }

  #noticeRoom(): void {
    if (!this.#isFull || this.unsent > 0 || this.closed) return;
    this.#isFull = false;
    const { from, weather, name } = this.#ends;
    this.#net.scheduler.after(weather.latency, from, `${name} has room`, () => {
      if (!this.closed) this.#ends.drained();
    });
  }
}

export class Network {
  readonly scheduler: Scheduler;
  readonly seed: number;
  /** Upstreams that cannot be reached. */
  readonly lost = new Map<string, Trouble>();
  #gateway: SimServer | null = null;
  readonly #upstreams = new Map<string, (arriving: Arriving) => void>();
  weatherOf: (name: string) => Weather = () => ({ latency: 100, window: 1 << 20, piece: 0 });
  #count = 0;

  constructor(scheduler: Scheduler, seed: number) {
    this.scheduler = scheduler;
    this.seed = seed;
  }

  /** Returns a name that no other connection has, and the connection's weather. */
  open(name: string): { readonly name: string; readonly weather: Weather } {
    const full = `${name}#${++this.#count}`;
    return { name: full, weather: this.weatherOf(full) };
  }

  /** Returns a function that ends the listening. */
  listen(server: SimServer): () => void {
    this.#gateway = server;
    return () => {
      if (this.#gateway === server) this.#gateway = null;
    };
  }

  /** Calls `ears.refused` if no gateway listens. */
  request(call: Call, ears: ClientEars, started: (exchange: SimExchange) => void): void {
    const { name, weather } = this.open(call.name);
    this.scheduler.after(2 * weather.latency, NATURE, `${name} dials`, () => {
      const there = this.#gateway;
      if (there === null || there.owner.dead) ears.refused();
      else started(there.accept({ ...call, name }, weather, ears));
    });
  }

  addUpstream(host: string, receive: (arriving: Arriving) => void): void {
    this.#upstreams.set(host, receive);
  }

  upstreamAt(host: string): (arriving: Arriving) => void {
    const found = this.#upstreams.get(host);
    if (found === undefined) throw new Error(`there is no upstream ${host}`);
    return found;
  }
}
