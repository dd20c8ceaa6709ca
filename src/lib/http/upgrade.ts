// Opens a WebSocket to an upstream: the client's side of RFC 6455's opening handshake. No extension and no subprotocol is
// negotiated. The connection serves nothing else from then on.

import { Call } from "./call.ts";
import { type Field, Fields, Malformed } from "./fields.ts";
import { hasToken } from "./head.ts";
import { UpstreamPeer } from "./peer.ts";
import {
  type Answer,
  readUpTo,
  type SocketReply,
  type SocketRequest,
  type StartedSocket,
} from "./upstream.ts";
import type { Pool } from "./pool.ts";

const ACCEPT_SALT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** This much of a refusal's body is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** `start` sends the call. */
export function openUpgrade(request: SocketRequest, pool: Pool, start: (call: Call) => void): StartedSocket {
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("base64");
  const handshake: readonly Field[] = [
    ["upgrade", "websocket"],
    ["sec-websocket-version", "13"],
    ["sec-websocket-key", key],
  ];
  const { promise, resolve, reject } = Promise.withResolvers<SocketReply>();
  promise.catch(() => {}); // nobody may be waiting
  let opened: UpstreamPeer | null = null;
  const fields = Fields.of(request.fields).addAll(handshake);
  const call = new Call({ ...request, method: "GET", fields, body: null }, pool, (wire, reply) => {
    const { status, fields: own } = reply.head;
    requireFit(own, key);
    opened = new UpstreamPeer(wire, request.limits, reply.bytes.subarray(reply.end));
    resolve({ status, fields: own, body: new Uint8Array(0), socket: opened });
  });
  start(call);
  call.answer.then(readRefusal).then(resolve, reject);
  return { reply: promise, cancel: () => (opened === null ? call.cancel() : opened.reset()) };
}

/** A response that is not the 101. Its body may be cut. */
async function readRefusal(answer: Answer): Promise<SocketReply> {
  const { bytes } = await readUpTo(answer, MAX_REFUSAL_BYTES);
  const { status, fields } = answer.head;
  return { status, fields, body: bytes, socket: null };
}

/** Throws Malformed if a server's 101 does not fit. */
function requireFit(fields: Fields, key: string): void {
  const names = (name: string, token: string): boolean =>
    fields.getAll(name).some((value) => hasToken(value, token));
  const accept = Bun.CryptoHasher.hash("sha1", key + ACCEPT_SALT, "base64");
  const fits = {
    upgrade: names("upgrade", "websocket"),
    connection: names("connection", "upgrade"),
    "sec-websocket-accept": fields.get("sec-websocket-accept") === accept,
    // Nobody offered one.
    "sec-websocket-extensions": fields.get("sec-websocket-extensions") === undefined,
    "sec-websocket-protocol": fields.get("sec-websocket-protocol") === undefined,
  };
  const [fault] = Object.entries(fits).find(([, isFit]) => !isFit) ?? [];
  if (fault !== undefined) throw new Malformed(`an invalid WebSocket handshake: its field ${fault}`);
}
