// Listens for clients and keeps track of their connections. Plain HTTP/1.1 only.

import type { Socket, SocketHandler } from "bun";
import { ClientConnection, type ServerContext } from "./client-connection.ts";
import { MAX_HEAD_BYTES } from "../head.ts";
import { hasFilesLeft, RESERVED_FILES } from "../shortage.ts";
import type { Exchange, ListenOptions, RequestRefusal, Server, ServerOptions } from "../../http/exchange.ts";

const IDLE_MS = 90_000;
const HEAD_MS = 60_000;
/** An agent on a machine that slept for a while can continue. */
const STALL_MS = 15 * 60_000;
/** Finds clients that vanished without closing. */
const KEEPALIVE_PROBE_MS = 60_000;

/** Serves the requests on the sockets that its handler gets. */
class ConnectionServer implements ServerContext {
  readonly maxHeadBytes: number;
  readonly idleMs: number;
  readonly headMs: number;
  readonly stallMs: number;
  stopping = false;
  readonly #options: ServerOptions;
  readonly #connections = new Set<ClientConnection>();
  readonly #stopped = Promise.withResolvers<void>();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.maxHeadBytes = options.maxHeadBytes ?? MAX_HEAD_BYTES;
    this.idleMs = options.idleMs ?? IDLE_MS;
    this.headMs = options.headMs ?? HEAD_MS;
    this.stallMs = options.stallMs ?? STALL_MS;
  }

  get open(): number {
    return this.#connections.size;
  }

  start(exchange: Exchange): void {
    try {
      this.#options.onExchange(exchange);
    } catch (error) {
      exchange.reset();
      this.#report(error);
    }
  }

  refuse(exchange: Exchange, refusal: RequestRefusal): void {
    const { onRefusal = answerInPlainText } = this.#options;
    try {
      onRefusal(exchange, refusal);
    } catch (error) {
      exchange.reset();
      this.#report(error);
    }
  }

  forget(connection: ClientConnection): void {
    this.#connections.delete(connection);
    this.#settleStop();
  }

  stop(): Promise<void> {
    if (!this.stopping) {
      this.stopping = true;
      for (const connection of this.#connections) connection.stop();
      this.#settleStop();
    }
    return this.#stopped.promise;
  }

  stopNow(): void {
    this.stopping = true;
    for (const connection of this.#connections) connection.terminate();
    this.#settleStop();
  }

  #settleStop(): void {
    if (this.stopping && this.#connections.size === 0) this.#stopped.resolve();
  }

  #report(error: unknown): void {
    if (this.#options.onError === undefined) reportError(error);
    else this.#options.onError(error);
  }

  readonly handler: SocketHandler<ClientConnection> = {
    open: (socket: Socket<ClientConnection>): void => {
      socket.setKeepAlive(true, KEEPALIVE_PROBE_MS);
      const connection = new ClientConnection(this, socket);
      socket.data = connection;
      this.#connections.add(connection);
      if (this.stopping) connection.stop();
      else if (!hasFilesLeft(socket, RESERVED_FILES)) connection.terminate();
    },
    data: (socket, chunk) => socket.data.receive(chunk),
    drain: (socket) => socket.data.drain(),
    close: (socket) => socket.data.closed(),
    error: (socket, error) => {
      this.#report(error);
      socket.data.terminate();
    },
  };
}

function answerInPlainText(exchange: Exchange, { status, message }: RequestRefusal): void {
  exchange.answer(status, [["content-type", "text/plain"]], `${message}\n`);
}

export function listen(options: ListenOptions): Server {
  const connections = new ConnectionServer(options);
  const socket = connections.handler;
  const listener: { stop(closeAll?: boolean): void; readonly port?: number } =
    "unix" in options
      ? Bun.listen({ unix: options.unix, socket })
      : Bun.listen({ hostname: options.hostname, port: options.port, socket });
  return {
    port: listener.port ?? 0,
    get open() {
      return connections.open;
    },
    stop() {
      if (!connections.stopping) listener.stop(false);
      return connections.stop();
    },
    stopNow() {
      if (!connections.stopping) listener.stop(false);
      connections.stopNow();
    },
  };
}
