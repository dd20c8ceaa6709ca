// Opens a connection to an origin, through its proxy:
// TCP, then TLS, always verified.

import { closeSync, openSync } from "node:fs";
import { isIP } from "node:net";
import { devNull } from "node:os";
import type { TLSOptions } from "bun";
import { codeOf, messageOf } from "../errors.ts";
import { Deadline } from "../time/deadline.ts";
import { readHead } from "./message.ts";
import { type FaultKind, type Origin, originOf, UpstreamFault } from "./upstream.ts";
import { Wire, WIRE_EVENTS } from "./wire.ts";

/** TCP's probes keep the path open and notice a loss. */
const KEEP_ALIVE_MS = 45_000;

/** Rejects with UpstreamFault. */
export async function dial(origin: Origin, connectMs: number): Promise<Wire> {
  const wire = new Wire();
  const late = Promise.withResolvers<never>();
  const deadline = new Deadline(() =>
    late.reject(faultOf(origin, "connect_timeout", new Error("the connection was not established in time"))),
  );
  deadline.arm(connectMs);
  try {
    await Promise.race([connect(origin, wire), late.promise]);
    return wire;
  } catch (error) {
    wire.terminate();
    if (error instanceof UpstreamFault) throw error;
    const shortage = explainShortage(error);
    if (shortage === null) throw faultOf(origin, "connect", error);
    throw faultOf(origin, "shortage", new Error(shortage, { cause: error }));
  } finally {
    deadline.disarm();
  }
}

async function connect(origin: Origin, wire: Wire): Promise<void> {
  const { tls, host, proxy, ca } = origin;
  if (proxy !== undefined && proxy.protocol !== "http:")
    throw new Error("use a proxy whose URL begins with http:");
  const to = proxy === undefined ? origin : originOf(proxy);
  const target = { hostname: unbracket(to.host), port: to.port, data: wire, socket: WIRE_EVENTS };
  await Bun.connect<Wire>(to.tls ? { ...target, tls: tlsOptions(host, ca) } : target);
  wire.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
  if (tls && proxy !== undefined) await openTunnel(origin, proxy, wire);
  if (!tls) return;
  try {
    await wire.secured.promise;
    requireAddress(origin, wire);
  } catch (error) {
    throw faultOf(origin, "tls", error);
  }
}

async function openTunnel({ host, port, ca }: Origin, proxy: URL, wire: Wire): Promise<void> {
  const place = `${host}:${port}`;
  wire.write(
    Buffer.from(`CONNECT ${place} HTTP/1.1\r\nhost: ${place}\r\n${writeProxyLogin(proxy)}\r\n`, "latin1"),
  );
  const head = await readHead(wire, { firstByteMs: Infinity, idleMs: Infinity });
  if (head === null || wire.socket === null)
    throw new Error("the connection closed before it was established");
  if (head.status < 200 || head.status > 299 || head.rest.length > 0)
    throw new Error(`the proxy refused the tunnel (status ${head.status})`);
  const outer = wire.socket;
  // This closed wire drops the encrypted bytes that still come.
  outer.data = new Wire();
  outer.data.isClosed = true;
  outer.upgradeTLS<Wire>({ data: wire, tls: tlsOptions(host, ca), socket: WIRE_EVENTS });
}

/** In a tunnel, the runtime does not check whether a certificate is for an IP address. */
function requireAddress({ host }: Origin, { socket }: Wire): void {
  const name = unbracket(host);
  if (isIP(name) === 0 || socket === null) return;
  const certificate = socket.getPeerCertificate();
  const fault = process.getBuiltinModule("node:tls").checkServerIdentity(name, certificate);
  if (fault !== undefined) throw fault;
}

function faultOf({ host, port, proxy }: Origin, kind: FaultKind, error: unknown): UpstreamFault {
  const place = proxy === undefined ? `${host}:${port}` : `${host}:${port} through ${proxy.host}`;
  return new UpstreamFault(kind, `${place}: ${messageOf(error)}`, error);
}

export function writeProxyLogin({ username, password }: URL): string {
  if (username === "" && password === "") return "";
  // People write passwords with percent signs that escape nothing.
  const pair = `${username}:${password}`.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return `proxy-authorization: Basic ${Buffer.from(pair, "latin1").toString("base64")}\r\n`;
}

/** IPv6 has no brackets in socket addresses. */
const unbracket = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

function tlsOptions(host: string, ca: string | undefined): TLSOptions {
  const name = unbracket(host);
  const options = { serverName: isIP(name) === 0 ? name : "", rejectUnauthorized: true };
  return ca === undefined ? options : Object.assign(options, { secureContext: trustAlso(ca) });
}

const contexts = new Map<string, unknown>();

/** Trusts `ca` and the default authorities. Each context is kept: to create it takes 2.5 ms.
 *  node:tls is loaded late, because that takes 20 ms. */
function trustAlso(ca: string): unknown {
  return contexts.getOrInsertComputed(ca, () => {
    const { createSecureContext, getCACertificates } = process.getBuiltinModule("node:tls");
    return createSecureContext({ ca: [...getCACertificates("default"), ca] }).context;
  });
}

const TOO_MANY_FILES = "this process has too many open files and connections: raise its limit (ulimit -n)";
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: TOO_MANY_FILES,
  ENFILE: "this system has too many open files: raise its limit (fs.file-max)",
  ENOBUFS: "this system has no memory left for connections",
  ENOMEM: "this system has no memory left for connections",
  EADDRNOTAVAIL: "this system has no port left for a connection there (ip_local_port_range)",
};

function explainShortage(error: unknown): string | null {
  try {
    // Without a free descriptor, the runtime reports "connection refused".
    closeSync(openSync(devNull, "r"));
    return SHORTAGES[codeOf(error)] ?? null;
  } catch {
    return TOO_MANY_FILES;
  }
}
