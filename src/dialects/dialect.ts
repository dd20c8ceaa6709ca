// What the gateway needs of a wire format. Only this folder compares names of dialects.

import type { CallListener, Meter } from "../billing/usage.ts";
import type { ChannelPlatform, Platform } from "../config/schema.ts";
import type { GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http/fields.ts";
import type { Layout } from "./prompt/layouts.ts";

export const DIALECT_NAMES = ["messages", "responses", "chat", "content"] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

/** Only `generate` and `embed` are billed. The ledger line of an `other` request has no amount. */
export type Purpose = "generate" | "embed" | "count" | "resource" | "list" | "model" | "other";

/** Where a client's key can be, in the order of the search. */
export type KeySource = "bearer" | "x-api-key" | "vendor-header" | "query";

export interface Endpoint {
  /** In the ledger and in messages: `/v1beta/models/{id}:generateContent`. */
  readonly label: string;
  readonly purpose: Purpose;
  /** Keys of these platforms' groups may use the endpoint. */
  readonly platforms: readonly Platform[];
  readonly dialect: Dialect;
  /** Channels of this platform serve the endpoint too, in another dialect. */
  readonly alsoOn?: ChannelPlatform;
  readonly keySources: readonly KeySource[];
  /** No member of a request caps the output. */
  readonly ignoresCaps?: true;
  /** Only for groups with all channels at this provider's own address. */
  readonly onlyAt?: string;
  /** The price book's name for a call, if it is not the model. */
  readonly pricedAs?: string;
}

/** The endpoint and model that a request's path names. */
export interface Target {
  readonly endpoint: Endpoint;
  /** Relative to the channel's base URL. */
  readonly path: string;
  /** The decoded model and its position in `path`. Null if the path names no model. */
  readonly model: { readonly id: string; readonly start: number; readonly end: number } | null;
  /** Content paths say whether the answer streams. Null: the body says so. */
  readonly stream: boolean | null;
}

/** A model of a list. `raw` is the upstream's own record: no field of it is lost. */
export interface ModelEntry {
  readonly id: string;
  readonly raw: Readonly<Record<string, unknown>> | null;
}

/** What the client has received of a broken stream, if known. */
export interface StreamBreak {
  /** Default: server-sent events. */
  readonly form?: "sse" | "json-array";
  /** Of a JSON array, `[` and an element have been sent. */
  readonly begun?: boolean;
  /** The answer's own id and model, and the number of the next event. */
  readonly id?: string;
  readonly model?: string;
  readonly sequence?: number;
}

export interface Dialect {
  readonly name: DialectName;
  sign(credential: string): Field;
  errorBody(error: GatewayError, requestId: string): string;
  /** Where clients look for the id of an answer, which they log. */
  readonly idField?: string;
  /** Headers that a tool of this dialect needs to show an error of the gateway. */
  reasonFields?(error: GatewayError): readonly Field[];
  /** The event that ends a broken stream. */
  errorEvent(error: GatewayError, requestId: string, at?: StreamBreak): string;
  /** Sent before `errorEvent` if the stream broke inside an event. */
  readonly eventCloser: string;
  /** True if clients notice the break only when the connection is reset after the event. */
  readonly resetAfterErrorEvent: boolean;
  /** Only dialects with stored conversations report calls. */
  openMeter(contentType: string, calls?: CallListener): Meter;
  /** The members of a request that cap the output, or contain the cap. */
  readonly capNames: readonly string[];
  /** Where a request has the parts of the prompt, and how upstreams cache them. */
  readonly promptLayout: Layout;
  /** `listBody` is a complete list on one page, `modelBody` a single record. */
  listBody(models: readonly ModelEntry[], query: URLSearchParams): string;
  modelBody(model: ModelEntry): string;
  readonly listPath: string;
  /** Headers without which an upstream refuses the gateway's own requests. */
  readonly ownRequestFields?: readonly Field[];
  /** For upstreams without this list: the dialects whose lists together make it. */
  readonly listFallbacks?: readonly Dialect[];
}
