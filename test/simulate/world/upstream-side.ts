// The gateway's HTTP client in the simulated world. It carries requests to the upstreams, and responses to the gateway.

import type {
  Answer,
  ClientStats,
  FaultKind,
  Origin,
  SentRequest,
  UpstreamFault,
  Upstream,
  UpstreamRequest,
} from "../../../src/lib/http/upstream.ts";
import type { Field } from "../../../src/lib/http/fields.ts";
import { Pipe, type Weather } from "./network.ts";
import type { Connection, SimProcess } from "./process.ts";
import { type Event, NATURE, type Owner } from "./scheduler.ts";

/** A request as its upstream gets it. */
export interface Arriving {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  readonly fields: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly sender: Owner;
  readonly sentAt: number;
  /** The upstream's side of the connection. */
  readonly reply: SimConnection;
}

export function makeUpstream(host: SimProcess): Upstream {
  return new SimUpstream(host);
}

class SimUpstream implements Upstream {
  readonly #host: SimProcess;
  readonly #running = new Set<SimConnection>();

  constructor(host: SimProcess) {
    this.#host = host;
  }

  send(request: UpstreamRequest): SentRequest {
    const { fields, body } = request;
    const connection = new SimConnection(this.#host, { ...request, fields: [...fields], body });
    this.#running.add(connection);
    connection.start(() => this.#running.delete(connection));
    return connection;
  }

  keepWarm(): void {}

  close(): void {}

  stats(): ClientStats {
    return { open: this.#running.size, idle: 0 };
  }
}

/** While the gateway has more unread chunks than this, nothing more is read from the upstream. */
const MAX_UNREAD_CHUNKS = 3;

/** Both ends of one request. What the upstream does at its end reaches the gateway's end later. */
class SimConnection implements SentRequest, Connection {
  readonly #reused: boolean;
  readonly #answer = Promise.withResolvers<Answer>();
  readonly #chunks: Buffer[] = [];
  #reader: PromiseWithResolvers<Buffer | null> | null = null;
  #fault: UpstreamFault | null = null;
  /** Called when the gateway has cancelled the request, or has died. */
  onLost: () => void = () => {};
  onDrained: () => void = () => {};
  readonly #host: SimProcess;
  readonly #sent: UpstreamRequest;
  readonly #name: string;
  readonly #weather: Weather;
  readonly #pipe: Pipe;
  #ended: () => void = () => {};
  #isSent = false;
  #hasBegun = false;
  #isOver = false;
  /** Whether the upstream knows that the request is over. */
  #isLost = false;
  #timer: Event | null = null;

  constructor(host: SimProcess, sent: UpstreamRequest) {
    const { name, weather } = host.network.open(`${host.name} to ${sent.origin.host}`);
    this.#host = host;
    this.#sent = sent;
    this.#name = name;
    this.#weather = weather;
    this.#reused = host.random.chance(500);
    this.#answer.promise.catch(() => {}); // nobody may be waiting
    this.#pipe = new Pipe(host.network, {
      name,
      from: NATURE,
      to: host,
      weather,
      data: (bytes) => this.#receive(bytes),
      drained: () => this.onDrained(),
    });
  }

  start(ended: () => void): void {
    this.#ended = ended;
    this.#host.step(`request ${this.#name}`);
    this.#host.connections.add(this);
    this.#dial(this.#sent.origin);
  }

  #dial({ host: name }: Origin): void {
    const { lost } = this.#host.network;
    const trouble = lost.get(name);
    const dialUs = this.#reused && trouble === undefined ? 1 : 2 * this.#weather.latency;
    if (trouble === "silent") {
      this.#watch(this.#sent.deadlines.connectMs, "connect_timeout");
    } else if (trouble !== undefined) {
      this.#later(dialUs, () => this.#fail("connect"));
    } else {
      this.#later(dialUs, () => this.#write());
    }
  }

  #write(): void {
    const { origin, method, target, fields, body, deadlines } = this.#sent;
    this.#host.step(`write to ${this.#name}`);
    this.#isSent = true;
    this.#watch(deadlines.firstByteMs, "first_byte_timeout");
    const { scheduler, network } = this.#host;
    const arriving: Arriving = {
      name: this.#name,
      method,
      target,
      fields: new Map(fields),
      body: Buffer.from(body ?? new Uint8Array(0)),
      sender: this.#host,
      sentAt: scheduler.now,
      reply: this,
    };
    const receive = network.upstreamAt(origin.host);
    scheduler.after(this.#weather.latency, NATURE, `${this.#name} arrives`, () => {
      // If the connection ended while the request was on its way, it may not have arrived whole.
      if (!this.#isOver || this.#host.random.chance(500)) receive(arriving);
    });
  }

  // Called by the upstream.

  /** How much of the body the gateway has got. */
  get bytesRead(): number {
    return this.#pipe.read;
  }

  get isGone(): boolean {
    return this.#isLost;
  }

  begin(status: number, fields: readonly Field[], length: number | null, closeDelimited: boolean): void {
    this.#pipe.mark(() => this.#begin(status, fields, length, closeDelimited));
  }

  /** Writes bytes of the answer. False: the upstream has to wait for `onDrained`. */
  write(bytes: Buffer): boolean {
    return this.#pipe.write(bytes);
  }

  end(): void {
    this.#pipe.mark(() => this.#end());
  }

  /** Breaks the answer. The bytes that were sent arrive first; with `atOnce`, only a random part of them. */
  fail(kind: FaultKind, atOnce: boolean): void {
    const fail = (): void => this.#fail(kind);
    if (atOnce) this.#pipe.break(fail);
    else this.#pipe.mark(fail);
  }

  // Called by the gateway.

  get answer(): Promise<Answer> {
    return this.#answer.promise;
  }

  cancel(): void {
    if (this.#isOver || this.#host.dead) return;
    this.#host.step(`cancel of ${this.#name}`);
    this.#chunks.length = 0;
    this.#fail(this.#isSent ? "cancelled" : "withdrawn");
  }

  abandon(): void {
    this.#isOver = true;
    this.#lose();
  }

  #begin(status: number, fields: readonly Field[], length: number | null, closeDelimited: boolean): void {
    const { seam } = this.#host;
    this.#hasBegun = true;
    this.#stopWatch();
    this.#answer.resolve({
      head: { status, fields: new seam.Fields().addAll(fields), length, closeDelimited },
      read: () => this.#read(),
      cancel: () => this.cancel(),
    });
  }

  #read(): Promise<Buffer | null> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) return Promise.resolve(chunk);
    if (this.#fault !== null) return Promise.reject(this.#fault);
    if (this.#isOver) return Promise.resolve(null);
    this.#reader = Promise.withResolvers();
    this.#pipe.setReading(true);
    this.#watch(this.#sent.deadlines.idleMs, "idle_timeout");
    return this.#reader.promise;
  }

  #receive(bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#reader === null) this.#chunks.push(bytes);
    if (this.#chunks.length > MAX_UNREAD_CHUNKS) this.#pipe.setReading(false);
    this.#reader?.resolve(bytes);
    this.#reader = null;
  }

  #end(): void {
    if (this.#isOver) return;
    this.#close();
    this.#reader?.resolve(null);
  }

  #fail(kind: FaultKind): void {
    if (this.#isOver) return;
    const hasBegun = this.#hasBegun;
    this.#close();
    const fault = new this.#host.seam.UpstreamFault(kind, `the simulated fault ${kind}`);
    this.#fault = fault;
    if (hasBegun) this.#reader?.reject(fault);
    else this.#answer.reject(fault);
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWatch();
    this.#pipe.close();
    this.#host.connections.delete(this);
    this.#ended();
    this.#lose();
  }

  #lose(): void {
    this.#host.scheduler.after(this.#weather.latency, NATURE, `${this.#name} is over`, () => {
      this.#isLost = true;
      this.onLost();
    });
  }

  #watch(ms: number, kind: FaultKind): void {
    this.#stopWatch();
    const { scheduler } = this.#host;
    const lateUs = this.#host.random.int(1000);
    this.#timer = scheduler.after(ms * 1000 + lateUs, this.#host, `${this.#name} ${kind}`, () => {
      // A body's silence counts only while the gateway reads the body.
      if (kind !== "idle_timeout" || this.#reader !== null) this.#fail(kind);
    });
  }

  #stopWatch(): void {
    if (this.#timer !== null) this.#host.scheduler.cancel(this.#timer);
    this.#timer = null;
  }

  #later(us: number, run: () => void): void {
    this.#host.scheduler.after(us, this.#host, this.#name, () => {
      if (!this.#isOver) run();
    });
  }
}
