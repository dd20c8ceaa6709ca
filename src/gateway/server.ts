// The gateway on its address: hostile requests are turned away, the gateway's own
// pages answered, everything else is a call for pipeline.ts. Owns starting and draining.

import type { Dialect } from "../dialects/dialect.ts";
import { recognise } from "../dialects/index.ts";
import { codeOf } from "../lib/error-code.ts";
import { GatewayError } from "../lib/errors.ts";
import { listen, type Server, type ServerOptions } from "../lib/http1/server/server.ts";
import type { Refusal } from "../lib/http1/server/refusal.ts";
import { Shortage } from "../lib/http1/shortage.ts";
import type { Exchange } from "../lib/http1/types.ts";
import { type UnroutedCall, createIdSource } from "./intake/call.ts";
import { admitOrigin, answerPreflight, isPreflight, refuseOrigin } from "./intake/cors.ts";
import type { Gateway } from "./gateway.ts";
import { isOwnHost } from "./intake/own-host.ts";
import { reportFault } from "./observe/observer.ts";
import { answerOwnPage } from "./control/own-pages.ts";
import { handle } from "./pipeline.ts";
import { reportStray } from "./bill/request-record.ts";
import { refuse, toRefusalError } from "./intake/refuse.ts";

export interface RunningServer {
  readonly port: number;
  /** Stops accepting; resolves when every call has been answered and settled. */
  drain(): Promise<void>;
  /** Breaks what is still running: `drain` resolves soon after. */
  stopNow(): void;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

export function startServer(gateway: Gateway, address: Address): RunningServer {
  const newId = createIdSource(gateway.now);
  const running = new Running();
  const onError = (error: unknown): void => reportFault(error, gateway.observer);
  const greet = (exchange: Exchange): UnroutedCall => {
    const admitted = admitOrigin(exchange, gateway.catalog);
    return { id: newId(), exchange: admitted, time: gateway.now(), arrived: performance.now() };
  };
  const onExchange = (exchange: Exchange): void => {
    const call = receive(greet(exchange), gateway, address.host);
    if (call === null) return;
    running.add(call, onError);
  };
  const onRefusal = (exchange: Exchange, refusal: Refusal): void => {
    const { dialect } = recognise(exchange, gateway.catalog);
    if (refusal instanceof Shortage) gateway.raiseShortage(refusal.message);
    turnAway(greet(exchange), toRefusalError(refusal), dialect, gateway);
  };
  const listener = listenOn(address, { onExchange, onRefusal, onError });
  return {
    port: listener.port,
    drain: async () => {
      await listener.stop();
      await running.ended();
    },
    stopNow: () => listener.stopNow(),
  };
}

/** The calls that are being answered. */
class Running {
  #count = 0;
  #asked: PromiseWithResolvers<void> | null = null;

  add(call: Promise<void>, onError: (error: unknown) => void): void {
    this.#count += 1;
    call.then(this.#leave, (error: unknown) => {
      this.#leave();
      onError(error);
    });
  }

  /** Resolves when the last of them has ended. */
  ended(): Promise<void> {
    this.#asked ??= Promise.withResolvers<void>();
    if (this.#count === 0) this.#asked.resolve();
    return this.#asked.promise;
  }

  readonly #leave = (): void => {
    this.#count -= 1;
    if (this.#count === 0) this.#asked?.resolve();
  };
}

function listenOn({ host, port }: Address, told: ServerOptions): Server {
  try {
    return listen({ hostname: host, port, ...told });
  } catch (error) {
    throw explainListening(host, port, error);
  }
}

function explainListening(host: string, port: number, cause: unknown): Error {
  const why =
    codeOf(cause) === "EADDRINUSE"
      ? `port ${port} is in use: stop what listens there, or choose another with --port or listen.port.`
      : `${cause instanceof Error ? cause.message : String(cause)}.`;
  return new Error(`The gateway cannot listen on ${host}: ${why}`, { cause });
}

/** Answers at once where no call comes of it. */
function receive(arrival: UnroutedCall, gateway: Gateway, boundHost: string): Promise<void> | null {
  const { exchange } = arrival;
  const { catalog } = gateway;
  const recognised = recognise(exchange, catalog);
  const { dialect } = recognised;
  if (!isOwnHost(exchange.field("host"), catalog, boundHost)) {
    return turnAway(arrival, refuseHost(exchange), dialect, gateway);
  }
  if (isPreflight(exchange)) {
    const refusal = refuseOrigin(exchange, catalog);
    if (refusal !== null) return turnAway(arrival, refusal, dialect, gateway);
    answerPreflight(arrival);
    return null;
  }
  switch (recognised.kind) {
    case "own":
      answerOwnPage(recognised.page, arrival, gateway);
      return null;
    case "unknown":
    case "upgrade":
      return turnAway(arrival, recognised.error, dialect, gateway);
    case "target": {
      const { target, query } = recognised;
      return handle({ ...arrival, target, query }, gateway);
    }
  }
}

function turnAway(arrival: UnroutedCall, error: GatewayError, dialect: Dialect, gateway: Gateway): null {
  refuse(arrival.exchange, error, dialect, arrival.id);
  reportStray(arrival, error, gateway);
  return null;
}

function refuseHost(exchange: Exchange): GatewayError {
  const name = exchange.field("host") ?? "";
  const text = `The Host "${name}" is not this gateway's. If it should be, add it to allowed_hosts in the config file.`;
  return new GatewayError("host_refused", text);
}
