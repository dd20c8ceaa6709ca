// Gives a request to another server, such as the gateway, and its response to the client as it comes.

import type { Dialect } from "../../dialects/dialect.ts";
import { GatewayError } from "../../lib/errors.ts";
import type {
  Origin,
  ResponseListener,
  SentRequest,
  Upstream,
  UpstreamFault,
  UpstreamResponse,
} from "../../lib/http/upstream.ts";
import type { Fields } from "../../lib/http/fields.ts";
import type { Exchange } from "../../lib/http/exchange.ts";

/** Longer bodies are the gateway's to refuse. */
export const MAX_BODY_BYTES = 256 * 1024 * 1024;
const CONNECT_MS = 30_000;
/** The gateway has its own limits, which may be longer than any here. */
const PATIENCE_MS = 24 * 3_600_000;

/** Fields about the connection, which end here. `writeFields` leaves out those of the framing. */
const ENDING = new Set([
  "expect",
  "host",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

export function passedFields({ fields }: Exchange): Fields {
  return fields.without(ENDING);
}

export interface RelayOptions {
  readonly origin: Origin;
  readonly fields: Fields;
  readonly body: Uint8Array;
  /** Why there is no response, for people. */
  readonly explain: (fault: UpstreamFault) => string;
  /** Of that error. */
  readonly dialect: Dialect;
}

/** If the client leaves, the request is cancelled. */
export function relay(client: Upstream, exchange: Exchange, options: RelayOptions): void {
  const { origin, fields, body } = options;
  const listener = new Relay(exchange, options);
  listener.sent = client.send(
    {
      origin,
      method: exchange.method,
      target: exchange.target,
      fields,
      body: body.length === 0 ? null : body,
      deadlines: { connectMs: CONNECT_MS, firstByteMs: PATIENCE_MS, idleMs: PATIENCE_MS },
    },
    listener,
  );
  exchange.onGone(() => listener.sent?.cancel());
}

function answerFault(exchange: Exchange, dialect: Dialect, status: number, message: string): void {
  const error = new GatewayError("upstream_failed", message);
  exchange.answer(status, [["content-type", "application/json"]], dialect.errorBody(error, ""));
}

class Relay implements ResponseListener {
  sent: SentRequest | null = null;
  readonly #exchange: Exchange;
  readonly #options: RelayOptions;

  constructor(exchange: Exchange, options: RelayOptions) {
    this.#exchange = exchange;
    this.#options = options;
  }

  begin({ status, fields, length }: UpstreamResponse): void {
    this.#exchange.begin(status, fields, length ?? undefined);
    this.#exchange.flush();
  }

  resent(): void {}

  receive(bytes: Buffer): void {
    if (this.#exchange.write(bytes)) return;
    this.sent?.pause();
    this.#exchange.onceSent(() => this.sent?.resume());
  }

  end(): void {
    this.#exchange.end();
  }

  fail(fault: UpstreamFault): void {
    const { dialect, explain } = this.#options;
    if (this.#exchange.gone) return;
    if (this.#exchange.begun) this.#exchange.reset();
    else answerFault(this.#exchange, dialect, 502, explain(fault));
  }
}
