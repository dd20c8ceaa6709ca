// One request to an upstream, from `send` to the end of its response. The caller holds this object, and a connection, or
// the dial for one, works on it. It passes on what arrives, and nothing after the end or a fault.

import {
  UpstreamFault,
  type Deadlines,
  type FaultKind,
  type ResponseListener,
  type SentRequest,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../../http/upstream.ts";

/** What a request asks of its connection, or of the dial for one. */
export interface RequestConnection {
  pause(): void;
  resume(): void;
  /** Closes the connection at once. */
  abandon(): void;
}

export class RunningRequest implements SentRequest {
  readonly method: string;
  /** The request's head as bytes for the wire. The body follows it. */
  readonly requestHead: string;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  reused = false;
  connection: RequestConnection | null = null;
  /** True once a connection has started to send it. */
  sent = false;
  /** The head of its response has arrived. */
  begun = false;
  /** The listener cannot take more now. */
  paused = false;
  readonly #listener: ResponseListener;
  #ended = false;

  constructor(request: UpstreamRequest, requestHead: string, listener: ResponseListener) {
    this.method = request.method;
    this.requestHead = requestHead;
    this.body = request.body;
    this.deadlines = request.deadlines;
    this.#listener = listener;
  }

  pause(): void {
    if (this.paused || this.#ended) return;
    this.paused = true;
    this.connection?.pause();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.connection?.resume();
  }

  cancel(): void {
    this.fail(this.sent ? "cancelled" : "withdrawn", "the gateway cancelled the request", false);
  }

  // Called by the connection.

  begin(response: UpstreamResponse): void {
    this.begun = true;
    this.#listener.begin(response);
  }

  /** The upstream may have received the request, and it is sent a second time. */
  reportResend(): void {
    this.#listener.resent();
  }

  receive(bytes: Buffer): void {
    if (!this.#ended) this.#listener.receive(bytes);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.connection = null;
    this.#listener.end();
  }

  fail(kind: FaultKind, message: string, answered: boolean, cause?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    const { connection } = this;
    this.connection = null;
    connection?.abandon();
    this.#listener.fail(new UpstreamFault(kind, message, answered || this.begun, cause));
  }
}
