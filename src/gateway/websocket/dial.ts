// Opens a WebSocket to the first channel that accepts one.

import { GatewayError } from "../../lib/errors.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { type Answer, UpstreamFault } from "../../lib/http/upstream.ts";
import type { UpstreamSocket } from "../../lib/http/web-socket.ts";
import type { Gateway } from "../gateway.ts";
import { findOwnLogin } from "../intake/login.ts";
import type { Candidate } from "../intake/match.ts";
import { listOwnSecrets } from "../intake/authenticate.ts";
import { secretsOf } from "../intake/secrets.ts";
import type { Request } from "../request.ts";
import { readError } from "../send/attempt.ts";
import { keepServing } from "../send/convert.ts";
import { signFields } from "../send/forward.ts";
import { requestFields, responseFields } from "../send/headers.ts";
import { addressOf } from "../upstream/address.ts";
import { type Failure, failureOf, readFailure } from "../upstream/failures.ts";

export interface OpenConnection {
  readonly candidate: Candidate;
  readonly fields: Fields;
  readonly socket: UpstreamSocket;
}

const UNSUPPORTED = new Set([200, 204, 400, 404, 405, 406, 410, 415, 422, 426, 501, 505]);

export async function dial(call: Request, r: Request, gateway: Gateway): Promise<OpenConnection> {
  const { channels, now } = gateway;
  // Nothing is converted on a WebSocket.
  r.candidates = keepServing(r.candidates, r.target.endpoint).filter(({ channel }) => channel.websocket);
  for (const candidate of channels.choose(r, now())) {
    const reached = await connect(call, candidate, gateway);
    if (reached !== null && "socket" in reached) {
      channels.keepConversation(r, candidate);
      return reached;
    }
    if (reached?.fault === "shortage") gateway.raiseShortage(reached.message);
    else if (reached !== null) channels.reportFailure(candidate, reached, now());
    if (call.exchange.gone) throw new GatewayError("client_gone", "The client disconnected.");
  }
  const text = `No channel of the group "${r.group.name}" offers a WebSocket now. Send the request over HTTP.`;
  throw new GatewayError("upgrade_required", text);
}

/** Null: the upstream speaks only HTTP, the request is at fault,
 *  or the client left. */
async function connect(
  call: Request,
  candidate: Candidate,
  { client, catalog, memory, now }: Gateway,
): Promise<OpenConnection | Failure | null> {
  const { channel } = candidate;
  const { origin, basePath, deadlines } = addressOf(channel);
  const known = secretsOf(catalog);
  call.login = findOwnLogin(call, catalog);
  call.secrets = known.forRequest(listOwnSecrets(call.exchange), call.login);
  const own = requestFields(call.fields, false, known);
  const sent = client.send({
    origin,
    method: "GET",
    target: basePath + call.target.path + call.query,
    fields: signFields(own, call.exchange, channel, call.target.endpoint.dialect),
    body: null,
    deadlines,
    memory,
  });
  call.exchange.onGone(() => sent.cancel());
  let answer: Answer;
  try {
    answer = await sent.answer;
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    return fault.kind === "cancelled" || fault.kind === "withdrawn" ? null : failureOf(channel.name, fault);
  }
  const { socket, head } = answer;
  if (socket !== undefined) {
    // The handshake's own fields belong to this hop.
    const keep = (name: string): string | null => (name.startsWith("sec-websocket-") ? null : name);
    return { candidate, fields: responseFields(head.fields, call.secrets).copy(keep), socket };
  }
  if (UNSUPPORTED.has(head.status)) {
    answer.cancel();
    return null;
  }
  const body = await readError(call, answer);
  return readFailure(channel.name, head, new TextDecoder().decode(body), now());
}
