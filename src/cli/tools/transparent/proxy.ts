// The proxy of one run. The tool reaches it with a secret that is made for the run, by CONNECT only. For the vendor's own
// hosts it ends TLS and serves the requests itself. Everything else is a tunnel, through the proxy that was set before.

import { timingSafeEqual } from "node:crypto";
import type { Socket, SocketHandler, TLSOptions } from "bun";
import { findProxy } from "../../../config/proxy.ts";
import type { Environment } from "../../../config/yaml/expand.ts";
import { Addresses } from "../../../lib/http1/client/addresses.ts";
import { Dial, hostToDial, type SocketListener } from "../../../lib/http1/client/dial.ts";
import { findHeadEnd } from "../../../lib/http1/head.ts";
import { ByteCollector } from "../../../lib/http1/packets.ts";
import { ConnectionServer } from "../../../lib/http1/server/server.ts";
import type { Exchange } from "../../../lib/http/exchange.ts";
import { randomHex } from "../../../lib/secret.ts";
import { Deadline } from "../../../lib/time/deadline.ts";
import type { Identity } from "./authority.ts";
import { TunnelEnd } from "./tunnel.ts";

export interface ProxyOptions {
  /** Names of hosts, in lower case. Their port 443 is served here. */
  readonly hosts: readonly string[];
  readonly identity: Identity;
  /** The environment of the user, with the proxies that were set before. */
  readonly env: Environment;
  readonly onExchange: (exchange: Exchange) => void;
}

export interface RunProxy {
  /** With the secret of this run. */
  readonly url: string;
  close(): void;
}

const USER = "run";
const SECRET_BYTES = 24;
const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_MS = 30_000;
const CONNECT_MS = 30_000;
/** The name with its length before it, as TLS sends it. */
const HTTP_1 = Buffer.from("\x08http/1.1", "latin1");
const ESTABLISHED = "HTTP/1.1 200 Connection established\r\n\r\n";

export function openProxy(options: ProxyOptions): RunProxy {
  const secret = randomHex(SECRET_BYTES);
  const expected = Buffer.from(`Basic ${btoa(`${USER}:${secret}`)}`);
  const served = new ConnectionServer({ onExchange: options.onExchange });
  const open = new Set<Child>();
  const context = { options, expected, served, open };
  const listener = Bun.listen<Child>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        socket.data = new Child(context, socket);
      },
      data: (socket, chunk) => socket.data.receive(chunk),
      drain: (socket) => socket.data.drain(),
      close: (socket) => socket.data.closed(),
      error: (socket) => socket.data.abort(),
    },
  });
  return {
    url: `http://${USER}:${secret}@127.0.0.1:${listener.port}`,
    close() {
      listener.stop(false);
      served.stopNow();
      for (const child of open) child.abort();
    },
  };
}

interface ProxyContext {
  readonly options: ProxyOptions;
  /** The value of proxy-authorization. */
  readonly expected: Buffer;
  readonly served: ConnectionServer;
  readonly open: Set<Child>;
}

/** `served`: the HTTP server has it. */
type Phase = "head" | "dialling" | "tunnel" | "served" | "closed";

/** A connection of the tool, or of a program that it has started. */
class Child {
  readonly #context: ProxyContext;
  readonly #socket: Socket<Child>;
  readonly #head = new ByteCollector();
  readonly #deadline = new Deadline(() => this.abort());
  #phase: Phase = "head";
  #dial: Dial | null = null;
  #end: TunnelEnd | null = null;

  constructor(context: ProxyContext, socket: Socket<Child>) {
    this.#context = context;
    this.#socket = socket;
    context.open.add(this);
    this.#deadline.arm(HEAD_MS);
  }

  receive(chunk: Buffer): void {
    if (this.#phase === "tunnel") this.#end?.receive(chunk);
    else if (this.#phase === "head") this.#readHead(chunk);
    // Bytes before the reply to CONNECT: no client that knows CONNECT sends them.
    else if (this.#phase === "dialling") this.abort();
  }

  drain(): void {
    this.#end?.drain();
  }

  closed(): void {
    this.#phase = "closed";
    this.#deadline.disarm();
    this.#dial?.cancel();
    this.#end?.closed();
    this.#context.open.delete(this);
  }

  abort(): void {
    if (this.#phase === "closed") return;
    this.#socket.terminate();
    this.closed();
  }

  #readHead(chunk: Buffer): void {
    this.#head.add(chunk);
    const bytes = this.#head.view();
    const end = findHeadEnd(bytes, 0);
    if (end < 0 && bytes.length <= MAX_HEAD_BYTES) return;
    this.#deadline.disarm();
    if (end !== bytes.length) return this.#refuse("400 Bad Request", "This is not a CONNECT request.");
    this.#answer(bytes.toString("latin1"));
  }

  #answer(head: string): void {
    const [, host = "", port = ""] =
      /^CONNECT ([\w.-]+|\[[\da-f:.]+\]):(\d{1,5}) HTTP\/1\.[01]\r\n/i.exec(head) ?? [];
    if (host === "")
      return this.#refuse(
        "405 Method Not Allowed",
        "The proxy of `gateway run --transparent` knows CONNECT only.",
      );
    const [, sent = ""] = /\r\nproxy-authorization:[ \t]*(.*?)[ \t]*\r\n/i.exec(head) ?? [];
    const given = Buffer.from(sent, "latin1");
    const { expected, options } = this.#context;
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      return this.#refuse(
        "407 Proxy Authentication Required",
        "This proxy belongs to one run of a tool.",
        'proxy-authenticate: Basic realm="gateway run"\r\n',
      );
    const name = host.toLowerCase();
    if (port === "443" && options.hosts.includes(name)) this.#serve();
    else this.#connect(name, Number(port));
  }

  #refuse(status: string, text: string, fields = ""): void {
    const body = `${text}\n`;
    const length = `content-type: text/plain\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
    this.#socket.end(`HTTP/1.1 ${status}\r\n${fields}${length}connection: close\r\n\r\n${body}`);
    this.#phase = "served"; // nothing more is read
  }

  #serve(): void {
    const { identity } = this.#context.options;
    const tls: TLSOptions = { cert: identity.certificate, key: identity.key, ALPNProtocols: HTTP_1 };
    this.#phase = "served";
    this.#socket.write(ESTABLISHED);
    // The runtime accepts `isServer`, although its types do not say so.
    const upgrade = { tls, socket: ifOpened(this.#context.served.handler), isServer: true };
    this.#socket.upgradeTLS(upgrade);
  }

  #connect(host: string, port: number): void {
    this.#phase = "dialling";
    const proxy = findProxy(new URL(`https://${host}:${port}`), this.#context.options.env);
    const origin = { tls: true, host, port, ...(proxy !== null && { proxy }) };
    this.#dial = new Dial({
      origin,
      addresses: new Addresses(hostToDial(origin)),
      connectMs: CONNECT_MS,
      session: null,
      reservedFiles: 0,
      isTunnel: true,
      connected: (socket) => this.#join(socket),
      failed: (_, message) => this.#refuse("502 Bad Gateway", message),
    });
  }

  #join(socket: Socket<SocketListener>): SocketListener {
    const [near, far] = [new TunnelEnd(this.#socket), new TunnelEnd(socket)];
    TunnelEnd.join(near, far);
    this.#end = near;
    this.#dial = null;
    this.#phase = "tunnel";
    this.#socket.write(ESTABLISHED);
    return far;
  }
}

/** A socket whose TLS handshake fails is closed without having been opened: there is no connection to tell. */
function ifOpened<Data>(handler: SocketHandler<Data>): SocketHandler<Data> {
  let isOpen = false;
  return {
    ...handler,
    open: (socket) => {
      isOpen = true;
      return handler.open?.(socket);
    },
    close: (socket, error) => (isOpen ? handler.close?.(socket, error) : undefined),
    error: (socket, error) => (isOpen ? handler.error?.(socket, error) : undefined),
  };
}
