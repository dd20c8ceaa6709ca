// Opens a WebSocket to the upstream of one channel.

import type { Fields } from "../../lib/http/fields.ts";
import { UpstreamFault } from "../../lib/http/faults.ts";
import { type SocketReply } from "../../lib/http/upstream.ts";
import type { OpenPeer, PausablePeer } from "../../lib/http/web-socket.ts";
import { signFields } from "../attempt/forward.ts";
import { dialectOf } from "../../dialects/index.ts";
import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { type Secrets, secretsOf } from "../intake/secrets.ts";
import { findOwnLogin } from "../intake/login.ts";
import type { Candidate, Match } from "../intake/match.ts";
import { type Failure, judgeRefusal } from "../upstream/failure-rules.ts";
import { requestFields, responseFields } from "../upstream/headers.ts";
import { fieldsBesideLogin } from "../upstream/login.ts";
import { addressOf } from "../upstream/origin.ts";

/** A WebSocket that the upstream has accepted, and that nobody reads yet. */
export interface OpenConnection {
  readonly kind: "open";
  readonly candidate: Candidate;
  /** The fields of the upstream's 101, for the client. */
  readonly fields: Fields;
  start(open: OpenPeer<PausablePeer>): void;
  discard(): void;
}

export type OpenUpstream = (call: Request, match: Match, gateway: Gateway) => Promise<OpenConnection>;

export type Connecting =
  | OpenConnection
  /** The upstream speaks HTTP only. */
  | { readonly kind: "unsupported" }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** The request is at fault, or the client has left. */
  | { readonly kind: "refused" };

/** The statuses with which servers say that they offer no WebSocket here. */
const UNSUPPORTED = new Set([200, 204, 400, 404, 405, 406, 410, 415, 422, 426, 501, 505]);

/** A server's message may contain an image. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

export async function connect(call: Request, candidate: Candidate, gateway: Gateway): Promise<Connecting> {
  const { channel } = candidate;
  const { origin, basePath, deadlines } = addressOf(channel);
  call.login = findOwnLogin(call, gateway.catalog);
  const known = secretsOf(gateway.catalog);
  call.secrets = known.forRequest(call);
  const own = requestFields(fieldsBesideLogin(call), false, known);
  const started = gateway.client.openWebSocket({
    origin,
    target: basePath + call.target.path + call.query,
    fields: signFields(own, call.exchange, channel, call.target.endpoint.dialect),
    deadlines,
  });
  call.exchange.onGone(() => started.cancel());
  try {
    return judge(await started.reply, {
      candidate,
      gateway,
      secrets: call.secrets,
      cancel: () => started.cancel(),
    });
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    if (fault.kind === "cancelled" || fault.kind === "withdrawn") return { kind: "refused" };
    return { kind: "failed", failure: { kind: "fault", channel: channel.name, fault } };
  }
}

interface Handshake {
  readonly candidate: Candidate;
  readonly gateway: Gateway;
  readonly secrets: Secrets;
  readonly cancel: () => void;
}

function judge(reply: SocketReply, { candidate, gateway, secrets, cancel }: Handshake): Connecting {
  const { channel } = candidate;
  const { accept, status } = reply;
  if (accept !== null) {
    const fields = secrets.cleanFields(responseFields(reply.fields)).copy(keepForClient);
    const limits = { maxMessageBytes: MAX_MESSAGE_BYTES, memory: gateway.memory };
    return { kind: "open", candidate, fields, start: (open) => accept(limits, open), discard: cancel };
  }
  const text = new TextDecoder().decode(reply.body);
  const failure = judgeRefusal(channel.name, status, text, dialectOf(channel.platform));
  if (failure !== null && !UNSUPPORTED.has(status))
    return { kind: "failed", failure: secrets.removeIn(failure) };
  if (!UNSUPPORTED.has(status)) return { kind: "refused" };
  gateway.sockets.noteRefusal(channel, gateway.now());
  return { kind: "unsupported" };
}

/** The handshake's own fields belong to this hop. */
function keepForClient(name: string): string | null {
  return name.startsWith("sec-websocket-") ? null : name;
}
