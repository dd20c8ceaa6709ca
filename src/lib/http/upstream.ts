// A request to an upstream, its response and its faults.

import { joinChunks } from "../memory/bytes.ts";
import type { MemoryBudget } from "../memory/memory-budget.ts";
import type { Fields, SentFields } from "./fields.ts";
import type { UpstreamSocket } from "./web-socket.ts";

export interface Origin {
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  /** CONNECT for TLS origins, absolute-form for plain ones. */
  readonly proxy?: URL;
  /** Additional certificate authorities, as PEM text. */
  readonly ca?: string;
}

export function originOf({ protocol, hostname, port }: URL): Origin {
  const tls = protocol === "https:";
  return { tls, host: hostname, port: port === "" ? (tls ? 443 : 80) : Number(port) };
}

export interface Deadlines {
  readonly connectMs: number;
  /** From the last byte sent to the response's first byte. */
  readonly firstByteMs: number;
  /** The longest silence of the body, while somebody reads it. */
  readonly idleMs: number;
}

export interface UpstreamRequest {
  readonly origin: Origin;
  readonly method: string;
  readonly target: string;
  /** The HTTP client adds host, content-length and connection. */
  readonly fields: SentFields;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  /** Set for a WebSocket, whose large messages wait for this memory. */
  readonly memory?: MemoryBudget;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly fields: Fields;
  readonly length: number | null;
  /** The body ends with the connection, so a cut body looks complete. */
  readonly closeDelimited: boolean;
}

export interface Body {
  /** The complete body, if it came with the head. `read` returns it, too. */
  readonly whole?: Buffer | undefined;
  /** Null: the end. Rejects with UpstreamFault. The reader owns the bytes. */
  read(): Promise<Buffer | null>;
  /** `read` then rejects with `cancelled`. Does nothing after the end. */
  cancel(): void;
}

export interface Answer extends Body {
  readonly head: UpstreamResponse;
  /** Set after a 101 that opens a WebSocket. Then only the socket is read. */
  readonly socket?: UpstreamSocket | undefined;
}

export interface SentRequest {
  /** Settles when the head has come. Rejects with UpstreamFault. */
  readonly answer: Promise<Answer>;
  /** The answer or its body rejects: with `withdrawn` if nothing was sent,
   *  otherwise with `cancelled`. */
  cancel(): void;
}

export interface ClientStats {
  readonly open: number;
  readonly idle: number;
}

/** Does not follow redirects, keep cookies or decode bodies. */
export interface Upstream {
  /** Throws Malformed if a field or the target would break the framing. */
  send(request: UpstreamRequest): SentRequest;
  /** Opens connections to `expected` in advance. */
  keepWarm(origins: Iterable<Origin>, expected?: Iterable<Origin>): void;
  /** Running requests continue to their end. */
  close(): void;
  stats(origin?: Origin): ClientStats;
}

/** `perhaps`: the request left, and no response came. */
export type Sent = "no" | "perhaps" | "yes";

export const FAULTS = {
  connect: "no", // the name is not known, the connection is refused, or the proxy refuses the tunnel
  connect_timeout: "no",
  shortage: "no", // this process lacks files, ports or memory: no upstream is to blame
  tls: "no", // the handshake failed, or the certificate is not the upstream's
  withdrawn: "no", // we cancelled while a connection was dialled
  cancelled: "perhaps", // we cancelled later
  first_byte_timeout: "perhaps",
  reset: "perhaps", // the connection ended before the head was complete
  malformed: "yes", // what came is not the HTTP/1.1 that we accept
  cut: "yes", // the connection ended inside the body
  idle_timeout: "yes", // the body stopped arriving
} as const satisfies Record<string, Sent>;

export type FaultKind = keyof typeof FAULTS;

export class UpstreamFault extends Error {
  override readonly name = "UpstreamFault";
  readonly kind: FaultKind;
  readonly sent: Sent;

  constructor(kind: FaultKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.sent = FAULTS[kind];
  }
}

export async function readUpTo(body: Body, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.read(), size = 0; chunk !== null;) {
    chunks.push(chunk);
    size += chunk.length;
    chunk = size < maxBytes ? await body.read() : null;
  }
  body.cancel();
  return joinChunks(chunks);
}
