// Listens, refuses foreign hosts, answers preflights and the gateway's pages.

import type { Dialect } from "../dialects/dialect.ts";
import { recognise } from "../dialects/index.ts";
import type { Catalog } from "../config/catalog.ts";
import { codeOf, GatewayError, messageOf } from "../lib/errors.ts";
import type { Exchange, Listen, Server } from "../lib/http/exchange.ts";
import { type UnroutedCall, createIdSource } from "./intake/call.ts";
import { allowOrigin, answerPreflight, isPreflight, refuseOrigin } from "./intake/cors.ts";
import type { Gateway } from "./gateway.ts";
import { findOther } from "./intake/authenticate.ts";
import { acceptsHost } from "./intake/own-host.ts";
import { reportFault } from "./observe/observer.ts";
import { answerOwnPage, type Console } from "./api/own-pages.ts";
import { handle } from "./pipeline.ts";
import { Request } from "./request.ts";
import { serveWebSocket } from "./websocket/accept.ts";
import { reportStray } from "./bill/request-record.ts";
import { cleanError, refuse, toGatewayError } from "./intake/refuse.ts";

export interface RunningServer {
  readonly port: number;
  /** Resolves when every call is answered and its bill is closed. */
  drain(): Promise<void>;
  stopNow(): void;
}

export function startServer(
  gateway: Gateway,
  address: Catalog["listen"],
  { listen, console }: { readonly listen: Listen; readonly console: Console | null },
): RunningServer {
  const newId = createIdSource(gateway.now);
  const onError = (error: unknown): void => reportFault(error, gateway.observer);
  const surroundings: Surroundings = { gateway, boundHost: address.host, newId, console };
  const onExchange = (exchange: Exchange): void => {
    allowOrigin(exchange, gateway.catalog);
    receive({ id: newId(), exchange, time: gateway.now(), arrived: performance.now() }, surroundings);
  };
  const maxMessageBytes = gateway.catalog.maxBodyBytes;
  const { host: hostname, port } = address;
  let listener: Server;
  try {
    listener = listen({ hostname, port, onExchange, onError, maxMessageBytes });
  } catch (error) {
    throw explainListening(address, error);
  }
  return {
    port: listener.port,
    drain: async () => {
      await listener.stop();
      await gateway.finished.ended();
    },
    stopNow: () => listener.stopNow(),
  };
}

function explainListening({ host, port }: Catalog["listen"], cause: unknown): Error {
  const why =
    codeOf(cause) === "EADDRINUSE"
      ? `port ${port} is in use: stop the program that uses it, or choose another port with --port or listen.port.`
      : `${messageOf(cause)}.`;
  return new Error(`The gateway cannot listen on ${host}: ${why}`, { cause });
}

interface Surroundings {
  readonly gateway: Gateway;
  readonly boundHost: string;
  readonly newId: () => string;
  readonly console: Console | null;
}

function receive(call: UnroutedCall, { gateway, boundHost, newId, console }: Surroundings): void {
  const { exchange } = call;
  const { catalog, finished, observer } = gateway;
  const recognised = recognise(exchange, catalog);
  const refuseAs = (error: GatewayError): void => answerError(call, error, recognised.dialect, gateway);
  const refusedHost = refuseHost(exchange.field("host"), boundHost, catalog);
  if (refusedHost !== null) return refuseAs(refusedHost);
  if (isPreflight(exchange)) {
    const refusal = refuseOrigin(exchange, catalog);
    return refusal === null ? answerPreflight(call) : refuseAs(refusal);
  }
  switch (recognised.kind) {
    case "own":
      // A stopping gateway waits for the answer.
      finished.enter();
      answerOwnPage(recognised.page, call, gateway, console)
        .catch((thrown: unknown) => refuseAs(toGatewayError(thrown, exchange, gateway)))
        .catch((error: unknown) => reportFault(error, observer))
        .finally(() => finished.leave());
      return;
    case "upgrade":
      return serveWebSocket(new Request(call, recognised), newId, gateway);
    case "unknown": {
      const other = findOther(exchange, recognised, gateway);
      return other === null ? refuseAs(recognised.error) : void handle(new Request(call, other), gateway);
    }
    case "target":
      void handle(new Request(call, recognised), gateway);
  }
}

function answerError(call: UnroutedCall, raw: GatewayError, dialect: Dialect, gateway: Gateway): void {
  const error = cleanError(raw, call.exchange, gateway.catalog);
  refuse(call.exchange, error, dialect, call.id);
  reportStray(call, error, gateway);
}

function refuseHost(host: string | undefined, boundHost: string, catalog: Catalog): GatewayError | null {
  // Two fields of one name arrive joined by a comma.
  if (host?.includes(",") === true)
    return new GatewayError("bad_request", "The request has two Host fields.");
  if (acceptsHost(host, boundHost, catalog)) return null;
  const text = `The Host "${host}" is not a name of this gateway. If it should be, add it to allowed_hosts in the config file.`;
  return new GatewayError("host_refused", text);
}
