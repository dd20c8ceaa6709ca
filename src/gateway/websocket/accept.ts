// Accepts a client's WebSocket: after its handshake and key are checked, and after the upstream of a channel has accepted one.

import { dialectOf } from "../../dialects/index.ts";
import { GatewayError } from "../../lib/errors.ts";
import { ClientGone } from "../../lib/http/exchange.ts";
import { type Answer, readUpTo, UpstreamFault } from "../../lib/http/upstream.ts";
import { Fields } from "../../lib/http/fields.ts";
import { fail, finish } from "../bill/finish.ts";
import type { Gateway } from "../gateway.ts";
import { admit } from "../intake/authenticate.ts";
import { NO_BODY } from "../intake/body.ts";
import { readSender } from "../intake/client.ts";
import { findOwnLogin } from "../intake/login.ts";
import { type Candidate, findMatch, type Match } from "../intake/match.ts";
import { secretsOf } from "../intake/secrets.ts";
import type { Request } from "../request.ts";
import { keepServing } from "../send/convert.ts";
import { signFields } from "../send/forward.ts";
import { requestFields, responseFields } from "../send/headers.ts";
import { addressOf, refuseOwnCall } from "../upstream/address.ts";
import { type Failure, failureOf, readFailure } from "../upstream/failures.ts";
import { type OpenConnection, SocketConnection } from "./connection.ts";

/** The statuses with which servers say that they offer no WebSocket here. */
const UNSUPPORTED = new Set([200, 204, 400, 404, 405, 406, 410, 415, 422, 426, 501, 505]);

/** A server's message may contain an image. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** This much of a refusal's body is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

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
  const key = admit(r, gateway);
  r.query = secretsOf(gateway.catalog).cleanQuery(r.query);
  if (key.group.convert)
    throw new GatewayError("upgrade_required", "This group converts requests. Send them over HTTP.");
  requireHandshake(r);
  const match = findMatch(key, null);
  // Servers of Chat Completions have none.
  const candidates = keepServing(match.candidates, r.target.endpoint);
  await run(r, await openUpstream(r, { ...match, candidates }, gateway), newId, gateway);
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
  const { channels, now } = gateway;
  const { key, group, model, candidates } = match;
  const routed = { key, group, model, candidates, client: readSender(call, gateway.catalog), body: NO_BODY };
  for (const candidate of channels.choose(routed, now()).candidates) {
    if (!channels.mayOfferSocket(candidate.channel, now())) continue;
    const reached = await connect(call, candidate, gateway);
    if (reached !== null && "socket" in reached) return reached;
    if (reached?.fault === "shortage") gateway.raiseShortage(reached.message);
    else if (reached !== null) channels.reportFailure(candidate, reached, now());
    if (call.exchange.gone) throw new GatewayError("client_gone", "The client disconnected.");
  }
  throw new GatewayError(
    "upgrade_required",
    `No channel of the group "${group.name}" offers a WebSocket now. Send the request over HTTP.`,
  );
}

/** Null: the upstream speaks HTTP only, the request is at fault, or the client has left. */
async function connect(
  call: Request,
  candidate: Candidate,
  gateway: Gateway,
): Promise<OpenConnection | Failure | null> {
  const { channel } = candidate;
  const { origin, basePath, deadlines } = addressOf(channel);
  call.login = findOwnLogin(call, gateway.catalog);
  const known = secretsOf(gateway.catalog);
  call.secrets = known.forRequest(call);
  const own = requestFields(call.secrets.cleanFields(call.exchange.fields), false, known);
  const sent = gateway.client.send({
    origin,
    method: "GET",
    target: basePath + call.target.path + call.query,
    fields: signFields(own, call.exchange, channel, call.target.endpoint.dialect),
    body: null,
    deadlines,
    maxMessageBytes: MAX_MESSAGE_BYTES,
  });
  call.exchange.onGone(() => sent.cancel());
  try {
    return await judge(await sent.answer, call, candidate, gateway);
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    if (fault.kind === "cancelled" || fault.kind === "withdrawn") return null;
    return failureOf(channel.name, fault);
  }
}

async function judge(
  answer: Answer,
  { secrets }: Request,
  candidate: Candidate,
  gateway: Gateway,
): Promise<OpenConnection | Failure | null> {
  const { channel } = candidate;
  const { status, fields } = answer.head;
  const { socket } = answer;
  if (socket !== undefined) {
    // The handshake's own fields belong to this hop.
    const keep = (name: string): string | null => (name.startsWith("sec-websocket-") ? null : name);
    return { candidate, fields: secrets.cleanFields(responseFields(fields)).copy(keep), socket };
  }
  if (UNSUPPORTED.has(status)) {
    answer.cancel();
    gateway.channels.noteNoSocket(channel, gateway.now());
    return null;
  }
  const { bytes } = await readUpTo(answer, MAX_REFUSAL_BYTES);
  const text = new TextDecoder().decode(bytes);
  const about = { dialect: dialectOf(channel.platform), now: gateway.now() };
  const failure = readFailure(channel.name, { status }, text, about);
  return failure === null ? null : secrets.removeIn(failure);
}

/** Resolves when both sides have ended. */
function run(call: Request, upstream: OpenConnection, newId: () => string, gateway: Gateway): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const { observer } = gateway;
  const fields = Fields.of(upstream.fields).add("x-request-id", call.id);
  const name = `WebSocket of the key "${call.key.name}"`;
  const accepted = call.exchange.acceptWebSocket(fields, (client) => {
    gateway.openSockets += 1;
    observer.notice("note", `${name} opened on the channel "${upstream.candidate.channel.name}"`);
    const end = (responses: number): void => {
      gateway.openSockets -= 1;
      observer.notice("note", `${name} closed, responses on it: ${responses}`);
      ended.resolve();
    };
    return new SocketConnection({ call, gateway, newId, openUpstream, ended: end }, client, upstream);
  });
  if (accepted) return ended.promise;
  upstream.socket.reset();
  throw new ClientGone("the client has left");
}
