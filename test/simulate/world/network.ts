// Connections as in TCP: bytes in order, cut into pieces anywhere, a limited number of them in flight, and a clean end
// (FIN) or a reset (RST). sockets.ts has the form in which the gateway sees a socket.

import type { Trouble } from "../plan/plan.ts";
import { Random } from "./random.ts";
import type { Owner, Scheduler } from "./scheduler.ts";

export interface Ears {
  data(bytes: Buffer): void;
  /** There is room again after a write that was only taken in part. */
  drain(): void;
  /** The other side has sent everything. */
  finished(): void;
  /** The connection has closed. It is not called after an own `reset`. */
  lost(): void;
}

/** How a connection treats bytes. */
export interface Weather {
  /** One way, in microseconds. */
  readonly latency: number;
  /** How many bytes may be in flight. */
  readonly window: number;
  /** The largest piece that arrives at once; 0: no limit. */
  readonly piece: number;
  /** The most that half of the arrivals wait before the process sees them. */
  readonly lag?: number;
}

export class End {
  readonly name: string;
  readonly owner: Owner;
  readonly net: Network;
  ears: Ears | null = null;
  /** Set by `Network.connect`. */
  peer!: End;
  /** The other side can show that it has its name. */
  hasCertificate = true;
  /** It can neither send nor receive. */
  closed = false;
  #weather: Weather;
  #random: Random;
  /** In flight to this end. */
  #queue: Buffer[] = [];
  #queued = 0;
  /** When the first of them reaches this side's system, which is before the process sees it. */
  #arrivesAt = Number.POSITIVE_INFINITY;
  #finArrivesAt = Number.POSITIVE_INFINITY;
  #resetArrivesAt = Number.POSITIVE_INFINITY;
  #finQueued = false;
  #finSeen = false;
  #finSent = false;
  #wantsDrain = false;
  #arriving = false;
  #reading = true;
  #written = 0;
  #wroteAt = 0;
  #read = 0;
  /** By the wall clock of the gateway's machine. */
  #usedAt = 0;
  #idleMs = 0;
  /** How many bytes it had read when each of its requests began. */
  readonly #readBefore: number[] = [];

  constructor(net: Network, name: string, owner: Owner, weather: Weather) {
    this.net = net;
    this.name = name;
    this.owner = owner;
    this.#weather = weather;
    this.#random = new Random(net.seed, name);
  }

  get written(): number {
    return this.#written;
  }

  /** When this side's system last took bytes. */
  get wroteAt(): number {
    return this.#wroteAt;
  }

  get bytesRead(): number {
    return this.#read;
  }

  /** Returns how many bytes were taken; -1 if the connection has closed. */
  write(bytes: Uint8Array): number {
    if (this.closed || this.#finSent) return -1;
    const { peer } = this;
    const room = Math.max(0, this.#weather.window - peer.#queued);
    const taken = Math.min(room, bytes.length);
    if (taken < bytes.length) this.#wantsDrain = true;
    this.#written += taken;
    if (taken > 0) this.#wroteAt = this.net.scheduler.now;
    if (taken > 0 && !peer.closed)
      peer.#expect(Buffer.from(taken === bytes.length ? bytes : bytes.subarray(0, taken)));
    if (peer.closed) this.#learnReset();
    return taken;
  }

  /** Sends the end after the written bytes. This side may still receive. */
  fin(): void {
    if (this.closed || this.#finSent) return;
    this.#finSent = true;
    this.net.note(`${this.name} sends FIN`);
    if (this.peer.closed) return;
    this.peer.#finQueued = true;
    this.peer.#finArrivesAt = this.net.scheduler.now + this.#weather.latency;
    this.peer.#wake(this.#weather.latency);
    if (this.#finSeen) this.#closeQuietly();
  }

  /** Drops the bytes in flight, except a random beginning of them. */
  reset(): void {
    if (this.closed) return;
    this.net.note(`${this.name} sends RST`);
    this.closed = true;
    this.#drop();
    this.peer.#learnOfReset();
  }

  /** What the system does after the end of a process. */
  abandon(): void {
    if (this.closed) return;
    if (this.#queued > 0) {
      this.reset();
      return;
    }
    this.fin();
    this.#closeQuietly();
  }

  /** After a power cut, the other side gets no sign. */
  vanish(): void {
    this.closed = true;
    this.#drop();
  }

  setReading(reading: boolean): void {
    if (this.#reading === reading) return;
    this.#reading = reading;
    if (reading) this.#wake(0);
  }

  /** A read that does not wait. A byte that it finds is lost. */
  readByte(): "byte" | "end" | "reset" | "nothing" {
    const { now } = this.net.scheduler;
    if (this.#queued > 0 && this.#arrivesAt <= now) {
      const whole = Buffer.concat(this.#queue);
      this.#queue = [whole.subarray(1)];
      this.#queued -= 1;
      return "byte";
    }
    if (this.#resetArrivesAt <= now) return "reset";
    return this.#queued === 0 && this.#finArrivesAt <= now ? "end" : "nothing";
  }

  /** A request begins here. Returns what had come to this side's system before, although nobody had read it. */
  beginRequest(): "bytes" | "end" | "nothing" {
    this.#readBefore.push(this.#read);
    const { now } = this.net.scheduler;
    const { at, byMs } = this.net.bend;
    this.#idleMs = this.net.wall() - this.#usedAt - (now - at < TURN_US ? byMs : 0);
    if (this.#queued > 0 && this.#arrivesAt <= now) return "bytes";
    return this.#finArrivesAt <= now || this.#resetArrivesAt <= now ? "end" : "nothing";
  }

  /** For how long nothing had come when its last request began. */
  get idleMs(): number {
    return this.#idleMs;
  }

  /** How many bytes this side had read before it sent its next request. To be called once for each request. */
  takeReadBefore(): number {
    return this.#readBefore.shift() ?? 0;
  }

  #expect(bytes: Buffer): void {
    if (this.#queued === 0) this.#arrivesAt = this.net.scheduler.now + this.#weather.latency;
    this.#queue.push(bytes);
    this.#queued += bytes.length;
    this.#wake(this.#weather.latency);
  }

  #wake(delay: number): void {
    if (this.#arriving || this.closed) return;
    this.#arriving = true;
    const { lag = 0 } = this.#weather;
    const busy = lag > 0 && this.#random.chance(500) ? this.#random.int(lag) : 0;
    const jitter = this.#random.int(20 + (delay >> 2)) + busy;
    this.net.scheduler.after(delay + jitter, this.owner, `${this.name} readable`, () => this.#arrive());
  }

  #arrive(): void {
    this.#arriving = false;
    if (this.closed || !this.#reading) return;
    if (this.#queued > 0) {
      const bytes = this.#take();
      this.#read += bytes.length;
      this.#usedAt = this.net.wall();
      this.peer.#noticeRoom();
      this.net.note(`${this.name} got ${bytes.length} bytes`);
      this.ears?.data(bytes);
      if (this.#queued > 0 || this.#finQueued) this.#wake(0);
      return;
    }
    if (!this.#finQueued || this.#finSeen) return;
    this.#finSeen = true;
    this.net.note(`${this.name} got FIN`);
    this.ears?.finished();
    if (this.#finSent && !this.closed) this.#closeQuietly();
  }

  /** Each piece was copied when it was written, so nothing else refers to it. */
  #take(): Buffer {
    const { piece } = this.#weather;
    const most = piece === 0 ? this.#queued : Math.min(this.#queued, this.#random.between(1, piece));
    this.#queued -= most;
    const first = this.#queue[0]!;
    if (first.length === most) return this.#queue.shift()!;
    if (this.#queued === 0) return Buffer.concat(this.#queue.splice(0));
    const taken = Buffer.allocUnsafeSlow(most);
    for (let at = 0; at < most;) {
      const next = this.#queue[0]!;
      const used = next.copy(taken, at, 0, most - at);
      if (used === next.length) this.#queue.shift();
      else this.#queue[0] = next.subarray(used);
      at += used;
    }
    return taken;
  }

  #noticeRoom(): void {
    if (!this.#wantsDrain || this.closed) return;
    this.#wantsDrain = false;
    const { scheduler } = this.net;
    scheduler.after(this.#weather.latency, this.owner, `${this.name} writable`, () => {
      if (!this.closed) this.ears?.drain();
    });
  }

  /** The other side has reset the connection. A random part of the bytes in flight still arrives. */
  #learnOfReset(): void {
    if (this.closed) return;
    if (this.#queued > 0) {
      const whole = Buffer.concat(this.#queue);
      const kept = this.#random.chance(300) ? whole.length : this.#random.int(whole.length + 1);
      this.#queue = kept === 0 ? [] : [whole.subarray(0, kept)];
      this.#queued = kept;
    }
    this.#finQueued = false;
    this.#learnReset();
  }

  /** Bytes that have not been read until then are lost. */
  #learnReset(): void {
    const { scheduler } = this.net;
    const delay = this.#weather.latency + this.#random.int(this.#weather.latency + 100);
    this.#resetArrivesAt = scheduler.now + this.#weather.latency;
    scheduler.after(delay, this.owner, `${this.name} got RST`, () => {
      if (this.closed) return;
      this.closed = true;
      this.#drop();
      this.ears?.lost();
    });
  }

  #closeQuietly(): void {
    this.closed = true;
    this.#drop();
  }

  #drop(): void {
    this.#queue = [];
    this.#queued = 0;
  }
}

/** An address that never responds, not even with a refusal. */
export const SILENT_ADDRESS = "2001:db8::dead";

export type Acceptor = (end: End) => void;

interface Listener {
  readonly owner: Owner;
  readonly accept: Acceptor;
}

/** The gateway chooses a connection, and writes on it at the end of its turn. The clock may be moved in between. */
const TURN_US = 1000;

export class Network {
  readonly scheduler: Scheduler;
  readonly seed: number;
  readonly #listeners = new Map<string, Listener>();
  /** Connections that their listener has not accepted yet. */
  readonly #arriving = new Set<End>();
  /** Names that cannot be resolved, or whose address does not respond. */
  readonly lost = new Map<string, Trouble>();
  readonly #names = new Map<string, string>();
  /** How often the gateway's machine has changed its network. */
  moves = 0;
  wall: () => number = () => 0;
  /** When the wall clock was moved last, and by how much. */
  bend = { at: Number.NEGATIVE_INFINITY, byMs: 0 };
  weatherOf: (name: string) => Weather = () => ({ latency: 100, window: 1 << 20, piece: 0 });
  #count = 0;

  constructor(scheduler: Scheduler, seed: number) {
    this.scheduler = scheduler;
    this.seed = seed;
  }

  note(text: string): void {
    this.scheduler.note(text);
  }

  /** The address that a name has. */
  addressOf(name: string): string {
    const known = [...this.#names].find(([, each]) => each === name)?.[0];
    const address = known ?? `203.0.113.${this.#names.size + 1}`;
    this.#names.set(address, name);
    return address;
  }

  /** The addresses of the gateway's machine. */
  interfaces(): Record<string, readonly { readonly address: string; readonly internal: boolean }[]> {
    return { lan: [{ address: `192.168.${this.moves}.2`, internal: false }] };
  }

  isTaken(address: string): boolean {
    const there = this.#listeners.get(address);
    return there !== undefined && !there.owner.dead;
  }

  /** What the system does with connections that a process has not accepted when it ends. */
  leave(owner: Owner, how: "killed" | "without power"): void {
    for (const end of this.#arriving) {
      if (end.owner !== owner) continue;
      this.#arriving.delete(end);
      if (how === "killed") end.reset();
      else end.vanish();
    }
  }

  listen(address: string, owner: Owner, accept: Acceptor): () => void {
    const listener = { owner, accept };
    this.#listeners.set(address, listener);
    return () => {
      if (this.#listeners.get(address) === listener) this.#listeners.delete(address);
    };
  }

  /** Calls `done` with this side's end, or with the code of the error. For a silent address it is never called. */
  connect(target: string, from: { name: string; owner: Owner }, done: (result: End | string) => void): void {
    const number = ++this.#count;
    const weather = this.weatherOf(`${from.name} ${number}`);
    const port = target.slice(target.lastIndexOf(":"));
    const place = target.slice(0, -port.length);
    if (place === SILENT_ADDRESS) return;
    const host = this.#names.get(place) ?? place;
    const address = host + port;
    const found = this.lost.get(host);
    const trouble = found === "bad certificate" ? undefined : found;
    if (trouble === "silent") return;
    const { scheduler } = this;
    scheduler.after(2 * weather.latency, from.owner, `${from.name} dials ${address}`, () => {
      const there = this.#listeners.get(address);
      if (trouble !== undefined || there === undefined || there.owner.dead) {
        done(trouble ?? "ECONNREFUSED");
        return;
      }
      const near: End = new End(this, `${from.name}#${number}`, from.owner, weather);
      const far = new End(this, `${address}#${number}`, there.owner, weather);
      near.hasCertificate = found === undefined;
      near.peer = far;
      far.peer = near;
      this.#arriving.add(far);
      scheduler.after(weather.latency >> 1, there.owner, `${address} accepts #${number}`, () => {
        this.#arriving.delete(far);
        if (!far.closed) there.accept(far);
      });
      done(near);
    });
  }
}
