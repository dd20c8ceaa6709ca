// The seam towards upstreams: a request, its response as it arrives, and what went wrong. The gateway knows nothing of what is
// below.

import { joinChunks } from "../memory/bytes.ts";
import { UpstreamFault } from "./faults.ts";
import type { Fields, SentFields } from "./fields.ts";
import type { MessageLimits, UpstreamSocket } from "./web-socket.ts";

/** Where a channel's requests are sent. */
export interface Origin {
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  /** An HTTP(S) proxy: CONNECT for TLS origins, absolute-form for plain ones. */
  readonly proxy?: URL;
  /** Additional certificate authorities, as PEM text. */
  readonly ca?: string;
}

/** The server that a URL names. */
export function originOf(url: URL): Origin {
  return { tls: url.protocol === "https:", host: url.hostname, port: portOf(url) };
}

export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

export interface Deadlines {
  readonly connectMs: number;
  /** From the end of sending to the first byte of the response's head. */
  readonly firstByteMs: number;
  /** The longest silence while the body arrives. While nobody reads, the limit does not run. */
  readonly idleMs: number;
}

export interface UpstreamRequest {
  readonly origin: Origin;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Without host, content-length and connection, which the HTTP client writes. */
  readonly fields: SentFields;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  /** Called if the request is sent a second time, because a kept-alive connection ended before the response. This happens to
   *  GET and HEAD only: an upstream may charge for anything else that it has started. */
  readonly onResend?: () => void;
}

/** The head of an upstream's response. */
export class UpstreamResponse {
  readonly status: number;
  readonly fields: Fields;
  /** The content-length, if the upstream sent one. */
  readonly length: number | null;
  /** True if only the end of the connection ends the body. An early end then looks like the real one. */
  readonly closeDelimited: boolean;

  constructor(status: number, fields: Fields, length: number | null, closeDelimited = false) {
    this.status = status;
    this.fields = fields;
    this.length = length;
    this.closeDelimited = closeDelimited;
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }
}

/** A body that is read piece by piece. */
export interface Body {
  /** Null: the body has ended. Rejects with UpstreamFault if it is cut, reset or silent. The bytes belong to the reader, who
   *  may change them. While nobody reads, the upstream is not read either. */
  read(): Promise<Buffer | null>;
  /** Closes the connection: `read` rejects with the kind `cancelled`. Does nothing after the end. */
  cancel(): void;
}

export interface Answer extends Body {
  readonly head: UpstreamResponse;
  /** What the next `read` will get; "silent" if nothing comes within `ms`. */
  peek(ms: number): Promise<Buffer | null | "silent">;
}

export interface BodyPart {
  readonly bytes: Uint8Array;
  /** The body goes on. */
  readonly isCut: boolean;
  /** The body has broken off. */
  readonly fault: UpstreamFault | null;
}

/** Reads a body to its end, or until there are `maxBytes` of it. Then it cancels the rest. */
export async function readUpTo(body: Body, maxBytes: number): Promise<BodyPart> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    while (size < maxBytes) {
      const chunk = await body.read();
      if (chunk === null) return { bytes: joinChunks(chunks), isCut: false, fault: null };
      chunks.push(chunk);
      size += chunk.length;
    }
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    return { bytes: joinChunks(chunks), isCut: false, fault };
  }
  body.cancel();
  return { bytes: joinChunks(chunks), isCut: true, fault: null };
}

/** A request on its way. */
export interface SentRequest {
  /** Its response, as soon as the head has come. Rejects with UpstreamFault. */
  readonly answer: Promise<Answer>;
  /** Closes the connection. The answer or its body rejects with the kind `cancelled`, or `withdrawn` if nothing was sent. */
  cancel(): void;
}

export interface ClientStats {
  /** All connections, idle ones included. */
  readonly open: number;
  readonly idle: number;
  readonly dialled: number;
  readonly reused: number;
  /** Requests that were moved from a kept-alive connection to a new one. */
  readonly retried: number;
}

/** The fields are without those of the handshake. */
export interface SocketRequest extends Omit<UpstreamRequest, "method" | "body" | "onResend"> {
  readonly limits: MessageLimits;
}

export interface SocketReply {
  readonly status: number;
  readonly fields: Fields;
  /** The beginning of the body of a refusal. */
  readonly body: Uint8Array;
  /** Null after any status but 101. */
  readonly socket: UpstreamSocket | null;
}

export interface StartedSocket {
  /** Rejects with UpstreamFault. */
  readonly reply: Promise<SocketReply>;
  /** Closes the connection, also after the reply. */
  cancel(): void;
}

/** All upstreams. It does not follow redirects, keep cookies or decode bodies. */
export interface Upstream {
  /** Throws Malformed if a field or the target would break the framing. */
  send(request: UpstreamRequest): SentRequest;
  /** Opens a WebSocket, on a connection of its own. */
  openWebSocket(request: SocketRequest): StartedSocket;
  /** Keeps connections to these origins open between requests, from their first request on. Those of `expected` get
   *  connections now, as many as may be spare: the first requests may be several at once. Replaces what earlier calls said. */
  keepWarm(origins: Iterable<Origin>, expected?: Iterable<Origin>): void;
  /** Closes idle connections. Running requests continue to their end. */
  close(): void;
  stats(): ClientStats;
  statsOf(origin: Origin): ClientStats;
}
