// Opens a connection to an origin: TCP, then TLS with the certificate always verified, through a proxy if the origin has
// one. TLS goes through the proxy's CONNECT. A plain request goes to the proxy itself.

import { isIP } from "node:net";
import type { TLSOptions } from "bun";
import { getErrorMessage } from "../errors.ts";
import { Deadline } from "../time/deadline.ts";
import { explainShortage, type FaultKind, UpstreamFault } from "./faults.ts";
import { readHead } from "./head.ts";
import { type Origin, portOf } from "./upstream.ts";
import { Wire, WIRE_EVENTS } from "./wire.ts";

/** The system checks a quiet connection this often. It then notices within seconds that a path is gone, and routers keep
 *  the path open. */
const KEEP_ALIVE_MS = 45_000;

/** Rejects with UpstreamFault. */
export async function dial(origin: Origin, connectMs: number): Promise<Wire> {
  const late = Promise.withResolvers<never>();
  const deadline = new Deadline(() => late.reject(new Error("the connection was not established in time")));
  deadline.arm(connectMs);
  const steps = new Steps(origin);
  try {
    return await Promise.race([steps.run().catch((error: unknown) => steps.fail(error)), late.promise]);
  } catch (error) {
    steps.wire.terminate();
    throw error instanceof UpstreamFault ? error : faultOf(origin, "connect_timeout", error);
  } finally {
    deadline.disarm();
  }
}

class Steps {
  readonly #origin: Origin;
  wire = new Wire();
  #kind: FaultKind = "connect";

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  async run(): Promise<Wire> {
    const { tls, host, port, proxy, ca } = this.#origin;
    if (proxy !== undefined && tls && proxy.protocol !== "http:")
      throw new Error("TLS through an https: proxy is not supported; use an http: proxy");
    const to = proxy === undefined ? { name: host, port } : { name: proxy.hostname, port: portOf(proxy) };
    const isSecure = proxy === undefined ? tls : proxy.protocol === "https:";
    const target = { hostname: unbracket(to.name), port: to.port, data: this.wire, socket: WIRE_EVENTS };
    await Bun.connect<Wire>(isSecure ? { ...target, tls: tlsOptions(to.name, ca) } : target);
    this.wire.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
    if (isSecure) await this.#shake();
    if (tls && proxy !== undefined) await this.#tunnel(proxy);
    return this.wire;
  }

  async #tunnel(proxy: URL): Promise<void> {
    const { host, port, ca } = this.#origin;
    const outer = this.wire;
    outer.write(
      Buffer.from(
        `CONNECT ${host}:${port} HTTP/1.1\r\nhost: ${host}:${port}\r\n${writeProxyLogin(proxy)}\r\n`,
        "latin1",
      ),
    );
    const reply = await readHead(outer, Infinity, Infinity);
    if (reply === null) throw new Error("the connection closed before it was established");
    const { status } = reply.head;
    if (status < 200 || status > 299 || reply.end < reply.bytes.length)
      throw new Error(`the proxy refused the tunnel (status ${status})`);
    const { socket } = outer;
    if (socket === null) return;
    socket.data = new Wire(); // it still reports the encrypted bytes
    socket.data.isClosed = true;
    this.wire = new Wire();
    socket.upgradeTLS<Wire>({ data: this.wire, tls: tlsOptions(host, ca), socket: WIRE_EVENTS });
    await this.#shake();
  }

  async #shake(): Promise<void> {
    this.#kind = "tls";
    await this.wire.secured;
    const { host, tls } = this.#origin;
    const name = unbracket(host);
    const { socket } = this.wire;
    // Without a server name, the runtime does not compare the certificate of a tunnelled connection with anything.
    if (!tls || isIP(name) === 0 || socket === null) return;
    const certificate = socket.getPeerCertificate();
    const fault = process.getBuiltinModule("node:tls").checkServerIdentity(name, certificate);
    if (fault !== undefined) throw fault;
  }

  fail(error: unknown): never {
    const shortage = this.#kind === "connect" ? explainShortage(error) : null;
    if (shortage === null) throw faultOf(this.#origin, this.#kind, error);
    throw faultOf(this.#origin, "shortage", new Error(shortage, { cause: error }));
  }
}

function faultOf(origin: Origin, kind: FaultKind, error: unknown): UpstreamFault {
  return new UpstreamFault(kind, `${describePlace(origin)}: ${getErrorMessage(error)}`, false, error);
}

export function describePlace({ host, port, proxy }: Origin): string {
  return proxy === undefined ? `${host}:${port}` : `${host}:${port} through ${proxy.host}`;
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
