// A minimal HTTP/1.1 server on a raw socket for the simulated upstream. It reads whole requests (with a content-length)
// and performs the steps of a plan, one write after another. A server of the runtime cannot perform all of these steps.

import type { Socket, TCPSocketListener } from "bun";
import type { Field } from "../../../src/lib/http/fields.ts";
import type { Step } from "./script.ts";

export interface WireRequest {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly Field[];
  readonly body: Uint8Array;
  /** The number of the connection, and of the request on it. */
  readonly connection: number;
  readonly turn: number;
}

/** How the answer to a request ended: complete, cut by us, or the peer left first. */
export type ReplyOutcome = "answered" | "broken" | "left";

export interface Reply {
  readonly steps: Iterable<Step>;
  /** Called with the number of bytes that the kernel has taken. */
  readonly took?: (bytes: number) => void;
  /** Called with how the answer ended. If it is called twice, only the first call counts. */
  readonly ended?: (how: ReplyOutcome) => void;
  /** After the steps, the connection belongs to another protocol. Returns the reader of its bytes. */
  readonly upgrade?: (wire: UpgradedWire) => (bytes: Uint8Array) => void;
}

export interface UpgradedWire {
  /** Resolves when the kernel has taken all bytes, or the peer has left. */
  write(bytes: Uint8Array): Promise<void>;
  end(): void;
  readonly gone: boolean;
}

type Respond = (request: WireRequest) => Promise<Reply>;

/** A reset waits this long, so that the peer can read what was written before. */
const RESET_DELAY_MS = 10;

interface WireConnection {
  readonly connection: number;
  /** Bytes that were received and not parsed yet. Parsing waits until `needed` bytes are there. */
  parts: Uint8Array[];
  size: number;
  needed: number;
  turns: number;
  busy: boolean;
  gone: boolean;
  readonly left: PromiseWithResolvers<void>;
  /** Called when the kernel can take more bytes. A write may wait for this call. */
  drained(): void;
  reply: Reply | null;
  /** Reads the bytes after an upgrade. */
  upgraded: ((bytes: Uint8Array) => void) | null;
}

export interface WireServer {
  readonly port: number;
  stop(): void;
}

export function listenOnWire(port: number, respond: Respond): WireServer {
  let connections = 0;
  const sockets = new Set<Socket<WireConnection>>();
  const leave = (socket: Socket<WireConnection>): void => {
    sockets.delete(socket);
    const peer = socket.data;
    peer.gone = true;
    peer.reply?.ended?.("left");
    peer.left.resolve();
    peer.drained();
  };
  const listener: TCPSocketListener<WireConnection> = Bun.listen<WireConnection>({
    hostname: "127.0.0.1",
    port,
    socket: {
      open(socket) {
        connections += 1;
        socket.data = openConnection(connections);
        sockets.add(socket);
      },
      data(socket, bytes) {
        const peer = socket.data;
        if (peer.upgraded !== null) {
          peer.upgraded(Uint8Array.from(bytes));
          return;
        }
        peer.parts.push(Uint8Array.from(bytes));
        peer.size += bytes.length;
        if (!peer.busy) void serveRequests(socket, respond);
      },
      drain: (socket) => socket.data.drained(),
      end: leave,
      close: leave,
      error: leave,
    },
  });
  return {
    port: listener.port,
    stop() {
      listener.stop(true);
      for (const socket of sockets) socket.terminate();
    },
  };
}

function openConnection(connection: number): WireConnection {
  const left = Promise.withResolvers<void>();
  return {
    connection,
    parts: [],
    size: 0,
    needed: 0,
    turns: 0,
    busy: false,
    gone: false,
    left,
    drained() {},
    reply: null,
    upgraded: null,
  };
}

async function serveRequests(socket: Socket<WireConnection>, respond: Respond): Promise<void> {
  const peer = socket.data;
  peer.busy = true;
  for (let request = takeRequest(peer); request !== null && !peer.gone; request = takeRequest(peer)) {
    peer.reply = await respond(request);
    const { reply } = peer;
    const outcome = await runSteps(socket, reply);
    reply.ended?.(outcome);
    peer.reply = null;
    if (reply.upgrade !== undefined && !peer.gone) return upgrade(socket, reply);
  }
  peer.busy = false;
}

function upgrade(socket: Socket<WireConnection>, reply: Reply): void {
  const { data: peer } = socket;
  peer.upgraded =
    reply.upgrade?.({
      write: (bytes) => write(socket, bytes, reply),
      end: () => void socket.end(),
      get gone() {
        return peer.gone;
      },
    }) ?? null;
  const early = Buffer.concat(peer.parts);
  peer.parts = [];
  if (early.length > 0) peer.upgraded?.(early);
}

async function runSteps(socket: Socket<WireConnection>, reply: Reply): Promise<ReplyOutcome> {
  const { data: peer } = socket;
  for (const step of reply.steps) {
    if (peer.gone) return "left";
    if (step instanceof Uint8Array) await write(socket, step, reply);
    else if (step === "reset" || step === "fin" || step === "close")
      return endConnection(socket, step, reply);
    else if (step === "stall") await peer.left.promise;
    else await Promise.race([step.pass(), peer.left.promise]);
  }
  return peer.gone ? "left" : "answered";
}

async function endConnection(
  socket: Socket<WireConnection>,
  how: "reset" | "fin" | "close",
  reply: Reply,
): Promise<ReplyOutcome> {
  const ending = how === "close" ? "answered" : "broken";
  if (how === "reset") await Bun.sleep(RESET_DELAY_MS);
  reply.ended?.(ending); // before the socket reports that it is closed
  if (how === "reset") socket.terminate();
  else socket.end();
  return ending;
}

/** Writes all bytes, however slowly the peer reads. Then the event loop turns once before the next write. */
async function write(socket: Socket<WireConnection>, bytes: Uint8Array, reply: Reply): Promise<void> {
  const { data: peer } = socket;
  for (let rest = bytes; rest.length > 0 && !peer.gone;) {
    const drained = new Promise<void>((resolve) => (peer.drained = resolve));
    const taken = Math.max(0, socket.write(rest));
    reply.took?.(taken);
    rest = rest.subarray(taken);
    if (rest.length > 0) await drained;
  }
  await new Promise(setImmediate);
}

function takeRequest(peer: WireConnection): WireRequest | null {
  if (peer.size === 0 || peer.size < peer.needed) return null;
  const all = Buffer.concat(peer.parts);
  peer.parts = [all];
  const end = all.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [first = "", ...lines] = all.toString("latin1", 0, end).split("\r\n");
  const fields = lines.map(readField);
  const length = Number(fields.find(([name]) => name === "content-length")?.[1] ?? 0);
  peer.needed = end + 4 + length;
  if (all.length < peer.needed) return null;
  const body = all.subarray(end + 4, peer.needed);
  peer.parts = [all.subarray(peer.needed)];
  peer.size -= peer.needed;
  peer.needed = 0;
  peer.turns += 1;
  const [method = "", target = ""] = first.split(" ");
  return { method, target, fields, body, connection: peer.connection, turn: peer.turns };
}

function readField(line: string): Field {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}
