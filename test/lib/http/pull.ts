// Reads what the HTTP client pushes, piece by piece: tests wait for what they expect.

import type { UpstreamFault } from "../../../src/lib/http/faults.ts";
import type {
  ResponseListener,
  SentRequest,
  Upstream,
  UpstreamRequest,
  UpstreamResponse,
} from "../../../src/lib/http/upstream.ts";
import type { Fields } from "../../../src/lib/http/fields.ts";

/** A response whose body waits here until it is read. */
export class PulledResponse implements UpstreamResponse {
  readonly status: number;
  readonly fields: Fields;
  readonly length: number | null;
  readonly closeDelimited: boolean;
  readonly #head: UpstreamResponse;
  readonly #pulled: PulledRequest;

  constructor(head: UpstreamResponse, pulled: PulledRequest) {
    this.status = head.status;
    this.fields = head.fields;
    this.length = head.length;
    this.closeDelimited = head.closeDelimited;
    this.#head = head;
    this.#pulled = pulled;
  }

  field(name: string): string | undefined {
    return this.#head.field(name);
  }

  get reused(): boolean {
    return this.#pulled.reused;
  }

  read(): Promise<Buffer | null> {
    return this.#pulled.read();
  }

  cancel(): void {
    this.#pulled.cancel();
  }
}

/** Pauses its upstream from its head on, while nobody reads. */
export class PulledRequest implements ResponseListener {
  readonly #head = Promise.withResolvers<PulledResponse>();
  readonly head = this.#head.promise;
  sent: SentRequest | null = null;
  readonly #onResend: () => void;
  readonly #unread: Buffer[] = [];
  #ended = false;
  #fault: UpstreamFault | null = null;
  #reading: PromiseWithResolvers<Buffer | null> | null = null;

  constructor(onResend: () => void = () => {}) {
    this.#onResend = onResend;
    this.head.catch(() => {}); // nobody may be waiting for it
  }

  get reused(): boolean {
    return this.sent?.reused === true;
  }

  cancel(): void {
    this.sent?.cancel();
  }

  read(): Promise<Buffer | null> {
    const first = this.#unread.shift();
    if (first !== undefined) return Promise.resolve(first);
    if (this.#ended) return Promise.resolve(null);
    if (this.#fault !== null) return Promise.reject(this.#fault);
    this.#reading = Promise.withResolvers();
    this.sent?.resume();
    return this.#reading.promise;
  }

  begin(response: UpstreamResponse): void {
    this.sent?.pause();
    this.#head.resolve(new PulledResponse(response, this));
  }

  resent(): void {
    this.#onResend();
  }

  receive(bytes: Buffer): void {
    const reading = this.#reading;
    this.#reading = null;
    if (reading === null) {
      this.#unread.push(bytes);
      return;
    }
    this.sent?.pause();
    reading.resolve(bytes);
  }

  end(): void {
    this.#ended = true;
    this.#reading?.resolve(null);
    this.#reading = null;
  }

  fail(fault: UpstreamFault): void {
    this.#fault = fault;
    this.#head.reject(fault);
    this.#reading?.reject(fault);
    this.#reading = null;
  }
}

/** What a test sends. */
export interface PullRequest extends UpstreamRequest {
  readonly onResend?: () => void;
}

export interface PullClient extends Omit<Upstream, "send"> {
  send(request: PullRequest): PulledRequest;
}

export function pullFrom(client: Upstream): PullClient {
  return {
    send: (request) => {
      const pulled = new PulledRequest(request.onResend);
      pulled.sent = client.send(request, pulled);
      return pulled;
    },
    openWebSocket: (request) => client.openWebSocket(request),
    keepWarm: (origins, expected) => client.keepWarm(origins, expected),
    close: () => client.close(),
    stats: () => client.stats(),
    statsOf: (origin) => client.statsOf(origin),
  };
}
