// `Bun.listen` and `Bun.connect` of a simulated process. They behave as test/lib/http1/runtime.test.ts proves of the real
// runtime.

import { fail } from "./files.ts";
import type { End, Network } from "./network.ts";
import type { Owner } from "./scheduler.ts";

/** Those of Bun's handlers that the gateway uses. */
export interface Handlers {
  open?(socket: SimSocket): void;
  handshake?(socket: SimSocket, authorized: boolean, error: Error | null): void;
  data?(socket: SimSocket, bytes: Buffer): void;
  drain?(socket: SimSocket): void;
  end?(socket: SimSocket): void;
  close?(socket: SimSocket, error?: unknown): void;
  error?(socket: SimSocket, error: unknown): void;
  connectError?(socket: SimSocket | null, error: unknown): void;
}

/** The process: its file descriptors, and the points at which it may die. */
export interface SocketHost extends Owner {
  readonly network: Network;
  /** Throws EMFILE. */
  takeFile(): number;
  freeFile(fd: number): void;
  readonly sockets: Set<SimSocket>;
  /** A point at which the process may be killed. */
  step(what: string): void;
  hasRoom(): boolean;
  readonly machine: { accuse(check: string, text: string): void };
}

export class SimSocket {
  data: unknown = undefined;
  readonly fd: number;
  authorized = false;
  readonly remoteAddress = "192.0.2.1";
  readonly #host: SocketHost;
  readonly #end: End;
  readonly #handlers: Handlers;
  #open = true;

  constructor(host: SocketHost, end: End, handlers: Handlers) {
    this.#host = host;
    this.#end = end;
    this.#handlers = handlers;
    this.fd = host.takeFile();
    host.sockets.add(this);
    end.ears = {
      data: (bytes) => this.#call(() => handlers.data?.(this, bytes)),
      drain: () => this.#call(() => handlers.drain?.(this)),
      finished: () => {
        handlers.end?.(this);
        // allowHalfOpen is off: when the other side ends, the connection ends.
        this.#end.fin();
        this.#close(undefined);
      },
      lost: () => this.#close(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })),
    };
  }

  get name(): string {
    return this.#end.name;
  }

  get bytesWritten(): number {
    return this.#end.written;
  }

  write(bytes: Uint8Array | string, offset = 0, length?: number): number {
    const whole = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
    if (!this.#open) return -1;
    this.#host.step(`write to ${this.name}`);
    if (isRequest(whole, offset)) this.#checkFresh();
    return this.#end.write(whole.subarray(offset, offset + (length ?? whole.length - offset)));
  }

  /** Right before a connection is used again, the gateway looks whether something has come on it. */
  #checkFresh(): void {
    const there = this.#end.beginRequest();
    if (there !== "nothing")
      this.#host.machine.accuse(
        "reuse",
        `A request was sent on ${this.name}, although ${there === "end" ? "its end" : "something that nobody requested"} had come before.`,
      );
  }

  shutdown(): void {
    if (!this.#open) return;
    this.#host.step(`shutdown of ${this.name}`);
    this.#end.fin();
  }

  /** The system still sends what was written. */
  end(): void {
    if (!this.#open) return;
    this.#host.step(`end of ${this.name}`);
    this.#end.abandon();
    this.#close(undefined);
  }

  terminate(): void {
    if (!this.#open) return;
    this.#host.step(`reset of ${this.name}`);
    this.#end.reset();
    this.#close(undefined);
  }

  /** The system's `read` on a socket that does not block. */
  readByte(): number {
    const found = this.#end.readByte();
    if (found === "nothing") throw fail("EAGAIN", "read");
    if (found === "reset") throw fail("ECONNRESET", "read");
    return found === "byte" ? 1 : 0;
  }

  pause(): void {
    this.#end.setReading(false);
  }

  resume(): void {
    this.#end.setReading(true);
  }

  /** Both sides go on in plain text: what TLS does to bytes is not simulated. */
  shakeHands(): void {
    if (!this.#open) return;
    this.authorized = this.#end.hasCertificate;
    const error = this.authorized ? null : new Error("certificate has expired");
    this.#handlers.handshake?.(this, this.authorized, error);
  }

  getTLSTicket(): Buffer | undefined {
    return this.authorized ? this.getSession() : undefined;
  }

  getSession(): Buffer {
    return Buffer.from(this.name);
  }

  setSession(): void {}

  setKeepAlive(): boolean {
    return true;
  }

  setNoDelay(): boolean {
    return true;
  }

  /** The process is dead, so none of its handlers is called. */
  abandon(how: "killed" | "without power"): void {
    if (how === "killed") this.#end.abandon();
    else this.#end.vanish();
  }

  /** If a handler throws, the runtime calls the error handler. */
  #call(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (this.#host.dead || this.#handlers.error === undefined) throw error;
      this.#handlers.error(this, error);
    }
  }

  #close(error: unknown): void {
    if (!this.#open) return;
    this.#open = false;
    this.#host.freeFile(this.fd);
    this.#host.sockets.delete(this);
    this.#handlers.close?.(this, error);
  }
}

function isRequest(bytes: Uint8Array, from: number): boolean {
  const start = Buffer.from(bytes.subarray(from, from + 5)).toString("latin1");
  return start.startsWith("POST ") || start.startsWith("GET ");
}

interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  readonly socket: Handlers;
}

const RETRY_ACCEPT_US = 10_000;
const FIRST_FREE_PORT = 40_000;

export function makeListen(host: SocketHost) {
  return ({ hostname, port, socket }: ListenOptions): { port: number; stop(closeAll?: boolean): void } => {
    const chosen = port === 0 ? FIRST_FREE_PORT : port;
    const address = `${hostname}:${chosen}`;
    if (host.network.isTaken(address))
      throw Object.assign(new Error(`Failed to listen at ${address}`), { code: "EADDRINUSE" });
    const fd = host.takeFile();
    const accept = (end: End): void => {
      if (!host.hasRoom()) {
        // The system lets it wait until a file descriptor is free.
        host.network.scheduler.after(RETRY_ACCEPT_US, host, "accepts later", () => accept(end));
        return;
      }
      socket.open?.(new SimSocket(host, end, socket));
    };
    const stop = host.network.listen(address, host, accept);
    let open = true;
    return {
      port: chosen,
      stop: () => {
        if (!open) return;
        open = false;
        host.freeFile(fd);
        stop();
      },
    };
  };
}

const HANDSHAKE_US = 4000;

interface ConnectOptions {
  readonly hostname: string;
  readonly port: number;
  readonly data?: unknown;
  readonly socket: Handlers;
  readonly tls?: unknown;
}

export function makeConnect(host: SocketHost) {
  return ({ hostname, port, data, socket, tls }: ConnectOptions): Promise<SimSocket> => {
    const { promise, resolve, reject } = Promise.withResolvers<SimSocket>();
    const fail = (code: string): void => {
      const error = Object.assign(new Error(`Failed to connect (${code})`), { code });
      socket.connectError?.(null, error);
      reject(error);
    };
    if (!host.hasRoom()) {
      fail("EMFILE");
      return promise;
    }
    host.network.connect(`${hostname}:${port}`, { name: host.name, owner: host }, (result) => {
      if (typeof result === "string") {
        fail(result);
        return;
      }
      if (!host.hasRoom()) {
        result.reset();
        fail("EMFILE");
        return;
      }
      const connected = new SimSocket(host, result, socket);
      connected.data = data;
      socket.open?.(connected);
      resolve(connected);
      if (tls !== undefined)
        host.network.scheduler.after(HANDSHAKE_US, host, "TLS handshake", () => connected.shakeHands());
    });
    return promise;
  };
}
