// The requests of a tool to the vendor's own hosts: to the gateway with the key of the run, or straight to the vendor if
// their paths carry no inference.

import { findProxy } from "../../../config/proxy.ts";
import type { Environment } from "../../../config/yaml/expand.ts";
import type { Dialect } from "../../../dialects/dialect.ts";
import { GatewayError, getErrorMessage } from "../../../lib/errors.ts";
import type { Fields } from "../../../lib/http1/fields.ts";
import { createClient } from "../../../lib/http1/client/client.ts";
import {
  BodyTooLarge,
  type Exchange,
  type Field,
  type Origin,
  type ResponseListener,
  type SentRequest,
  type UpstreamFault,
  type UpstreamResponse,
} from "../../../lib/http1/types.ts";
import { isWithoutInference } from "./paths.ts";

export interface ForwardOptions {
  readonly gateway: Origin;
  /** For the gateway: the key of the run, and what its requests belong to. */
  readonly own: readonly Field[];
  /** The vendor's hosts, in lower case. */
  readonly hosts: readonly string[];
  /** What the tool has in place of an API key. It is a credential for nobody. */
  readonly placeholder: string;
  /** The environment of the user, with the proxies that were set before. */
  readonly env: Environment;
  /** Of the errors that the tool gets. */
  readonly dialect: Dialect;
}

export interface Forwarder {
  readonly onExchange: (exchange: Exchange) => void;
  close(): void;
}

/** Longer bodies are the gateway's to refuse. */
const MAX_BODY_BYTES = 256 * 1024 * 1024;
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

export function openForwarder(options: ForwardOptions): Forwarder {
  const client = createClient();
  const straight = new Map(options.hosts.map((host) => [host, findOrigin(host, options.env)]));
  const { gateway, own, placeholder, dialect } = options;

  async function forward(exchange: Exchange): Promise<void> {
    const host = exchange.field("host")?.replace(/:443$/, "").toLowerCase() ?? "";
    const vendor = straight.get(host);
    if (vendor === undefined) return fail(exchange, dialect, 421, `No request for "${host}" belongs here.`);
    const isStraight = isWithoutInference(exchange.method, exchange.target);
    const fields = exchange.fields.without(ENDING);
    if (isStraight && !hasLogin(exchange, placeholder))
      return fail(
        exchange,
        dialect,
        404,
        "The gateway has no login for this path, and the request has none.",
      );
    const body = await exchange.readBody(MAX_BODY_BYTES);
    const relay = new Relay(exchange, (fault) => explain(fault, isStraight ? null : gateway), dialect);
    relay.sent = client.send(
      {
        origin: isStraight ? vendor : gateway,
        method: exchange.method,
        target: exchange.target,
        fields: isStraight ? fields : omitOwn(fields).addAll(own),
        body: body.length === 0 ? null : body,
        deadlines: { connectMs: CONNECT_MS, firstByteMs: PATIENCE_MS, idleMs: PATIENCE_MS },
      },
      relay,
    );
    exchange.onGone(() => relay.sent?.cancel());
  }

  return {
    onExchange: (exchange) => {
      forward(exchange).catch((error: unknown) => {
        if (exchange.gone || exchange.begun) exchange.reset();
        else fail(exchange, dialect, error instanceof BodyTooLarge ? 413 : 400, getErrorMessage(error));
      });
    },
    close: () => client.close(),
  };
}

/** The tool's own words about the gateway do not count. */
function omitOwn(fields: Fields): Fields {
  return fields.copy((name) => (name.startsWith("x-gateway-") ? null : name));
}

function findOrigin(host: string, env: Environment): Origin {
  const proxy = findProxy(new URL(`https://${host}`), env);
  return { tls: true, host, port: 443, ...(proxy !== null && { proxy }) };
}

function hasLogin(exchange: Exchange, placeholder: string): boolean {
  return [exchange.field("authorization"), exchange.field("x-api-key")].some(
    (value) => value !== undefined && value !== "" && !value.includes(placeholder),
  );
}

function explain(fault: UpstreamFault, gateway: Origin | null): string {
  if (gateway === null) return `The vendor cannot be reached: ${fault.message}`;
  return `The gateway at http://${gateway.host}:${gateway.port} does not answer (${fault.message}). \`gateway serve\` starts it. \`gateway run --transparent\` sends this tool's requests there.`;
}

function fail(exchange: Exchange, dialect: Dialect, status: number, message: string): void {
  const error = new GatewayError("upstream_failed", message);
  exchange.answer(status, [["content-type", "application/json"]], dialect.errorBody(error, ""));
}

/** Gives a response to the tool as it comes. */
class Relay implements ResponseListener {
  sent: SentRequest | null = null;
  readonly #exchange: Exchange;
  readonly #explain: (fault: UpstreamFault) => string;
  readonly #dialect: Dialect;

  constructor(exchange: Exchange, explainFault: (fault: UpstreamFault) => string, dialect: Dialect) {
    this.#exchange = exchange;
    this.#explain = explainFault;
    this.#dialect = dialect;
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
    if (this.#exchange.gone) return;
    if (this.#exchange.begun) this.#exchange.reset();
    else fail(this.#exchange, this.#dialect, 502, this.#explain(fault));
  }
}
