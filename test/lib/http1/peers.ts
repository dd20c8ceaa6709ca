// The other sides that the tests of HTTP/1.1 talk to, on node:net, which knows
// nothing of our code: an upstream that follows a script, and a bare client.

import { connect, createServer, type Server as NetServer, type Socket } from "node:net";
import type { Exchange } from "../../../src/lib/http/exchange.ts";
import { UpstreamFault } from "../../../src/lib/http/faults.ts";
import { type Origin } from "../../../src/lib/http/upstream.ts";
import type { PulledResponse, PullRequest } from "../http/pull.ts";

export interface SeenRequest {
  readonly head: string;
  readonly body: Buffer;
  /** 1 for the first request on its connection. */
  readonly turn: number;
  /** 1 for the first connection. */
  readonly connection: number;
}

export interface Upstream extends AsyncDisposable {
  readonly port: number;
  readonly origin: Origin;
  readonly requests: SeenRequest[];
  /** Connections accepted so far. */
  readonly connections: number;
  readonly sockets: Set<Socket>;
  /** Resolves when all connections accepted so far have closed. */
  closed(): Promise<void>;
}

/** `onRequest` is called with each whole request (of known length). */
export async function startUpstream(
  onRequest: (socket: Socket, request: SeenRequest) => void,
  onConnection: (socket: Socket) => void = () => {},
  listenWith: (accept: (socket: Socket) => void) => NetServer = createServer,
): Promise<Upstream> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const closings: Promise<void>[] = [];
  let connections = 0;
  const server = listenWith((socket) => {
    const connection = ++connections;
    sockets.add(socket);
    closings.push(new Promise((resolve) => socket.once("close", () => resolve())));
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    onConnection(socket);
    let pieces: Buffer[] = [];
    let size = 0;
    /** Joining the pieces of a body of 30 MB with each packet would take minutes on a busy machine. */
    let needed = 0;
    let turn = 0;
    socket.on("data", (bytes: Buffer) => {
      pieces.push(bytes);
      size += bytes.length;
      if (size < needed) return;
      let held: Buffer = Buffer.concat(pieces);
      for (let seen = takeRequest(held); seen !== null; seen = takeRequest(held)) {
        held = seen.rest;
        const request = { head: seen.head, body: seen.body, turn: ++turn, connection };
        requests.push(request);
        onRequest(socket, request);
      }
      pieces = [held];
      size = held.length;
      needed = countNeeded(held);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    origin: { tls: false, host: "127.0.0.1", port },
    requests,
    get connections() {
      return connections;
    },
    sockets,
    closed: async () => void (await Promise.all(closings)),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The size of the request that `held` begins, once its head is complete. */
function countNeeded(held: Buffer): number {
  const end = held.indexOf("\r\n\r\n");
  if (end < 0) return 0;
  return end + 4 + Number(/^content-length: (\d+)$/m.exec(held.toString("latin1", 0, end))?.[1] ?? 0);
}

function takeRequest(held: Buffer): { head: string; body: Buffer; rest: Buffer } | null {
  const end = held.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = held.toString("latin1", 0, end);
  const length = Number(/^content-length: (\d+)$/m.exec(head)?.[1] ?? 0);
  if (held.length < end + 4 + length) return null;
  return { head, body: held.subarray(end + 4, end + 4 + length), rest: held.subarray(end + 4 + length) };
}

const DEADLINES = { connectMs: 10_000, firstByteMs: 10_000, idleMs: 10_000 };

export function outbound(origin: Origin, more: Partial<PullRequest> = {}): PullRequest {
  return { origin, method: "GET", target: "/", fields: [], body: null, deadlines: DEADLINES, ...more };
}

export async function readAll(inbound: PulledResponse): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await inbound.read(); chunk !== null; chunk = await inbound.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** How an attempt fails; null when it does not. */
export async function faultOf(
  attempt: Promise<unknown>,
): Promise<{ kind: string; answered: boolean } | null> {
  try {
    await attempt;
    return null;
  } catch (error) {
    if (error instanceof UpstreamFault) return { kind: error.kind, answered: error.sent === "yes" };
    throw error;
  }
}

export interface BareClient extends Disposable {
  readonly socket: Socket;
  bytes(): Buffer;
  text(): string;
  /** Resolves as soon as the text has come; rejects when the connection has ended without it. */
  until(text: string, times?: number): Promise<string>;
  /** How the connection ended: `end` by FIN, else the code of the error. */
  readonly ended: Promise<string>;
}

export async function openClient(
  port: number,
  options: { allowHalfOpen?: boolean } = {},
): Promise<BareClient> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: options.allowHalfOpen ?? false });
  const chunks: Buffer[] = [];
  let wake = Promise.withResolvers<void>();
  let over = false;
  const ended = Promise.withResolvers<string>();
  const stop = (how: string): void => {
    over = true;
    ended.resolve(how);
    wake.resolve();
  };
  socket.on("data", (bytes: Buffer) => {
    chunks.push(bytes);
    const woken = wake;
    wake = Promise.withResolvers<void>();
    woken.resolve();
  });
  socket.on("error", (error: Error & { code?: string }) => stop(error.code ?? error.message));
  socket.on("end", () => stop("end"));
  socket.on("close", () => stop("closed"));
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const bytes = (): Buffer => Buffer.concat(chunks);
  const text = (): string => bytes().toString("latin1");
  return {
    socket,
    bytes,
    text,
    async until(wanted, times = 1) {
      while (text().split(wanted).length <= times) {
        if (over) throw new Error(`ended before ${JSON.stringify(wanted)} came: ${JSON.stringify(text())}`);
        await wake.promise;
      }
      return text();
    },
    ended: ended.promise,
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Why the body of an exchange cannot be read. */
export async function readFailing(exchange: Exchange): Promise<unknown> {
  try {
    return await exchange.readBody(100);
  } catch (error) {
    return error;
  }
}

/** Resolves when the client of an exchange has taken everything, or has left. */
export function drained(exchange: Pick<Exchange, "onceSent">): Promise<void> {
  return new Promise((resolve) => exchange.onceSent(resolve));
}
