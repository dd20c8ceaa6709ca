// A new connection to an origin: TCP, TLS with the certificate always verified,
// through a proxy when the origin names one (CONNECT for TLS; plain requests go
// to the proxy itself). What this file does not own: what is sent once the
// connection stands (wire.ts).

import type { Socket, SocketHandler, TLSOptions } from "bun";
import { Deadline } from "../../deadline.ts";
import { Gathering } from "../bytes.ts";
import { findHeadEnd, MAX_HEAD_BYTES, parseAnswer } from "../head.ts";
import { Malformed } from "../malformed.ts";
import { explainShortage, leavesRoom, SPARED, TOO_MANY_FILES } from "../shortage.ts";
import type { FaultKind, Origin } from "../types.ts";

/** Who hears what a socket reports. */
export interface Peer {
  receive(chunk: Buffer): void;
  drain(): void;
  /** `error` is null or undefined after a clean end. */
  closed(error: unknown): void;
}

export interface DialWish {
  readonly origin: Origin;
  readonly connectMs: number;
  /** The connection stands. Returns who hears of it from now on. */
  connected(socket: Socket<Peer>): Peer;
  failed(kind: FaultKind, message: string, cause?: unknown): void;
}

/** `tunnel`: the proxy is being asked. `left`: nobody waits any more, what still opens is closed. */
type Stage = "connecting" | "tunnel" | "handshake" | "done" | "left";

/** Exactly one of the wish's `connected` and `failed` is called, unless `cancel` is called before. */
export class Dial implements Peer {
  readonly #wish: DialWish;
  readonly #deadline = new Deadline(() => this.#fail("connect_timeout", "no connection in time"));
  readonly #reply = new Gathering();
  #stage: Stage = "connecting";
  /** Null while the runtime connects: that cannot be interrupted. */
  #socket: Socket<Peer> | null = null;

  constructor(wish: DialWish) {
    this.#wish = wish;
    this.#deadline.arm(wish.connectMs);
    Promise.try(() => this.#connect()).catch((error: unknown) => {
      this.#fail("connect", error instanceof Error ? error.message : String(error), error);
    });
  }

  /** Nobody waits for the connection any more. */
  cancel(): void {
    if (this.#stage === "done") return;
    this.#stage = "left";
    this.#deadline.disarm();
    this.#socket?.terminate();
  }

  receive(chunk: Buffer): void {
    if (this.#stage === "tunnel") this.#readTunnelReply(chunk);
  }

  drain(): void {}

  closed(error: unknown): void {
    if (this.#stage === "handshake") this.#fail("tls", "closed in the TLS handshake", error);
    else this.#fail("connect", "closed before the connection stood", error);
  }

  async #connect(): Promise<void> {
    const { tls, host, port, proxy, ca } = this.#wish.origin;
    const common = { data: this, socket: this.#listen() };
    if (proxy === undefined) {
      const target = { ...common, hostname: unbracket(host), port };
      await (tls ? Bun.connect<Peer>({ ...target, tls: tlsOptions(host, ca) }) : Bun.connect<Peer>(target));
      return;
    }
    const target = { ...common, hostname: unbracket(proxy.hostname), port: portOf(proxy) };
    if (proxy.protocol === "http:") await Bun.connect<Peer>(target);
    else if (tls) throw new Error("TLS through an https: proxy is beyond this runtime; use an http: proxy");
    else await Bun.connect<Peer>({ ...target, tls: tlsOptions(proxy.hostname, ca) });
  }

  #listen(): SocketHandler<Peer> {
    return {
      open: (socket) => this.#open(socket),
      handshake: (socket, authorized, error) => this.#shake(socket, authorized, error),
      data: (socket, chunk) => socket.data.receive(chunk),
      drain: (socket) => socket.data.drain(),
      close: (socket, error) => socket.data.closed(error),
      error: (socket) => {
        socket.terminate(); // `close` says the rest
      },
      connectError: (_, error) => {
        const shortage = explainShortage(error);
        if (shortage === null) this.#fail("connect", error.message, error);
        else this.#fail("shortage", shortage, error);
      },
    };
  }

  #open(socket: Socket<Peer>): void {
    if (this.#stage === "left") {
      socket.terminate();
      return;
    }
    this.#socket = socket;
    const { tls, proxy } = this.#wish.origin;
    if (this.#stage === "handshake") return; // inside the tunnel
    if (!leavesRoom(socket, SPARED)) {
      this.#fail("shortage", TOO_MANY_FILES);
      return;
    }
    if (tls && proxy !== undefined) {
      this.#stage = "tunnel";
      socket.write(writeConnect(this.#wish.origin, proxy)); // the first bytes on a fresh connection always fit
    } else if (tls || proxy?.protocol === "https:") {
      this.#stage = "handshake";
    } else {
      this.#stand(socket);
    }
  }

  /** The runtime has verified the chain and the name; one word of doubt from it is enough. */
  #shake(socket: Socket<Peer>, authorized: boolean, error: Error | null): void {
    if (this.#stage !== "handshake") return;
    if (authorized && error === null && socket.authorized) this.#stand(socket);
    else this.#fail("tls", error?.message ?? "the certificate could not be verified", error);
  }

  #readTunnelReply(chunk: Buffer): void {
    this.#reply.add(chunk);
    const bytes = this.#reply.view();
    const end = findHeadEnd(bytes, 0);
    if (end < 0) {
      if (bytes.length > MAX_HEAD_BYTES) this.#fail("connect", "the proxy's answer has no end");
      return;
    }
    const status = readStatus(bytes.toString("latin1", 0, end - 4));
    if (status < 200 || status > 299 || end < bytes.length) {
      this.#fail("connect", `the proxy refused the tunnel (status ${status})`);
      return;
    }
    const { host, ca } = this.#wish.origin;
    const outer = this.#socket;
    if (outer === null) return;
    this.#stage = "handshake";
    outer.data = DEAF; // it goes on to report the ciphertext
    outer.upgradeTLS<Peer>({ data: this, tls: tlsOptions(host, ca), socket: this.#listen() });
  }

  #stand(socket: Socket<Peer>): void {
    this.#stage = "done";
    this.#deadline.disarm();
    socket.data = this.#wish.connected(socket);
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    if (this.#stage === "done" || this.#stage === "left") return;
    this.cancel();
    const { host, port, proxy } = this.#wish.origin;
    const place = proxy === undefined ? `${host}:${port}` : `${host}:${port} through ${proxy.host}`;
    this.#wish.failed(kind, `${place}: ${message}`, cause);
  }
}

const DEAF: Peer = { receive() {}, drain() {}, closed() {} };

function readStatus(head: string): number {
  try {
    return parseAnswer(head).status;
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

/** From the user info of the proxy's URL. */
export function proxyAuthorization(proxy: URL): string | null {
  if (proxy.username === "" && proxy.password === "") return null;
  const pair = decodeEscapes(`${proxy.username}:${proxy.password}`);
  return `Basic ${pair.toString("base64")}`;
}

/** Byte by byte, and a per cent sign that escapes nothing stands for itself: so people write passwords. */
function decodeEscapes(text: string): Buffer {
  const bytes = text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number(`0x${hex}`)),
  );
  return Buffer.from(bytes, "latin1");
}

function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

/** IPv6 literals stand in brackets in URLs and Host fields, not in socket addresses. */
function unbracket(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}

function tlsOptions(host: string, ca: string | undefined): TLSOptions {
  const options = { serverName: unbracket(host), rejectUnauthorized: true };
  return ca === undefined ? options : { ...options, ca: [...defaultAuthorities(), ca] };
}

let authorities: string[] | null = null;

/** Naming an authority replaces the known ones, so they are named too. Loaded late: node:tls takes 20 ms. */
function defaultAuthorities(): string[] {
  authorities ??= process.getBuiltinModule("node:tls").getCACertificates("default");
  return authorities;
}
