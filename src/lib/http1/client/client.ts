// The HTTP/1.1 client. Sends each request on an idle connection of its origin, or on a new one.
// It does not follow redirects, keep cookies or decode bodies. What is resent, and when, is in upstream-connection.ts.

import { RunningRequest } from "./running-request.ts";
import { MAX_SPARE_CONNECTIONS } from "./demand.ts";
import { proxyAuthorization } from "./dial.ts";
import { Fields, writeFields } from "../../http/fields.ts";
import { writeRequestLine } from "../head.ts";
import { Pool } from "./pool.ts";
import type {
  ClientStats,
  Origin,
  ResponseListener,
  SentRequest,
  SocketRequest,
  StartedSocket,
  Upstream,
  UpstreamRequest,
} from "../../http/upstream.ts";
import { startHandshake } from "../websocket/handshake.ts";
import { openUpgrade } from "./upgrade.ts";
import { Upkeep } from "./upkeep.ts";

/** The part of the head that all requests to an origin share. */
interface OriginHead {
  readonly pool: Pool;
  /** Precedes the path: the origin if a proxy needs it, otherwise empty. */
  readonly targetPrefix: string;
  readonly fields: string;
}

class PoolingClient implements Upstream {
  /** Origins that are equal share their connections, also after a configuration was reloaded. */
  readonly #pools = new Map<string, Pool>();
  readonly #originHeads = new WeakMap<Origin, OriginHead>();
  readonly #upkeep = new Upkeep(this.#pools);
  #closed = false;

  send(request: UpstreamRequest, listener: ResponseListener): SentRequest {
    const originHead = this.#findOrigin(request.origin);
    const running = new RunningRequest(request, writeRequest(request, originHead), listener);
    this.#upkeep.noteRequest();
    originHead.pool.send(running);
    return running;
  }

  openWebSocket(request: SocketRequest): StartedSocket {
    const originHead = this.#findOrigin(request.origin);
    const { key, fields } = startHandshake();
    const asked = { ...request, method: "GET", fields: Fields.of(request.fields).addAll(fields), body: null };
    const head = writeRequest(asked, originHead);
    this.#upkeep.noteRequest();
    return openUpgrade(
      request,
      { head: `${head.slice(0, -2)}connection: Upgrade\r\n\r\n`, key },
      originHead.pool,
    );
  }

  keepWarm(origins: Iterable<Origin>, expected: Iterable<Origin> = []): void {
    const warm = new Set([...origins].map((origin) => this.#findOrigin(origin).pool));
    for (const pool of this.#pools.values()) pool.setWarm(warm.has(pool));
    for (const origin of expected) this.#findOrigin(origin).pool.expectUse(MAX_SPARE_CONNECTIONS, Date.now());
    this.#upkeep.setActive(warm.size > 0 && !this.#closed);
  }

  close(): void {
    this.#closed = true;
    this.#upkeep.setActive(false);
    for (const pool of this.#pools.values()) pool.close();
  }

  stats(): ClientStats {
    return addUp([...this.#pools.values()]);
  }

  statsOf(origin: Origin): ClientStats {
    return addUp([this.#findOrigin(origin).pool]);
  }

  #findOrigin(origin: Origin): OriginHead {
    return this.#originHeads.get(origin) ?? this.#addOrigin(origin);
  }

  #addOrigin(origin: Origin): OriginHead {
    const key = JSON.stringify([origin.tls, origin.host, origin.port, origin.proxy?.href, origin.ca]);
    const pool = this.#pools.get(key) ?? new Pool(origin);
    if (this.#closed) pool.close();
    this.#pools.set(key, pool);
    const originHead = { pool, ...describeOrigin(origin) };
    this.#originHeads.set(origin, originHead);
    return originHead;
  }
}

function addUp(pools: readonly Pool[]): ClientStats {
  const sum = { open: 0, idle: 0, dialled: 0, reused: 0, retried: 0 };
  for (const pool of pools) {
    sum.open += pool.open;
    sum.idle += pool.idle;
    sum.dialled += pool.dialled;
    sum.reused += pool.reused;
    sum.retried += pool.retried;
  }
  return sum;
}

function describeOrigin({ tls, host, port, proxy }: Origin): Omit<OriginHead, "pool"> {
  const authority = port === (tls ? 443 : 80) ? host : `${host}:${port}`;
  const hostField = `host: ${authority}\r\n`;
  if (proxy === undefined || tls) return { targetPrefix: "", fields: hostField };
  const authorization = proxyAuthorization(proxy);
  const credential = authorization === null ? "" : `proxy-authorization: ${authorization}\r\n`;
  return { targetPrefix: `http://${authority}`, fields: hostField + credential };
}

function writeRequest({ method, target, fields, body }: UpstreamRequest, originHead: OriginHead): string {
  const sendsBody = body !== null || method === "POST" || method === "PUT" || method === "PATCH";
  const length = sendsBody ? `content-length: ${body?.length ?? 0}\r\n` : "";
  const line = writeRequestLine(method, originHead.targetPrefix + target);
  return `${line}${originHead.fields}${writeFields(fields)}${length}\r\n`;
}

export function createClient(): Upstream {
  return new PoolingClient();
}
