// Both ends of a WebSocket: messages in both directions, back-pressure, and the closing handshake.

import type { Closing, Message, PeerListener, WebSocketPeer } from "../../../src/lib/http/web-socket.ts";
import { type Network, Pipe, type Weather } from "./network.ts";
import { NATURE, type Owner } from "./scheduler.ts";

const LOST: Closing = { code: 1006, reason: "" };
const BROKEN: Closing = { code: 1002, reason: "a frame is invalid" };
/** How long the other side may take to answer a close frame. */
const CLOSE_WAIT_US = 5_000_000;

interface Side {
  readonly owner: Owner;
  /** A point at which the process may be killed. */
  readonly step: () => void;
  /** Nothing more happens here. */
  readonly ended: () => void;
}

export const OUTSIDE: Side = { owner: NATURE, step: () => {}, ended: () => {} };

export class SimPeer implements WebSocketPeer {
  open = true;
  readonly #net: Network;
  readonly #side: Side;
  readonly #inbox: Pipe;
  other!: SimPeer;
  #listener: PeerListener | null = null;
  #isOver = false;

  private constructor(net: Network, name: string, weather: Weather, side: Side, from: Owner) {
    this.#net = net;
    this.#side = side;
    this.#inbox = new Pipe(net, {
      name,
      from,
      to: side.owner,
      weather,
      isWhole: true,
      data: (bytes) => this.#receive(bytes),
      drained: () => this.other.#drained(),
    });
    this.#inbox.setReading(false);
  }

  static connect(
    net: Network,
    name: string,
    weather: Weather,
    sides: readonly [Side, Side],
  ): [SimPeer, SimPeer] {
    const near = new SimPeer(net, `${name} down`, weather, sides[0], sides[1].owner);
    const far = new SimPeer(net, `${name} up`, weather, sides[1], sides[0].owner);
    near.other = far;
    far.other = near;
    return [near, far];
  }

  start(listener: PeerListener): void {
    this.#listener = listener;
    if (this.#isOver) listener.closed(LOST);
    else this.#inbox.setReading(true);
  }

  get listener(): PeerListener | null {
    return this.#listener;
  }

  get unsentBytes(): number {
    return this.other.#inbox.unsent;
  }

  send({ kind, bytes }: Message): boolean {
    if (!this.open) return true;
    this.#side.step();
    return this.other.#inbox.write(Buffer.concat([Buffer.from(kind === "text" ? "t" : "b"), bytes]));
  }

  pause(): void {
    this.#inbox.setReading(false);
  }

  resume(): void {
    this.#inbox.setReading(true);
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#side.step();
    this.open = false;
    this.resume();
    this.other.#inbox.mark(() => this.other.#answerClose(closing));
    this.#net.scheduler.after(CLOSE_WAIT_US, this.#side.owner, "no answer to a close frame", () =>
      this.#giveUp(),
    );
  }

  /** Without a closing handshake: what is in flight may be lost. */
  reset(): void {
    if (this.#isOver) return;
    this.#side.step();
    this.other.#inbox.break(() => this.other.#end(LOST));
    this.#end(LOST);
  }

  /** Without a closing handshake, after everything that was sent. */
  leave(): void {
    if (this.#isOver) return;
    this.other.#inbox.mark(() => this.other.#end(LOST));
    this.#end(LOST);
  }

  /** The other side was never there. */
  sever(): void {
    this.#end(LOST);
  }

  /** Sends what is not a frame. */
  breakProtocol(): void {
    this.other.#inbox.mark(() => {
      this.#inbox.mark(() => this.#end(BROKEN));
      this.other.#end(BROKEN);
    });
  }

  /** Its process is dead. After a power cut, the other side learns of it later. */
  abandon(how: "killed" | "without power"): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#inbox.close();
    if (how === "killed") this.other.#inbox.break(() => this.other.#end(LOST));
    else this.other.#inbox.close();
  }

  #receive(bytes: Buffer): void {
    const kind = bytes[0] === 116 ? "text" : "binary";
    this.#listener?.message({ kind, bytes: bytes.subarray(1) }, null);
  }

  #drained(): void {
    if (!this.#isOver) this.#listener?.drained();
  }

  #answerClose(closing: Closing): void {
    if (this.#isOver) return;
    this.open = false;
    this.other.#inbox.mark(() => this.other.#end(closing));
    this.#end(closing);
  }

  /** A reset would discard what a slow reader has not read yet. */
  #giveUp(): void {
    if (this.#isOver) return;
    this.other.#inbox.mark(() => this.other.#end(LOST));
    this.#end(LOST);
  }

  #end(closing: Closing): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.open = false;
    this.#inbox.close();
    this.#side.ended();
    this.#listener?.closed(closing);
  }
}
