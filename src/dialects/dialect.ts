// What the gateway needs to know of a wire format. No code outside this folder compares the name of a dialect.

import type { CallListener, Meter } from "../billing/usage.ts";
import type { ChannelPlatform, Platform } from "../config/schema.ts";
import type { GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http/fields.ts";
import type { Layout } from "./prompt/layouts.ts";

export const DIALECT_NAMES = ["messages", "responses", "chat", "content"] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

/** What an endpoint is for. Only `generate` and `embed` are billed, and the line of an `other` one has no amount. */
export type Purpose = "generate" | "embed" | "count" | "resource" | "list" | "model" | "other";

/** Where a client's key can be, in the order of the search. */
export type KeySource = "bearer" | "x-api-key" | "vendor-header" | "query";

export interface Endpoint {
  /** Its name in the ledger and in messages: `/v1/messages`, `/v1beta/models/{id}:generateContent`. */
  readonly label: string;
  readonly purpose: Purpose;
  /** Keys of groups of these platforms fit. */
  readonly platforms: readonly Platform[];
  readonly dialect: Dialect;
  /** Channels of this platform serve it, too, though they do not speak its dialect. */
  readonly alsoOn?: ChannelPlatform;
  readonly keySources: readonly KeySource[];
  /** No member of its requests caps the output. */
  readonly ignoresCaps?: true;
  /** For groups all of whose channels are at this provider's own address. For others, the path is unknown. */
  readonly onlyAt?: string;
  /** The name under which a call of it has its price, if that is not the model's. */
  readonly pricedAs?: string;
}

/** The endpoint and model that a request's path names. */
export interface Target {
  readonly endpoint: Endpoint;
  /** The path of the upstream's endpoint, relative to the channel's base URL. */
  readonly path: string;
  /** The model in the path, decoded, and its position in `path`. Null if the body names the model, or nothing does. */
  readonly model: { readonly id: string; readonly start: number; readonly end: number } | null;
  /** Content paths say whether the answer streams. Null: `stream` in the body says so. */
  readonly stream: boolean | null;
}

/** A model of a list. `raw` is the upstream's own record, so that no field of it is lost. */
export interface ModelEntry {
  readonly id: string;
  readonly raw: Readonly<Record<string, unknown>> | null;
}

/** What the client has received of a stream that broke, if it is known. */
export interface StreamBreak {
  /** The framing of the stream. Default: server-sent events. */
  readonly form?: "sse" | "json-array";
  /** For a JSON array: its `[` and an element have been sent. */
  readonly begun?: boolean;
  /** The answer's own id and model, and the sequence number of its next event. */
  readonly id?: string;
  readonly model?: string;
  readonly sequence?: number;
}

export interface Dialect {
  readonly name: DialectName;
  sign(credential: string): Field;
  errorBody(error: GatewayError, requestId: string): string;
  /** Where its clients look for the id of an answer. They write it into their own logs. */
  readonly idField?: string;
  /** Fields that a tool of this dialect needs to show an error of the gateway. */
  reasonFields?(error: GatewayError): readonly Field[];
  /** The event that ends a stream that broke after its first byte. */
  errorEvent(error: GatewayError, requestId: string, at?: StreamBreak): string;
  /** Sent before `errorEvent` if the stream broke inside an event. */
  readonly eventCloser: string;
  /** True if clients notice the break only when the connection is reset after the event. */
  readonly resetAfterErrorEvent: boolean;
  /** A meter for an answer of this content type. Only a dialect whose upstreams keep conversations reports calls. */
  openMeter(contentType: string, calls?: CallListener): Meter;
  /** The members of a request that cap its output, or that have the cap inside. */
  readonly capNames: readonly string[];
  /** Where a request has the parts of its prompt, and how upstreams cache them. */
  readonly promptLayout: Layout;
  /** A model list, all on one page, and a single record. */
  listBody(models: readonly ModelEntry[], query: URLSearchParams): string;
  modelBody(model: ModelEntry): string;
  readonly listPath: string;
  /** Headers without which an upstream refuses the gateway's own requests. */
  readonly ownRequestFields?: readonly Field[];
  /** The dialects whose lists together are the same list, for upstreams without this one. */
  readonly listFallbacks?: readonly Dialect[];
}
