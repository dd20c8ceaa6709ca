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
  /** Stops accepting; resolves when every call has been answered and settled. */
  drain(): Promise<void>;
  /** Breaks what is still running: `drain` resolves soon after. */
  stopNow(): void;
}

export function startServer(gateway: Gateway, address: { host: string; port: number }): RunningServer {
  const newId = createIdSource(gateway.now);
  const running = new Set<Promise<void>>();
  const onExchange = (exchange: Exchange): void => {
    const call = receive(exchange, newId(), gateway, address.host);
    if (call === null) return;
    running.add(call);
    void call.finally(() => running.delete(call));
  };
  const listener = listen({ hostname: address.host, port: address.port, onExchange });
  return {
    port: listener.port,
    drain: async () => {
      await listener.stop();
      await Promise.all(running);
    },
    stopNow: () => listener.stopNow(),
  };
}

/** Answers at once where no call comes of it. */
function receive(exchange: Exchange, id: string, gateway: Gateway, boundHost: string): Promise<void> | null {
  const { catalog } = gateway;
  if (isPreflight(exchange)) {
    answerPreflight(exchange, catalog);
    return null;
  }
  const recognised = recognise(exchange, catalog);
  if (!isOwnHost(exchange.field("host"), catalog, boundHost)) {
    refuse(exchange, refuseHost(exchange), recognised.dialect, id);
    return null;
  }
  switch (recognised.kind) {
    case "own":
      answerOwnPage(recognised.page, exchange, gateway);
      return null;
    case "unknown":
    case "upgrade":
      refuse(exchange, recognised.error, recognised.dialect, id);
      return null;
    case "target": {
      const { target, query } = recognised;
      return handle(
        { id, exchange, target, query, time: gateway.now(), arrived: performance.now() },
        gateway,
      );
    }
  }
}

function refuseHost(exchange: Exchange): GatewayError {
  const name = exchange.field("host") ?? "";
  const text = `The Host "${name}" is not this gateway's. If it should be, add it to allowed_hosts in the config file.`;
  return new GatewayError("host_refused", text);
}
