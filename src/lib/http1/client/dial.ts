// Opens a connection to an origin: TCP to one of its addresses, then TLS with the certificate always verified, through a
// proxy if the origin has one. TLS goes through the proxy's CONNECT. A plain request goes to the proxy itself.

import { getErrorMessage } from "../../errors.ts";
import { isIP } from "node:net";
import type { Socket, SocketHandler, TLSOptions } from "bun";
import { Deadline } from "../../time/deadline.ts";
import { ByteCollector } from "../packets.ts";
import type { Addresses } from "./addresses.ts";
import { Race } from "./race.ts";
import { HeadSearch, MAX_HEAD_BYTES, parseResponse } from "../head.ts";
import { explainShortage, hasFilesLeft, TOO_MANY_FILES } from "../shortage.ts";
import { Malformed } from "../../http/fields.ts";
import { type FaultKind, type Origin, portOf } from "../../http/upstream.ts";

/** Receives the events of a socket. */
export interface SocketListener {
  receive(chunk: Buffer): void;
  drain(): void;
  /** `error` is null or undefined after a clean end. */
  closed(error: unknown): void;
}

export interface DialOptions {
  readonly origin: Origin;
  /** Of the origin, or of its proxy. */
  readonly addresses: Addresses;
  readonly connectMs: number;
  /** An earlier TLS session to resume, or null. */
  readonly session: Buffer | null;
  /** This many file descriptors must stay free. */
  readonly reservedFiles: number;
  /** The connection is established. Returns the listener for all further events. */
  readonly connected: (socket: Socket<SocketListener>) => SocketListener;
  readonly failed: (kind: FaultKind, message: string, cause?: unknown) => void;
}

/** `tunnel`: waiting for the proxy's response. `cancelled`: nobody waits any more, so a socket that still opens is closed. */
type Phase = "connecting" | "tunnel" | "handshake" | "done" | "cancelled";

/** Calls exactly one of `connected` and `failed`, unless `cancel` is called first. */
export class Dial implements SocketListener {
  readonly #options: DialOptions;
  readonly #deadline = new Deadline(() =>
    this.#fail("connect_timeout", "the connection was not established in time"),
  );
  readonly #proxyReply = new ByteCollector();
  readonly #search = new HeadSearch();
  #phase: Phase = "connecting";
  #race: Race | null = null;
  /** Null while the runtime connects. That step cannot be interrupted. */
  #socket: Socket<SocketListener> | null = null;

  constructor(options: DialOptions) {
    this.#options = options;
    this.#deadline.arm(options.connectMs);
    options.addresses.find().then(
      (addresses) => this.#start(addresses),
      (error: unknown) => this.#failToConnect(error),
    );
  }

  /** From now on, a request waits for it at most this long. */
  limit(connectMs: number): void {
    if (this.#phase !== "done" && this.#phase !== "cancelled") this.#deadline.arm(connectMs);
  }

  /** The connection is no longer needed. */
  cancel(): void {
    if (this.#phase === "done") return;
    this.#phase = "cancelled";
    this.#deadline.disarm();
    this.#race?.end();
    this.#socket?.terminate();
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

  #start(addresses: readonly string[]): void {
    if (this.#phase !== "connecting") return;
    this.#race = new Race(addresses, {
      connect: (address) => this.#connect(address),
      failed: (error) => this.#failToConnect(error),
      isFinal: (error) => explainShortage(error) !== null,
    });
  }

  async #connect(hostname: string): Promise<void> {
    const { tls, host, port, proxy, ca } = this.#options.origin;
    const common = { data: this, socket: this.#listen(), hostname };
    if (proxy === undefined) {
      const target = { ...common, port };
      await (tls
        ? Bun.connect<SocketListener>({ ...target, tls: tlsOptions(host, ca) })
        : Bun.connect<SocketListener>(target));
      return;
    }
    const target = { ...common, port: portOf(proxy) };
    if (proxy.protocol === "http:") await Bun.connect<SocketListener>(target);
    else if (tls) throw new Error("TLS through an https: proxy is not supported; use an http: proxy");
    else await Bun.connect<SocketListener>({ ...target, tls: tlsOptions(proxy.hostname, ca) });
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
      socket.data = IGNORE_EVENTS; // cancelled, or another address was faster
      socket.terminate();
      return;
    }
    this.#race?.end();
    this.#socket = socket;
    const { tls, proxy } = this.#options.origin;
    if (!hasFilesLeft(socket, this.#options.reservedFiles)) {
      this.#fail("shortage", TOO_MANY_FILES);
      return;
    }
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    if (tls && proxy !== undefined) {
      this.#phase = "tunnel";
      socket.write(writeConnect(this.#options.origin, proxy)); // the first bytes on a new connection always fit
    } else if (tls || proxy?.protocol === "https:") {
      this.#phase = "handshake";
      this.#resume(socket);
    } else {
      this.#finish(socket);
    }
  }

  /** The runtime takes a session only now, before its first bytes. */
  #resume(socket: Socket<SocketListener>): void {
    const { session } = this.#options;
    if (session !== null) socket.setSession(session);
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
    const { host, tls } = this.#options.origin;
    const name = unbracket(host);
    if (!tls || isIP(name) === 0) return undefined;
    const certificate = socket.getPeerCertificate();
    return process.getBuiltinModule("node:tls").checkServerIdentity(name, certificate);
  }

  #readTunnelReply(chunk: Buffer): void {
    this.#proxyReply.add(chunk);
    const bytes = this.#proxyReply.view();
    const end = this.#search.findEnd(bytes, 0);
    if (end < 0) {
      if (bytes.length > MAX_HEAD_BYTES) this.#fail("connect", "the proxy's response head is too large");
      return;
    }
    const status = readStatus(bytes, end - 2);
    if (status < 200 || status > 299 || end < bytes.length) {
      this.#fail("connect", `the proxy refused the tunnel (status ${status})`);
      return;
    }
    const { host, ca } = this.#options.origin;
    const outer = this.#socket;
    if (outer === null) return;
    this.#phase = "handshake";
    outer.data = IGNORE_EVENTS; // it still reports the encrypted bytes
    outer.upgradeTLS<SocketListener>({
      data: this,
      tls: tlsOptions(host, ca),
      socket: { ...this.#listen(), open: (socket) => this.#enterTunnel(socket) },
    });
  }

  #enterTunnel(socket: Socket<SocketListener>): void {
    this.#socket = socket;
    this.#resume(socket);
  }

  #finish(socket: Socket<SocketListener>): void {
    this.#phase = "done";
    this.#deadline.disarm();
    socket.data = this.#options.connected(socket);
  }

  #failToConnect(error: unknown): void {
    this.#options.addresses.forget();
    const shortage = explainShortage(error);
    if (shortage !== null) this.#fail("shortage", shortage, error);
    else this.#fail("connect", getErrorMessage(error), error);
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    if (this.#phase === "done" || this.#phase === "cancelled") return;
    this.cancel();
    const { host, port, proxy } = this.#options.origin;
    const place = proxy === undefined ? `${host}:${port}` : `${host}:${port} through ${proxy.host}`;
    this.#options.failed(kind, `${place}: ${message}`, cause);
  }
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
  const authorization = proxyAuthorization(proxy);
  const credential = authorization === null ? "" : `proxy-authorization: ${authorization}\r\n`;
  return `CONNECT ${host}:${port} HTTP/1.1\r\nhost: ${host}:${port}\r\n${credential}\r\n`;
}

/** Reads the user name and password of the proxy's URL. */
export function proxyAuthorization(proxy: URL): string | null {
  if (proxy.username === "" && proxy.password === "") return null;
  // People write passwords with percent signs that escape nothing.
  const pair = `${proxy.username}:${proxy.password}`.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return `Basic ${Buffer.from(pair, "latin1").toString("base64")}`;
}

/** The host whose addresses are dialled. */
export function hostToDial({ host, proxy }: Origin): string {
  return unbracket(proxy === undefined ? host : proxy.hostname);
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
