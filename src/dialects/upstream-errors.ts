// Upstreams' errors: an object under `error`, in a body or in a stream.

import { getField, getList, getText, lookUp, type Table } from "../lib/json/json.ts";

const PRELUDES = new Set<unknown>(["ping", "response.created", "response.in_progress", "response.queued"]);

export type ErrorKind =
  | "overflow"
  | "output_overflow"
  | "signature"
  | "rate"
  | "overloaded"
  | "quota"
  | "unknown_model"
  | "refused"
  | "server";

/** Upstreams' names for errors. A status is that of a stream's first event; without one, the
 *  client gets the event. Null: an answer's status says more than the name. */
const NAMES: Table<readonly [kind: ErrorKind | null, status?: number]> = {
  context_length_exceeded: ["overflow"],
  model_max_prompt_tokens_exceeded: ["overflow"],
  exceed_context_size_error: ["overflow"],
  authentication_error: [null, 401],
  invalid_api_key: ["refused", 401],
  billing_error: ["quota", 402],
  insufficient_quota: ["quota", 402],
  permission_error: [null, 403],
  model_not_found: ["unknown_model"],
  not_found_error: ["unknown_model"],
  rate_limit_error: ["rate", 429],
  rate_limit_exceeded: ["rate", 429],
  slow_down: ["rate", 429],
  resource_exhausted: ["rate"],
  api_error: ["server", 500],
  server_error: ["server", 500],
  internal_server_error: ["server", 500],
  internal: ["server"],
  timeout_error: ["server", 504],
  server_is_overloaded: ["overloaded", 503],
  overloaded_error: ["overloaded", 529],
  unavailable: ["overloaded"],
  invalid_request_error: ["refused"],
  invalid_prompt: ["refused"],
  invalid_argument: ["refused"],
  failed_precondition: ["refused"],
};

/** OpenAI's names for a wrong request. */
const REFUSED = /^(?:bio_policy|data_residency_mismatch|.*image.*|invalid_.*|unsupported_.*)$/;

export function kindOfName(name: unknown): ErrorKind | undefined {
  if (typeof name !== "string") return undefined;
  return lookUp(NAMES, name.toLowerCase())?.[0] ?? (REFUSED.test(name) ? "refused" : undefined);
}

/** An error that comes instead of a stream, alone or in a list. */
export const BARE_ERROR = /^\[?\s*\{\s*"error"/;

/** `status`: the equivalent one. */
export interface StreamError {
  readonly status: number;
  readonly message: string;
}

/** The message of a JSON error body; empty without one. */
export function readErrorMessage(body: unknown): string {
  const error = getField(Array.isArray(body) ? getList(body)[0] : body, "error");
  return typeof error === "string" ? error : getText(getField(error, "message"));
}

/** True for an event before the response itself that reports no usage. */
export function isPrelude(event: unknown): boolean {
  return PRELUDES.has(getField(event, "type"));
}

/** Null: the event goes to the client. */
export function readErrorEvent(event: unknown): StreamError | null {
  const error = findError(event);
  if (error === null) return null;
  // Usage is billed: the response is passed on.
  const usage = getField(getField(event, "response"), "usage") ?? getField(event, "usage");
  if (usage !== undefined && usage !== null) return null;
  const status = readStatus(error);
  return status === null ? null : { status, message: getText(getField(error, "message")) };
}

/** The error in a body or in an event. */
export function findError(event: unknown): unknown {
  const error = getField(event, "error") ?? getField(getField(event, "response"), "error") ?? null;
  return error === null && getField(event, "type") === "error" ? event : error;
}

function readStatus(error: unknown): number | null {
  const code = getField(error, "code");
  if (typeof code === "number") return code;
  return lookUp(NAMES, code)?.[1] ?? lookUp(NAMES, getField(error, "type"))?.[1] ?? null;
}
