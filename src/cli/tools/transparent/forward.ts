// The requests of a tool to the vendor's own hosts: to the gateway with the key of the run, or straight to the vendor if
// their paths carry no inference.

import { findProxy } from "../../../config/proxy.ts";
import type { Environment } from "../../../config/yaml/expand.ts";
import type { Dialect } from "../../../dialects/dialect.ts";
import { getErrorMessage } from "../../../lib/errors.ts";
import type { Field, Fields } from "../../../lib/http/fields.ts";
import { createClient } from "../../../lib/http1/client/client.ts";
import { BodyTooLarge, type Exchange } from "../../../lib/http/exchange.ts";
import type { Origin, UpstreamFault } from "../../../lib/http/upstream.ts";
import { answerFault, MAX_BODY_BYTES, passedFields, relay } from "../../access/relay.ts";
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

export function openForwarder(options: ForwardOptions): Forwarder {
  const client = createClient();
  const straight = new Map(options.hosts.map((host) => [host, findOrigin(host, options.env)]));
  const { gateway, own, placeholder, dialect } = options;

  async function forward(exchange: Exchange): Promise<void> {
    const host = exchange.field("host")?.replace(/:443$/, "").toLowerCase() ?? "";
    const vendor = straight.get(host);
    if (vendor === undefined)
      return answerFault(exchange, dialect, 421, `No request for "${host}" belongs here.`);
    const isStraight = isWithoutInference(exchange.method, exchange.target);
    const fields = passedFields(exchange);
    if (isStraight && !hasLogin(exchange, placeholder))
      return answerFault(
        exchange,
        dialect,
        404,
        "The gateway has no login for this path, and the request has none.",
      );
    relay(client, exchange, {
      origin: isStraight ? vendor : gateway,
      fields: isStraight ? fields : omitOwn(fields).addAll(own),
      body: await exchange.readBody(MAX_BODY_BYTES),
      explain: (fault) => explain(fault, isStraight ? null : gateway),
      dialect,
    });
  }

  return {
    onExchange: (exchange) => {
      forward(exchange).catch((error: unknown) => {
        if (exchange.gone || exchange.begun) exchange.reset();
        else
          answerFault(exchange, dialect, error instanceof BodyTooLarge ? 413 : 400, getErrorMessage(error));
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
