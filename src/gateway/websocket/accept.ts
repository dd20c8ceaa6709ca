// Accepts a client's WebSocket: after its handshake and key are checked, and after the upstream has accepted one.

import type { Key } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { acceptHandshake, findHandshakeFault } from "../../lib/websocket/handshake.ts";
import { WebSocketPeer } from "../../lib/websocket/peer.ts";
import { reportRefusal } from "../bill/request-record.ts";
import type { Gateway } from "../gateway.ts";
import { admit } from "../intake/authenticate.ts";
import type { ClientCall } from "../intake/call.ts";
import { findMatch, type Match } from "../intake/match.ts";
import { readSender } from "../intake/client.ts";
import { refuseCall } from "../intake/refuse.ts";
import { isShortage } from "../upstream/failure-rules.ts";
import { refuseOwnCall } from "../upstream/self-call.ts";
import { type Connecting, connect, type OpenConnection } from "./connect.ts";
import { Session } from "./session.ts";

/** Resolves when the connection has ended and every response on it has its line. */
export async function serveWebSocket(call: ClientCall, newId: () => string, gateway: Gateway): Promise<void> {
  try {
    refuseOwnCall(call.exchange);
    const key = admit(call, gateway.catalog);
    const fault = findHandshakeFault(call.exchange);
    if (fault !== null)
      throw new GatewayError("bad_request", `The WebSocket handshake is invalid: ${fault}.`);
    const upstream = await openUpstream(call, findMatch(key, null), gateway);
    if (call.exchange.gone) return upstream.discard();
    await run({ call, key, newId }, upstream, gateway);
  } catch (thrown) {
    reportRefusal(call, refuseCall(call, thrown, gateway.observer), gateway);
  }
}

/** The first channel in order that accepts. */
async function openUpstream(call: ClientCall, match: Match, gateway: Gateway): Promise<OpenConnection> {
  const { channels, sockets, now } = gateway;
  const source = { client: readSender(call), body: { plain: null } };
  for (const candidate of channels.choose(source, match, now()).candidates) {
    if (!sockets.mayOffer(candidate.channel, now())) continue;
    const connecting = await connect(call, candidate, gateway);
    if (connecting.kind === "open") return connecting;
    if (connecting.kind === "failed") noteFailure(candidate, connecting, gateway);
    if (call.exchange.gone) throw new GatewayError("client_gone", "The client disconnected.");
  }
  throw new GatewayError(
    "upgrade_required",
    `No channel of the group "${match.group.name}" offers a WebSocket now. Send the request over HTTP.`,
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
  readonly call: ClientCall;
  readonly key: Key;
  readonly newId: () => string;
}

/** Resolves when the session has ended. */
function run({ call, key, newId }: Upgrade, upstream: OpenConnection, gateway: Gateway): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const { catalog, observer, sockets } = gateway;
  const { maxBodyBytes } = catalog;
  const fields = [...acceptHandshake(call.exchange), ...upstream.fields, ["x-request-id", call.id] as const];
  const name = `WebSocket of the key "${key.name}"`;
  sockets.open += 1;
  observer.notice("note", `${name} opened on the channel "${upstream.candidate.channel.name}"`);
  call.exchange.upgrade(fields, (wire) => {
    const end = (responses: number): void => {
      sockets.open -= 1;
      observer.notice("note", `${name} closed, responses on it: ${responses}`);
      ended.resolve();
    };
    const session = new Session({ call, gateway, newId, openUpstream, ended: end }, upstream);
    const client = new WebSocketPeer(
      wire,
      { side: "server", maxMessageBytes: maxBodyBytes },
      session.clientListener,
    );
    session.start(client, upstream);
    return client;
  });
  return ended.promise;
}
