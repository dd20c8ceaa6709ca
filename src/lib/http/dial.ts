// Opens a connection to an origin: TCP, then TLS with the certificate always verified, through a proxy if the origin has
// one. TLS goes through the proxy's CONNECT. A plain request goes to the proxy itself.

import { isIP } from "node:net";
import type { Socket, SocketHandler, TLSOptions } from "bun";
import { getErrorMessage } from "../errors.ts";
import { findHeadEnd, MAX_HEAD_BYTES, parseResponse } from "./head.ts";
import { Deadline } from "../time/deadline.ts";
import { explainShortage, type FaultKind, UpstreamFault } from "./faults.ts";
import { Malformed } from "./fields.ts";
import { type Origin, portOf } from "./upstream.ts";

/** Receives the events of a socket. */
export interface SocketListener {
  receive(chunk: Buffer): void;
  drain(): void;
  /** `error` is null or undefined after a clean end. */
  closed(error: unknown): void;
}

interface DialEnd {
  /** Whoever takes the socket sets its `data` to the listener of all further events. */
  readonly connected: (socket: Socket<SocketListener>) => void;
  readonly failed: (fault: UpstreamFault) => void;
}

/** `tunnel`: the proxy's response is awaited. */
type Phase = "connecting" | "tunnel" | "handshake" | "done";

/** Calls exactly one of `connected` and `failed`. */
export class Dial implements SocketListener {
  readonly startedAt = performance.now();
  readonly #origin: Origin;
  readonly #end: DialEnd;
  readonly #deadline = new Deadline(() =>
    this.#fail("connect_timeout", "the connection was not established in time"),
  );
  #phase: Phase = "connecting";
  /** Null while the runtime connects. That step cannot be interrupted. */
  #socket: Socket<SocketListener> | null = null;
  #proxyReply: Buffer = Buffer.alloc(0);

  constructor(origin: Origin, connectMs: number, end: DialEnd) {
    this.#origin = origin;
    this.#end = end;
    this.#deadline.arm(connectMs);
    this.#connect().catch((error: unknown) => this.#failToConnect(error));
  }

  receive(chunk: Buffer): void {
    if (this.#phase === "tunnel") this.#readTunnelReply(chunk);
  }

  drain(): void {}

  closed(error: unknown): void {
    if (this.#phase === "handshake")
      this.#fail("tls", "the connection closed during the TLS handshake", error);
    else this.#fail("connect", "the connection closed before it was established", error);
  }

  async #connect(): Promise<void> {
    const { tls, host, port, proxy, ca } = this.#origin;
    const common = { data: this, socket: this.#listen() };
    if (proxy !== undefined && tls && proxy.protocol !== "http:")
      throw new Error("TLS through an https: proxy is not supported; use an http: proxy");
    const to = proxy === undefined ? { name: host, port } : { name: proxy.hostname, port: portOf(proxy) };
    const isPlain = proxy === undefined ? !tls : proxy.protocol === "http:";
    const target = { ...common, hostname: unbracket(to.name), port: to.port };
    if (isPlain) await Bun.connect<SocketListener>(target);
    else await Bun.connect<SocketListener>({ ...target, tls: tlsOptions(to.name, ca) });
  }

  #listen(): SocketHandler<SocketListener> {
    return {
      open: (socket) => this.#open(socket),
      handshake: (socket, authorized, error) => this.#finishHandshake(socket, authorized, error),
      data: (socket, chunk) => socket.data.receive(chunk),
      drain: (socket) => socket.data.drain(),
      close: (socket, error) => socket.data.closed(error),
      error: (socket) => {
        socket.terminate(); // `close` reports the rest
      },
      connectError: () => {}, // the promise of `connect` reports it too
    };
  }

  #open(socket: Socket<SocketListener>): void {
    if (this.#phase !== "connecting") {
      socket.data = IGNORE_EVENTS; // too late
      socket.terminate();
      return;
    }
    this.#socket = socket;
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const { tls, proxy } = this.#origin;
    if (tls && proxy !== undefined) {
      this.#phase = "tunnel";
      socket.write(writeConnect(this.#origin, proxy)); // the first bytes on a new connection always fit
    } else if (tls || proxy?.protocol === "https:") {
      this.#phase = "handshake";
    } else {
      this.#finish(socket);
    }
  }

  /** The runtime has verified the chain and the name. Any one of its three signs of doubt is enough to refuse. */
  #finishHandshake(socket: Socket<SocketListener>, authorized: boolean, error: Error | null): void {
    if (this.#phase !== "handshake") return;
    const fault = authorized && error === null && socket.authorized ? this.#checkAddress(socket) : error;
    if (fault === undefined) this.#finish(socket);
    else this.#fail("tls", fault?.message ?? "the certificate could not be verified", fault);
  }

  /** Without a server name, the runtime does not compare the certificate of a tunnelled connection with anything. */
  #checkAddress(socket: Socket<SocketListener>): Error | undefined {
    const { host, tls } = this.#origin;
    const name = unbracket(host);
    if (!tls || isIP(name) === 0) return undefined;
    const certificate = socket.getPeerCertificate();
    return process.getBuiltinModule("node:tls").checkServerIdentity(name, certificate);
  }

  #readTunnelReply(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#proxyReply, chunk]);
    this.#proxyReply = bytes;
    const end = findHeadEnd(bytes, 0);
    if (end < 0) {
      if (bytes.length > MAX_HEAD_BYTES) this.#fail("connect", "the proxy's response head is too large");
      return;
    }
    const status = readStatus(bytes, end - 2);
    if (status < 200 || status > 299 || end < bytes.length)
      return this.#fail("connect", `the proxy refused the tunnel (status ${status})`);
    this.#startTls();
  }

  #startTls(): void {
    const { host, ca } = this.#origin;
    const outer = this.#socket;
    if (outer === null) return;
    this.#phase = "handshake";
    outer.data = IGNORE_EVENTS; // it still reports the encrypted bytes
    outer.upgradeTLS<SocketListener>({
      data: this,
      tls: tlsOptions(host, ca),
      socket: { ...this.#listen(), open: (socket) => void (this.#socket = socket) },
    });
  }

  #finish(socket: Socket<SocketListener>): void {
    this.#phase = "done";
    this.#deadline.disarm();
    this.#end.connected(socket);
  }

  #failToConnect(error: unknown): void {
    const shortage = explainShortage(error);
    if (shortage !== null) this.#fail("shortage", shortage, error);
    else this.#fail("connect", getErrorMessage(error), error);
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    if (this.#phase === "done") return;
    this.#phase = "done";
    this.#deadline.disarm();
    this.#socket?.terminate();
    this.#end.failed(new UpstreamFault(kind, `${describePlace(this.#origin)}: ${message}`, false, cause));
  }
}

export function describePlace({ host, port, proxy }: Origin): string {
  return proxy === undefined ? `${host}:${port}` : `${host}:${port} through ${proxy.host}`;
}

/** The system checks a quiet connection this often. It then notices within seconds that a path is gone, and routers keep
 *  the path open. */
const KEEP_ALIVE_MS = 45_000;

const IGNORE_EVENTS: SocketListener = { receive() {}, drain() {}, closed() {} };

function readStatus(bytes: Buffer, end: number): number {
  try {
    return parseResponse(bytes, 0, end).status;
  } catch (error) {
    if (error instanceof Malformed) return 0;
    throw error;
  }
}

function writeConnect({ host, port }: Origin, proxy: URL): string {
  const place = `${host}:${port}`;
  return `CONNECT ${place} HTTP/1.1\r\nhost: ${place}\r\n${writeProxyLogin(proxy)}\r\n`;
}

/** The field with the user name and password of the proxy's URL; empty if there are none. */
export function writeProxyLogin({ username, password }: URL): string {
  if (username === "" && password === "") return "";
  // People write passwords with percent signs that escape nothing.
  const pair = `${username}:${password}`.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return `proxy-authorization: Basic ${Buffer.from(pair, "latin1").toString("base64")}\r\n`;
}

/** IPv6 literals have brackets in URLs and Host fields, but not in socket addresses. */
function unbracket(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}

function tlsOptions(host: string, ca: string | undefined): TLSOptions {
  const name = unbracket(host);
  const options = { serverName: isIP(name) === 0 ? name : "", rejectUnauthorized: true };
  return ca === undefined ? options : Object.assign(options, { secureContext: trustAlso(ca) });
}

const contexts = new Map<string, unknown>();

/** An own authority replaces the default ones, so these are added. To read all of them takes 2.5 ms, so it happens once, in
 *  a context that the runtime's `connect` accepts although its types do not say so. Loaded late, because node:tls takes
 *  20 ms. */
function trustAlso(ca: string): unknown {
  return contexts.getOrInsertComputed(ca, () => {
    const { createSecureContext, getCACertificates } = process.getBuiltinModule("node:tls");
    return createSecureContext({ ca: [...getCACertificates("default"), ca] }).context;
  });
}
