// What the gateway needs of a wire format.

import type { CallListener, Meter } from "../billing/usage.ts";
import type { KeySource } from "../config/key-fields.ts";
import { type ChannelPlatform, type Platform, PLATFORM_FACTS } from "../config/schema.ts";
import type { GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http/fields.ts";
import type { Layout } from "./prompt/layouts.ts";

export const DIALECT_NAMES = ["messages", "responses", "chat", "content"] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

export function hasBridge(name: ChannelPlatform): name is DialectName {
  return PLATFORM_FACTS[name].converts === true;
}

export type Purpose = "generate" | "embed" | "count" | "resource" | "list" | "model" | "other";
const listOf = (...purposes: Purpose[]): ReadonlySet<Purpose> => new Set(purposes);
/** `other` requests get a line in the ledger, too,
 *  but no cost is known. */
export const BILLED = listOf("generate", "embed", "other");
export const FOR_MODELS = listOf("generate", "embed", "count");
export const WITH_PROMPTS = listOf("generate", "count");
export const LISTS = listOf("list", "model");

export interface Endpoint {
  /** Its name in messages and the ledger: `/v1beta/models/{id}:generateContent`. */
  readonly label: string;
  readonly purpose: Purpose;
  /** Keys of groups of these platforms may use it. */
  readonly platforms: readonly Platform[];
  readonly dialect: Dialect;
  /** Channels of this platform serve it, too, although they have another dialect. */
  readonly alsoOn?: ChannelPlatform;
  readonly keySources: readonly KeySource[];
  /** No member of a request caps the output. */
  readonly ignoresCaps?: true;
  /** Served only if all channels are at this provider's own address. */
  readonly onlyAt?: string;
  /** The name in the price book, if it is not the model's. */
  readonly pricedAs?: string;
}

export interface Target {
  readonly endpoint: Endpoint;
  /** Relative to the channel's base URL. */
  readonly path: string;
  /** `start` and `end` are in `path`. Null: the path names no model. */
  readonly model: { readonly id: string; readonly start: number; readonly end: number } | null;
  /** Null: the body says whether the answer streams. */
  readonly stream: boolean | null;
}

/** `raw` is the upstream's own record: no field of it is lost. */
export interface ModelEntry {
  readonly id: string;
  readonly raw: Readonly<Record<string, unknown>> | null;
}

/** What the client has received of a broken stream. */
export interface StreamBreak {
  /** Default: server-sent events. */
  readonly form?: "sse" | "json-array";
  /** A part of the JSON array has been sent. */
  readonly begun?: boolean;
  readonly id?: string;
  readonly model?: string;
  /** The next event's number. */
  readonly sequence?: number;
}

export interface Dialect {
  readonly name: ChannelPlatform;
  sign(credential: string): Field;
  errorBody(error: GatewayError, requestId: string): string;
  /** Where clients look for an answer's id, to log it. */
  readonly idField?: string;
  /** Header fields that a tool needs to show the gateway's error. */
  reasonFields?(error: GatewayError): readonly Field[];
  errorEvent(error: GatewayError, requestId: string, at?: StreamBreak): string;
  /** Comes after an event that the upstream began and did not finish. */
  readonly eventCloser: string;
  /** Clients notice the break only if the connection is reset after the event. */
  readonly resetAfterErrorEvent: boolean;
  readonly numbersEvents?: true;
  /** A client can ask for an answer by its id. */
  readonly storesAnswers?: true;
  /** Only dialects with stored conversations report calls. */
  openMeter(contentType: string, calls?: CallListener): Meter;
  /** Members that cap the output, or contain the cap. */
  readonly capNames: readonly string[];
  readonly promptLayout: Layout;
  /** A complete list on one page. */
  listBody(models: readonly ModelEntry[], query: URLSearchParams): string;
  modelBody(model: ModelEntry): string;
  countBody(tokens: number): string;
  readonly listPath: string;
  /** Upstreams refuse the gateway's own requests without these. */
  readonly ownRequestFields?: readonly Field[];
  /** If an upstream has no model list in this dialect, its lists in these dialects are joined. */
  readonly listFallbacks?: readonly Dialect[];
}
