// Starts what the tests of our HTTP client need: an upstream on node:net, which shares no code
// with the client, and the client itself.

import { onTestFinished } from "bun:test";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { createClient } from "../../../src/lib/http/client.ts";
import {
  type Body,
  type Origin,
  UpstreamFault,
  type UpstreamRequest,
} from "../../../src/lib/http/upstream.ts";

export interface SeenRequest {
  readonly head: string;
  readonly body: Buffer;
  /** 1 for the first request on its connection. */
  readonly turn: number;
  /** 1 for the first connection. */
  readonly connection: number;
}

export interface Upstream {
  readonly port: number;
  readonly origin: Origin;
  readonly requests: SeenRequest[];
  /** Connections accepted so far. */
  readonly connections: number;
  readonly sockets: Set<Socket>;
  /** Resolves when all connections accepted so far have closed. */
  closed(): Promise<void>;
  stop(): Promise<void>;
}

/** `onRequest` gets each complete request. The upstream reads no chunked bodies, and stops after the test. */
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
    /** The pieces are joined when this many bytes are there: joining 30 MB with each packet would take minutes. */
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
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(stop);
  const port = await listenOn(server);
  return {
    port,
    origin: { tls: false, host: "127.0.0.1", port },
    requests,
    get connections() {
      return connections;
    },
    sockets,
    closed: async () => void (await Promise.all(closings)),
    stop,
  };
}

/** Returns the port. The server closes when the test has finished. */
export async function listenOn(server: NetServer): Promise<number> {
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Opens a client that is closed when the test has finished. */
export function openClient(...options: Parameters<typeof createClient>): ReturnType<typeof createClient> {
  const client = createClient(...options);
  onTestFinished(() => client.close());
  return client;
}

/** Returns how many bytes the first request in `held` has, or 0 if its head is not complete yet. */
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

export function outbound(origin: Origin, more: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { origin, method: "GET", target: "/", fields: [], body: null, deadlines: DEADLINES, ...more };
}

export async function readAll(inbound: Body): Promise<Buffer> {
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
