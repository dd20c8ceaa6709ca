// The questions that the gateway asks of a wire format. One file a dialect
// answers them; nothing outside this folder branches on a dialect's name.

import type { Meter } from "../billing/usage.ts";
import type { Platform } from "../config/schema.ts";
import type { GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http1/types.ts";

export type DialectName = "messages" | "responses" | "chat" | "content";

/** What an endpoint is for. Only `generate` and `embed` are billed. */
export type Purpose = "generate" | "embed" | "count" | "resource" | "list" | "model";

/** Where a client's key may stand, in the order in which it is looked for. */
export type KeySource = "bearer" | "x-api-key" | "vendor-header" | "query";

export interface Endpoint {
  /** As the ledger and messages to people name it: `/v1/messages`, `/v1beta/models/{id}:generateContent`. */
  readonly label: string;
  readonly purpose: Purpose;
  /** Groups whose keys fit. */
  readonly platforms: readonly Platform[];
  readonly dialect: Dialect;
  readonly keySources: readonly KeySource[];
}

/** A request's path, understood. */
export interface Target {
  readonly endpoint: Endpoint;
  /** The path to ask a channel for, relative to its base URL: versions and verbs as the upstream has them. */
  readonly path: string;
  /** The model that the path names, decoded, and where it stands in `path`; null when the body names it or nothing does. */
  readonly model: { readonly id: string; readonly start: number; readonly end: number } | null;
  /** Known from the path (content); null: the body's `stream` says. */
  readonly stream: boolean | null;
}

/** A model as a list tells it; `raw` is the upstream's own record, kept so that the list loses nothing. */
export interface ModelEntry {
  readonly id: string;
  readonly raw: Readonly<Record<string, unknown>> | null;
}

/** What a client has of a stream that broke, as far as it is known. */
export interface Break {
  /** How the stream is framed; server-sent events unless said otherwise. */
  readonly form?: "sse" | "json-array";
  /** Of a JSON array: its `[` and an element have been sent. */
  readonly begun?: boolean;
  /** The answer's own id and model, and the number that its next event bears. */
  readonly id?: string;
  readonly model?: string;
  readonly sequence?: number;
}

export interface Dialect {
  readonly name: DialectName;
  /** The header that bears a channel's credential upstream. */
  sign(credential: string, vendor: string): Field;
  /** A gateway error's body in this dialect's shape. */
  errorBody(error: GatewayError, requestId: string): string;
  /** What a stream says when it breaks after its first byte. It begins at the start of an event. */
  errorEvent(error: GatewayError, requestId: string, at?: Break): string;
  /** What goes before it where the stream broke inside an event. */
  readonly eventCloser: string;
  /** True where clients only notice a break when the connection is reset after the event. */
  readonly resetAfterErrorEvent: boolean;
  /** A meter for an answer of this content type. */
  openMeter(contentType: string): Meter;
  /** The page of a model list that the query asks for, and a single record. */
  listBody(models: readonly ModelEntry[], query: URLSearchParams): string;
  modelBody(model: ModelEntry): string;
  /** How to ask an upstream for its models, page by page: the path, and what a page says.
   *  `nextQuery` is the whole query of the next page, without "?". Throws when the body is no list. */
  readonly listPath: string;
  /** Fields without which an upstream refuses a request that no client made. */
  readonly askFields: readonly Field[];
  /** Where the list has no single source: the dialects whose lists together are the same. */
  readonly listFallbacks: readonly Dialect[];
  readList(body: string): { models: ModelEntry[]; nextQuery: string | null };
}
