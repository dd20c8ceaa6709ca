// Accepts a client's WebSocket: after its handshake and key are checked, and after the upstream has accepted one.

import type { Key } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { ClientGone } from "../../lib/http/exchange.ts";
import { Fields } from "../../lib/http/fields.ts";
import { fail, finish } from "../bill/finish.ts";
import type { Gateway } from "../gateway.ts";
import { admit } from "../intake/authenticate.ts";
import { NO_BODY } from "../intake/body.ts";
import { secretsOf } from "../intake/secrets.ts";
import { findMatch, type Match } from "../intake/match.ts";
import { readSender } from "../intake/client.ts";
import type { Request } from "../request.ts";
import { isShortage } from "../upstream/failure-rules.ts";
import { keepServing } from "../upstream/crossing.ts";
import { refuseOwnCall } from "../upstream/self-call.ts";
import { type Connecting, connect, type OpenConnection } from "./connect.ts";
import { SocketConnection } from "./connection.ts";

/** The request has ended when its connection has, and when every response on it has its line. */
export function serveWebSocket(r: Request, newId: () => string, gateway: Gateway): void {
  gateway.finished.enter();
  accept(r, newId, gateway).then(
    () => gateway.finished.leave(),
    (thrown: unknown) => finish(r, fail(r, thrown, gateway), gateway),
  );
}

async function accept(r: Request, newId: () => string, gateway: Gateway): Promise<void> {
  refuseOwnCall(r.exchange);
  const key = admit(r, gateway.catalog);
  r.query = secretsOf(gateway.catalog).cleanQuery(r.query);
  if (key.group.convert)
    throw new GatewayError("upgrade_required", "This group converts requests. Send them over HTTP.");
  requireHandshake(r);
  const match = findMatch(key, null);
  // Servers of Chat Completions have none.
  const candidates = keepServing(match.candidates, r.target.endpoint);
  const upstream = await openUpstream(r, { ...match, candidates }, gateway);
  await run({ call: r, key, newId }, upstream, gateway);
}

/** The server would refuse it, too, but only after an upstream has accepted. */
function requireHandshake({ exchange }: Request): void {
  const isValid =
    exchange.field("sec-websocket-version") === "13" &&
    /^[A-Za-z0-9+/]{22}==$/.test(exchange.field("sec-websocket-key") ?? "");
  if (!isValid)
    throw new GatewayError(
      "bad_request",
      "The WebSocket handshake is invalid: it needs version 13 and a key of 16 bytes in base64.",
    );
}

/** The first channel in order that accepts. */
async function openUpstream(call: Request, match: Match, gateway: Gateway): Promise<OpenConnection> {
  const { channels, sockets, now } = gateway;
  const { key, group, model, candidates } = match;
  const routed = { key, group, model, candidates, client: readSender(call, gateway.catalog), body: NO_BODY };
  for (const candidate of channels.choose(routed, now()).candidates) {
    if (!sockets.mayOffer(candidate.channel, now())) continue;
    const connecting = await connect(call, candidate, gateway);
    if (connecting.kind === "open") return connecting;
    if (connecting.kind === "failed") noteFailure(candidate, connecting, gateway);
    if (call.exchange.gone) throw new GatewayError("client_gone", "The client disconnected.");
  }
  throw new GatewayError(
    "upgrade_required",
    `No channel of the group "${group.name}" offers a WebSocket now. Send the request over HTTP.`,
  );
}

function noteFailure(
  candidate: Match["candidates"][number],
  { failure }: Extract<Connecting, { kind: "failed" }>,
  gateway: Gateway,
): void {
  if (isShortage(failure)) {
    if (failure.kind === "fault") gateway.raiseShortage(failure.fault.message);
  } else {
    gateway.channels.reportFailure(candidate, failure, gateway.now());
  }
}

interface Upgrade {
  readonly call: Request;
  readonly key: Key;
  readonly newId: () => string;
}

/** Resolves when both sides have ended. */
function run({ call, key, newId }: Upgrade, upstream: OpenConnection, gateway: Gateway): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const { observer, sockets } = gateway;
  const fields = Fields.of(upstream.fields).add("x-request-id", call.id);
  const name = `WebSocket of the key "${key.name}"`;
  const accepted = call.exchange.acceptWebSocket(fields, (client) => {
    sockets.open += 1;
    observer.notice("note", `${name} opened on the channel "${upstream.candidate.channel.name}"`);
    const end = (responses: number): void => {
      sockets.open -= 1;
      observer.notice("note", `${name} closed, responses on it: ${responses}`);
      ended.resolve();
    };
    const connection = new SocketConnection({ call, gateway, newId, openUpstream, ended: end }, upstream);
    connection.start(client, upstream);
    return connection.clientListener;
  });
  if (accepted) return ended.promise;
  upstream.discard();
  throw new ClientGone("the client has left");
}
