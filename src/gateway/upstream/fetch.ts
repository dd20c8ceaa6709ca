// The gateway's own small requests: the whole response as a promise.

import type { UpstreamFault } from "../../lib/http/faults.ts";
import type {
  BodyListener,
  Deadlines,
  ResponseListener,
  SentRequest,
  Upstream,
  UpstreamRequest,
  UpstreamResponse,
} from "../../lib/http/upstream.ts";
import { joinChunks } from "./answer.ts";
import { type BodyDecoder, openDecoder } from "./decode.ts";

/** Nobody waits longer for such a request. */
export function hurry({ connectMs, firstByteMs, idleMs }: Deadlines, mostMs: number): Deadlines {
  const limit = (ms: number): number => Math.min(ms, mostMs);
  return { connectMs: limit(connectMs), firstByteMs: limit(firstByteMs), idleMs: limit(idleMs) };
}

export interface Fetched {
  readonly response: UpstreamResponse;
  readonly body: Uint8Array;
  /** The body is longer than the limit, and its end is missing. */
  readonly isCut: boolean;
}

/** Rejects with UpstreamFault. `maxBytes` 0: the body is not needed. */
export function fetchWhole(client: Upstream, request: UpstreamRequest, maxBytes: number): Promise<Fetched> {
  return new Fetch(client, request, maxBytes).fetched;
}

class Fetch implements ResponseListener {
  readonly #maxBytes: number;
  readonly #sent: SentRequest;
  readonly #done = Promise.withResolvers<Fetched>();
  #response: UpstreamResponse | null = null;
  #decoder: BodyDecoder | null = null;
  readonly #chunks: Uint8Array[] = [];
  #size = 0;

  constructor(client: Upstream, request: UpstreamRequest, maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#sent = client.send(request, this);
  }

  get fetched(): Promise<Fetched> {
    return this.#done.promise;
  }

  begin(response: UpstreamResponse): void {
    this.#response = response;
    try {
      this.#decoder = openDecoder(response);
      this.#decoder?.start(this.#sent, this.#body);
      if (this.#maxBytes === 0) this.#cut();
    } catch (fault) {
      this.#done.reject(fault);
      this.#sent.cancel();
    }
  }

  resent(): void {}

  receive(bytes: Buffer): void {
    (this.#decoder ?? this.#body).receive(bytes);
  }

  end(): void {
    (this.#decoder ?? this.#body).end();
  }

  fail(fault: UpstreamFault): void {
    (this.#decoder ?? this.#body).fail(fault);
  }

  readonly #body: BodyListener = {
    receive: (bytes) => {
      this.#chunks.push(bytes);
      this.#size += bytes.length;
      if (this.#size >= this.#maxBytes) this.#cut();
    },
    end: () => this.#resolve(false),
    fail: (fault) => this.#done.reject(fault),
  };

  #cut(): void {
    this.#resolve(true);
    this.#sent.cancel();
  }

  #resolve(isCut: boolean): void {
    const response = this.#decoder?.response ?? this.#response;
    if (response !== null) this.#done.resolve({ response, body: joinChunks(this.#chunks), isCut });
  }
}
