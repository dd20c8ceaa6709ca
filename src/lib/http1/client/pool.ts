// The connections to one origin. The idle connection that was used last is taken first. Without one, a new connection
// is dialled.

import type { PendingExchange } from "./pending-exchange.ts";
import { Dial } from "./dial.ts";
import type { Origin } from "../types.ts";
import { UpstreamConnection, type ConnectionOwner } from "./upstream-connection.ts";

const MAX_IDLE_CONNECTIONS = 512;

export class Pool implements ConnectionOwner {
  readonly #origin: Origin;
  readonly #idle: UpstreamConnection[] = [];
  readonly #open = new Set<UpstreamConnection>();
  #closed = false;
  dialled = 0;
  reused = 0;
  retried = 0;

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  get open(): number {
    return this.#open.size;
  }

  get idle(): number {
    return this.#idle.length;
  }

  send(exchange: PendingExchange): void {
    const connection = this.#takeIdle();
    if (connection === undefined) {
      this.#dial(exchange);
      return;
    }
    this.reused++;
    connection.send(exchange);
  }

  #takeIdle(): UpstreamConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isUsable) return connection;
      connection.abandon();
    }
  }

  /** Closes idle connections. A busy connection closes when its exchange ends. */
  close(): void {
    this.#closed = true;
    while (this.#idle.length > 0) this.#idle.pop()?.abandon();
  }

  release(connection: UpstreamConnection, idleMs: number): void {
    if (this.#closed || this.#idle.length >= MAX_IDLE_CONNECTIONS) {
      connection.abandon();
      return;
    }
    this.#idle.push(connection);
    connection.becomeIdle(idleMs);
  }

  forget(connection: UpstreamConnection): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  retry(exchange: PendingExchange): void {
    this.retried++;
    this.#dial(exchange);
  }

  #dial(exchange: PendingExchange): void {
    this.dialled++;
    const dial = new Dial({
      origin: this.#origin,
      connectMs: exchange.deadlines.connectMs,
      connected: (socket) => {
        const connection = new UpstreamConnection(socket, this);
        this.#open.add(connection);
        connection.send(exchange);
        return connection;
      },
      failed: (kind, message, cause) => exchange.fail(kind, message, false, cause),
    });
    exchange.connection = { awaitBytes() {}, pause() {}, resume() {}, abandon: () => dial.cancel() };
  }
}
