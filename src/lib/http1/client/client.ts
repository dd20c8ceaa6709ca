// The HTTP/1.1 client: a request becomes a call on a kept-alive connection of
// its origin, or on a new one. What this file does not own: retries, except on a
// kept-alive connection that had ended, or for GET and HEAD (wire.ts); redirects,
// cookies and content codings, which pass untouched.

import { PendingExchange } from "./pending-exchange.ts";
import { proxyAuthorization } from "./dial.ts";
import { writeFields, writeRequestLine } from "../head.ts";
import { Pool } from "./pool.ts";
import type { Origin, UpstreamRequest, SentRequest } from "../types.ts";

export interface ClientStats {
  /** Connections, idle ones included. */
  readonly open: number;
  readonly idle: number;
  readonly dialled: number;
  readonly reused: number;
  /** Calls that were moved from a kept-alive connection to a new one. */
  readonly retried: number;
}

export interface Client {
  /** Throws Malformed when a field or the target would break the framing. */
  send(outbound: UpstreamRequest): SentRequest;
  /** Drops idle connections; running calls end by themselves. */
  close(): void;
  stats(): ClientStats;
}

/** What all requests to an origin have in common. */
interface Route {
  readonly pool: Pool;
  /** Before the path: empty, or the origin when a proxy has to be told. */
  readonly targetPrefix: string;
  readonly fields: string;
}

class PoolingClient implements Client {
  /** Configurations are reloaded: equal origins share their connections. */
  readonly #pools = new Map<string, Pool>();
  readonly #routes = new WeakMap<Origin, Route>();
  #closed = false;

  send(outbound: UpstreamRequest): SentRequest {
    const route = this.#routes.get(outbound.origin) ?? this.#addRoute(outbound.origin);
    const call = new PendingExchange(outbound, writeRequest(outbound, route));
    route.pool.carry(call);
    return call;
  }

  close(): void {
    this.#closed = true;
    for (const pool of this.#pools.values()) pool.close();
  }

  stats(): ClientStats {
    const sum = { open: 0, idle: 0, dialled: 0, reused: 0, retried: 0 };
    for (const pool of this.#pools.values()) {
      sum.open += pool.open;
      sum.idle += pool.idle;
      sum.dialled += pool.dialled;
      sum.reused += pool.reused;
      sum.retried += pool.retried;
    }
    return sum;
  }

  #addRoute(origin: Origin): Route {
    const key = JSON.stringify([origin.tls, origin.host, origin.port, origin.proxy?.href, origin.ca]);
    const pool = this.#pools.get(key) ?? new Pool(origin);
    if (this.#closed) pool.close();
    this.#pools.set(key, pool);
    const route = { pool, ...describeRoute(origin) };
    this.#routes.set(origin, route);
    return route;
  }
}

function describeRoute({ tls, host, port, proxy }: Origin): Omit<Route, "pool"> {
  const authority = port === (tls ? 443 : 80) ? host : `${host}:${port}`;
  const hostField = `host: ${authority}\r\n`;
  if (proxy === undefined || tls) return { targetPrefix: "", fields: hostField };
  const authorization = proxyAuthorization(proxy);
  const credential = authorization === null ? "" : `proxy-authorization: ${authorization}\r\n`;
  return { targetPrefix: `http://${authority}`, fields: hostField + credential };
}

function writeRequest({ method, target, fields, body }: UpstreamRequest, route: Route): string {
  const sendsBody = body !== null || method === "POST" || method === "PUT" || method === "PATCH";
  const length = sendsBody ? `content-length: ${body?.length ?? 0}\r\n` : "";
  const line = writeRequestLine(method, route.targetPrefix + target);
  return `${line}${route.fields}${writeFields(fields)}${length}\r\n`;
}

export function createClient(): Client {
  return new PoolingClient();
}
