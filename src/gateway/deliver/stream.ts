// A response that goes to the client as it comes: without secrets, at the client's pace, and shown to the meter.

import type { UpstreamFault } from "../../lib/http/faults.ts";
import type { BodyListener } from "../../lib/http/upstream.ts";
import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { StreamRedactor } from "../intake/secrets.ts";

export abstract class ResponseStream implements BodyListener {
  protected readonly r: Request;
  protected readonly gateway: Gateway;
  readonly #redactor: StreamRedactor;
  #isOver = false;
  readonly #resume = (): void => this.r.upstream.resume();

  constructor(r: Request, gateway: Gateway) {
    this.r = r;
    this.gateway = gateway;
    this.#redactor = new StreamRedactor(r.secrets);
  }

  /** Sends a piece without secrets to the client, and shows it to the meter. Returns what `Exchange.write` returns. */
  protected abstract send(piece: Uint8Array): Promise<void> | null;

  /** Ends the response. */
  protected abstract close(fault: UpstreamFault | null): void;

  /** Returns a promise if the client reads slowly. The upstream is paused then. */
  pass(bytes: Uint8Array): Promise<void> | null {
    return this.#forward(this.#redactor.pass(bytes));
  }

  receive(bytes: Buffer): void {
    void this.pass(bytes);
  }

  end(): void {
    this.#end(null);
  }

  fail(fault: UpstreamFault): void {
    this.#end(fault);
  }

  #end(fault: UpstreamFault | null): void {
    void this.#forward(this.#redactor.end());
    if (this.#isOver) return;
    this.#isOver = true;
    this.close(fault);
  }

  #forward(piece: Uint8Array): Promise<void> | null {
    if (piece.length === 0 || this.#isOver) return null;
    const slow = this.send(piece);
    if (slow !== null) {
      this.r.upstream.pause();
      void slow.then(this.#resume);
    }
    return slow;
  }
}
