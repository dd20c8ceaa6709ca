// The connections to one origin: those at rest, last used first, and the
// dialling of new ones. What this file does not own: what an origin is to the
// caller (client.ts).

import type { PendingExchange } from "./pending-exchange.ts";
import { Dial } from "./dial.ts";
import type { Origin } from "../types.ts";
import { UpstreamConnection, type WireOwner } from "./upstream-connection.ts";

const MAX_IDLE = 512;

export class Pool implements WireOwner {
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

  carry(call: PendingExchange): void {
    const wire = this.#takeIdle();
    if (wire === undefined) {
      this.#dial(call);
      return;
    }
    this.reused++;
    wire.carry(call);
  }

  #takeIdle(): UpstreamConnection | undefined {
    for (;;) {
      const wire = this.#idle.pop();
      if (wire === undefined || wire.isUsable) return wire;
      wire.abandon();
    }
  }

  /** Drops what is at rest; what runs ends with its call. */
  close(): void {
    this.#closed = true;
    while (this.#idle.length > 0) this.#idle.pop()?.abandon();
  }

  release(wire: UpstreamConnection, idleMs: number): void {
    if (this.#closed || this.#idle.length >= MAX_IDLE) {
      wire.abandon();
      return;
    }
    this.#idle.push(wire);
    wire.rest(idleMs);
  }

  forget(wire: UpstreamConnection): void {
    this.#open.delete(wire);
    const at = this.#idle.indexOf(wire);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  retry(call: PendingExchange): void {
    this.retried++;
    this.#dial(call);
  }

  #dial(call: PendingExchange): void {
    this.dialled++;
    const dial = new Dial({
      origin: this.#origin,
      connectMs: call.deadlines.connectMs,
      connected: (socket) => {
        const wire = new UpstreamConnection(socket, this);
        this.#open.add(wire);
        wire.carry(call);
        return wire;
      },
      failed: (kind, message, cause) => call.fail(kind, message, false, cause),
    });
    call.carrier = { awaitBytes() {}, pause() {}, resume() {}, abandon: () => dial.cancel() };
  }
}
