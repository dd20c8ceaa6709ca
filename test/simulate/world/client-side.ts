// The gateway's server in the simulated world. It hands exchanges to the gateway, and carries the replies to the clients.

import type { Exchange, Listen, ListenOptions, Server } from "../../../src/lib/http/exchange.ts";
import type { Field, Fields, SentFields } from "../../../src/lib/http/fields.ts";
import type { Slices } from "../../../src/lib/json/slices.ts";
import { Pipe, type Weather } from "./network.ts";
import type { Connection, SimProcess } from "./process.ts";
import { NATURE } from "./scheduler.ts";

/** A client's request. */
export interface Call {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  /** False: the rest of the body never comes. */
  readonly isBodyWhole: boolean;
}

export interface ClientEars {
  /** Called if no gateway listens. */
  refused(): void;
  begin(status: number, fields: Map<string, string>): void;
  data(bytes: Buffer): void;
  /** Called when the reply is complete. */
  ended(): void;
  /** Called when the connection has broken. */
  lost(): void;
}

/** The time after which the gateway gives up a body that has not come. */
const BODY_US = 60_000_000;

export function makeListen(host: SimProcess): Listen {
  return (options) => new SimServer(host, options);
}

export class SimServer implements Server {
  readonly port: number;
  readonly owner: SimProcess;
  readonly exchanges = new Set<SimExchange>();
  readonly options: ListenOptions;
  stopping = false;
  readonly #ended = Promise.withResolvers<void>();
  readonly #close: () => void;

  constructor(owner: SimProcess, options: ListenOptions) {
    this.owner = owner;
    this.port = options.port;
    this.options = options;
    this.#close = owner.network.listen(this);
  }

  accept(call: Call, weather: Weather, ears: ClientEars): SimExchange {
    return new SimExchange(this, call, weather, ears);
  }

  stop(): Promise<void> {
    this.#close();
    this.stopping = true;
    this.settleStop();
    return this.#ended.promise;
  }

  stopNow(): void {
    this.#close();
    this.stopping = true;
    for (const exchange of this.exchanges) exchange.terminate();
    this.settleStop();
  }

  settleStop(): void {
    if (this.stopping && this.exchanges.size === 0) this.#ended.resolve();
  }
}

export class SimExchange implements Exchange, Connection {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  readonly fields: Fields;
  begun = false;
  gone = false;
  readonly #server: SimServer;
  readonly #host: SimProcess;
  readonly #call: Call;
  readonly #weather: Weather;
  readonly #ears: ClientEars;
  readonly #pipe: Pipe;
  #body: PromiseWithResolvers<Uint8Array> | null = null;
  replyFields: readonly Field[] = [];
  #head: (() => void) | null = null;
  #onGone: (() => void)[] = [];
  #unsent: PromiseWithResolvers<void> | null = null;
  #hasEnded = false;
  #isOver = false;

  constructor(server: SimServer, call: Call, weather: Weather, ears: ClientEars) {
    const { owner: host } = server;
    this.#server = server;
    this.#host = host;
    this.#call = call;
    this.#weather = weather;
    this.#ears = ears;
    this.name = call.name;
    this.method = call.method;
    this.target = call.target;
    this.fields = new host.seam.Fields().addAll(call.fields);
    this.#pipe = new Pipe(host.network, {
      name: call.name,
      from: host,
      to: NATURE,
      weather,
      data: (bytes) => ears.data(bytes),
      drained: () => this.#reportSent(),
    });
    server.exchanges.add(this);
    host.connections.add(this);
    host.scheduler.after(weather.latency >> 1, host, `${this.name} arrives`, () => {
      if (!this.#isOver) this.#start();
    });
  }

  #start(): void {
    const { onExchange, onError } = this.#server.options;
    try {
      onExchange(this);
    } catch (error) {
      this.reset();
      onError(error);
    }
  }

  // Called by the gateway.

  get sent(): Promise<void> {
    return this.#unsent?.promise ?? Promise.resolve();
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }

  readBody(limit: number): Promise<Uint8Array> {
    const { seam, scheduler } = this.#host;
    const { body, isBodyWhole } = this.#call;
    if (this.gone) return Promise.reject(new seam.ClientGone("the client has left"));
    if (body.length > limit) return Promise.reject(new seam.BodyTooLarge("the body is too large"));
    // The gateway gets a copy, because it may change the bytes.
    if (isBodyWhole) return Promise.resolve(Buffer.from(body));
    this.#body = Promise.withResolvers();
    scheduler.after(BODY_US, this.#host, `the body of ${this.name} does not come`, () => this.terminate());
    return this.#body.promise;
  }

  answer(status: number, fields: SentFields, body: Uint8Array | string): void {
    this.begin(status, fields);
    this.end(Buffer.from(body));
  }

  begin(status: number, fields: SentFields): void {
    if (this.begun) throw new Error("the reply has already begun");
    this.begun = true;
    const all = new Map([...fields, ...this.replyFields]);
    this.#head = () => this.#ears.begin(status, all);
  }

  write(chunk: Uint8Array): Promise<void> | null {
    if (this.gone || this.#hasEnded || chunk.length === 0) return null;
    this.#sendHead();
    if (!this.#pipe.write(chunk)) this.#unsent ??= Promise.withResolvers();
    return this.#unsent?.promise ?? null;
  }

  /** The head of a reply waits for the body's first bytes, or for the end of the reply. */
  #sendHead(): void {
    this.#host.step(`write to ${this.name}`);
    if (this.#head !== null) this.#pipe.mark(this.#head);
    this.#head = null;
  }

  end(rest: Uint8Array | Slices = Buffer.alloc(0)): void {
    if (this.gone || this.#hasEnded) return;
    if (!this.begun) throw new Error("a reply without a head");
    this.#sendHead();
    for (const part of rest instanceof Uint8Array ? [rest] : rest) void this.write(Buffer.from(part));
    this.#hasEnded = true;
    this.#pipe.mark(() => {
      this.#ears.ended();
      this.#later("has its reply", () => this.#close());
    });
  }

  reset(): void {
    // Calls of a dead process have no effect.
    if (this.gone || this.#hasEnded || this.#host.dead) return;
    this.#host.step(`reset of ${this.name}`);
    this.#hasEnded = true;
    this.#pipe.break(() => this.#ears.lost());
    this.#close();
  }

  acceptWebSocket(): boolean {
    throw new Error("nobody here asks for a WebSocket");
  }

  onGone(listener: () => void): void {
    if (this.gone) listener();
    else if (!this.#hasEnded) this.#onGone.push(listener);
  }

  // Called by the client.

  leave(): void {
    this.#pipe.close();
    this.#later("has left", () => this.#leave());
  }

  setReading(isReading: boolean): void {
    this.#pipe.setReading(isReading);
  }

  // Called by the server and the process.

  terminate(): void {
    this.#pipe.break(() => this.#ears.lost());
    this.#leave();
  }

  abandon(how: "killed" | "without power"): void {
    if (how === "killed") this.#pipe.break(() => this.#ears.lost());
    else this.#pipe.close();
  }

  #leave(): void {
    if (this.#isOver) return;
    if (!this.#hasEnded) {
      this.gone = true;
      this.#body?.reject(new this.#host.seam.ClientGone("the client has left"));
      for (const listener of this.#onGone.splice(0)) listener();
    }
    this.#reportSent();
    this.#close();
  }

  #reportSent(): void {
    this.#unsent?.resolve();
    this.#unsent = null;
  }

  #later(what: string, run: () => void): void {
    this.#host.scheduler.after(this.#weather.latency, this.#host, `${this.name} ${what}`, run);
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.connections.delete(this);
    this.#server.exchanges.delete(this);
    this.#server.settleStop();
  }
}
