// Accepts a client's WebSocket if a channel's upstream accepts one.

import { GatewayError } from "../../lib/errors.ts";
import { Fields } from "../../lib/http/fields.ts";
import { fail, finish } from "../bill/finish.ts";
import type { Gateway } from "../gateway.ts";
import { admit } from "../intake/authenticate.ts";
import { readSender } from "../intake/client.ts";
import { findMatch } from "../intake/match.ts";
import { secretsOf } from "../intake/secrets.ts";
import type { Request } from "../request.ts";
import { refuseOwnCall } from "../upstream/address.ts";
import { SocketConnection } from "./connection.ts";
import { dial } from "./dial.ts";

/** 16 bytes in base64. */
const NONCE = /^[A-Za-z\d+/]{22}==$/;

/** `r`, the handshake, ends when its connection has ended
 *  and all responses have lines. */
export function serveWebSocket(r: Request, newId: () => string, gateway: Gateway): void {
  gateway.finished.enter();
  accept(r, newId, gateway).then(
    () => gateway.finished.leave(),
    (thrown: unknown) => finish(r, fail(r, thrown, gateway), gateway),
  );
}

async function accept(r: Request, newId: () => string, gateway: Gateway): Promise<void> {
  const { exchange } = r;
  refuseOwnCall(exchange);
  const key = admit(r, gateway);
  r.query = secretsOf(gateway.catalog).cleanQuery(r.query);
  const [version, nonce = ""] = ["version", "key"].map((name) => exchange.field(`sec-websocket-${name}`));
  const text = "The WebSocket handshake is invalid: it needs version 13 and a key.";
  if (version !== "13" || !NONCE.test(nonce)) throw new GatewayError("bad_request", text);
  r.candidates = findMatch(key.group, null);
  r.client = readSender(r, gateway.catalog);
  gateway.channels.prepare(r);
  const upstream = await dial(r, r, gateway);
  const ended = Promise.withResolvers<number>();
  const name = `WebSocket of the key "${key.name}"`;
  const { observer } = gateway;
  const fields = new Fields().addAll(upstream.fields).add("x-request-id", r.id);
  const isAccepted = exchange.acceptWebSocket(fields, (client) => {
    gateway.openSockets += 1;
    observer.notice("note", `${name} opened on the channel "${upstream.candidate.channel.name}"`);
    const options = { call: r, gateway, newId, ended: ended.resolve };
    return new SocketConnection(options, client, upstream);
  });
  if (!isAccepted) {
    upstream.socket.reset();
    throw new GatewayError("client_gone", "The client disconnected.");
  }
  const responses = await ended.promise;
  gateway.openSockets -= 1;
  observer.notice("note", `${name} closed, responses on it: ${responses}`);
}
