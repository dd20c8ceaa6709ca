// A tunnel: the bytes of two sockets, each to the other, and nobody looks inside. A side that reads slowly pauses the other.

import type { Socket } from "bun";
import { Outbox } from "../../../lib/http1/packets.ts";
import { SocketFlow } from "../../../lib/http1/socket-flow.ts";

export class TunnelEnd {
  readonly #socket: Socket<unknown>;
  readonly #flow: SocketFlow;
  readonly #outbox = new Outbox();
  #peer: TunnelEnd | null = null;
  #isEnding = false;

  constructor(socket: Socket<unknown>) {
    this.#socket = socket;
    this.#flow = new SocketFlow(socket);
  }

  static join(one: TunnelEnd, other: TunnelEnd): void {
    one.#peer = other;
    other.#peer = one;
  }

  receive(chunk: Buffer): void {
    this.#flow.noteRead(chunk.length);
    if (this.#peer?.write(chunk) === false) this.#flow.hold();
  }

  write(bytes: Uint8Array): boolean {
    return this.#outbox.send(this.#socket, "", bytes, "");
  }

  drain(): void {
    if (!this.#outbox.flush(this.#socket)) return;
    if (this.#isEnding) this.#socket.end();
    else this.#peer?.resume();
  }

  resume(): void {
    this.#flow.release();
  }

  /** Its socket has closed: the other side gets what is left, and then its end. */
  closed(): void {
    this.#outbox.clear();
    this.#peer?.end();
    this.#peer = null;
  }

  end(): void {
    this.#peer = null;
    this.#isEnding = true;
    if (this.#outbox.size === 0) this.#socket.end();
  }
}
