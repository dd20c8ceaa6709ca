// Opens a WebSocket to the upstream of one channel.

import type { Fields } from "../../lib/http1/fields.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import type { UpgradeReply } from "../../lib/http1/client/upgrade.ts";
import { findAcceptFault, startHandshake } from "../../lib/websocket/handshake.ts";
import { type PeerListener, WebSocketPeer } from "../../lib/websocket/peer.ts";
import { signFields } from "../attempt/forward.ts";
import { dialectOf } from "../../dialects/index.ts";
import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { secretsOf } from "../intake/known-secrets.ts";
import { findOwnLogin } from "../intake/login.ts";
import type { Candidate, Match } from "../intake/match.ts";
import { blame, type Failure, judgeRefusal } from "../upstream/failure-rules.ts";
import { requestFields, responseFields } from "../upstream/headers.ts";
import { fieldsBesideLogin } from "../upstream/login.ts";
import { addressOf } from "../upstream/origin.ts";
import { redactFailure, redactFields } from "../upstream/redact.ts";

/** A WebSocket that the upstream has accepted, and that nobody reads yet. */
export interface OpenConnection {
  readonly kind: "open";
  readonly candidate: Candidate;
  /** The fields of the upstream's 101, for the client. */
  readonly fields: Fields;
  /** `taken` gets the peer before the listener gets anything: messages may have come together with the 101. */
  start(listener: PeerListener, taken: (peer: WebSocketPeer) => void): void;
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
  const { key, fields } = startHandshake();
  call.login = findOwnLogin(call, gateway.catalog);
  const own = requestFields(fieldsBesideLogin(call), false, secretsOf(gateway.catalog));
  const started = gateway.client.upgrade({
    origin,
    target: basePath + call.target.path + call.query,
    fields: signFields(own, call.exchange, channel, call.target.endpoint.dialect).addAll(fields),
    deadlines,
  });
  call.exchange.onGone(() => started.cancel());
  try {
    return judge(await started.reply, { candidate, key, gateway, cancel: () => started.cancel() });
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    if (fault.kind === "cancelled" || fault.kind === "withdrawn") return { kind: "refused" };
    return { kind: "failed", failure: { kind: "fault", channel: channel.name, fault } };
  }
}

interface Handshake {
  readonly candidate: Candidate;
  readonly key: string;
  readonly gateway: Gateway;
  readonly cancel: () => void;
}

function judge(reply: UpgradeReply, { candidate, key, gateway, cancel }: Handshake): Connecting {
  const { channel } = candidate;
  const { accept, status } = reply;
  if (accept !== null) {
    const fault = findAcceptFault(reply, key);
    if (fault === null) {
      const fields = redactFields(responseFields(reply.fields), channel, status).copy(keepForClient);
      return {
        kind: "open",
        candidate,
        fields,
        start: (listener, taken) =>
          accept((wire) => {
            const { memory } = gateway;
            const options = { side: "client", maxMessageBytes: MAX_MESSAGE_BYTES, memory } as const;
            const peer = new WebSocketPeer(wire, options, listener);
            taken(peer);
            return peer;
          }),
        discard: cancel,
      };
    }
    cancel();
    return { kind: "failed", failure: blame(channel.name, 502, `an invalid WebSocket handshake: ${fault}`) };
  }
  const text = new TextDecoder().decode(reply.body);
  const failure = judgeRefusal(channel.name, status, text, dialectOf(channel.platform));
  if (failure !== null && !UNSUPPORTED.has(status))
    return { kind: "failed", failure: redactFailure(failure, channel) };
  if (!UNSUPPORTED.has(status)) return { kind: "refused" };
  gateway.sockets.noteRefusal(channel, gateway.now());
  return { kind: "unsupported" };
}

/** The handshake's own fields belong to this hop. */
function keepForClient(name: string): string | null {
  return name.startsWith("sec-websocket-") ? null : name;
}
