// The gateway on its address: hostile requests are turned away, the gateway's own
// pages answered, everything else is a call for pipeline.ts. Owns starting and draining.

import { recognise } from "../dialects/index.ts";
import { GatewayError } from "../lib/errors.ts";
import { listen } from "../lib/http1/server.ts";
import type { Exchange } from "../lib/http1/types.ts";
import { createIdSource } from "./call.ts";
import { answerPreflight, isPreflight } from "./cors.ts";
import type { Gateway } from "./gateway.ts";
import { isOwnHost } from "./host.ts";
import { answerOwnPage } from "./own-pages.ts";
import { handle } from "./pipeline.ts";
import { refuse } from "./refuse.ts";

export interface RunningServer {
  readonly port: number;
  /** Stops accepting; resolves when the running exchanges have finished. */
  drain(): Promise<void>;
  stopNow(): void;
}

export function startServer(gateway: Gateway, address: { host: string; port: number }): RunningServer {
  const newId = createIdSource(gateway.now);
  const listener = listen({
    hostname: address.host,
    port: address.port,
    onExchange: (exchange) => receive(exchange, newId(), gateway, address.host),
  });
  return { port: listener.port, drain: () => listener.stop(), stopNow: () => listener.stopNow() };
}

function receive(exchange: Exchange, id: string, gateway: Gateway, boundHost: string): void {
  const { catalog } = gateway;
  if (isPreflight(exchange)) {
    answerPreflight(exchange, catalog);
    return;
  }
  const recognised = recognise(exchange, catalog);
  if (!isOwnHost(exchange.field("host"), catalog, boundHost)) {
    const name = exchange.field("host") ?? "";
    const text = `The Host "${name}" is not this gateway's. If it should be, add it to allowed_hosts in the config file.`;
    return refuse(exchange, new GatewayError("host_refused", text), recognised.dialect, id);
  }
  switch (recognised.kind) {
    case "own":
      return answerOwnPage(recognised.page, exchange, gateway);
    case "unknown":
    case "upgrade":
      return refuse(exchange, recognised.error, recognised.dialect, id);
    case "target": {
      const { target, query } = recognised;
      void handle({ id, exchange, target, query, time: gateway.now(), arrived: performance.now() }, gateway);
    }
  }
}
