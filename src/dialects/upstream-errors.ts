// Upstreams' errors: an object under `error`, in a body or in a stream.

import { getField, getList, getText } from "../lib/json/json.ts";

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

/** Upstreams' names for errors. `kind` is for converted errors. If it is null, their status decides.
 *  `status` is for an error event that begins a stream. If it is null, the client gets the event. */
type Row = readonly [kind: ErrorKind | null, status: number | null, names: string];
const ROWS: readonly Row[] = [
  ["overflow", null, "context_length_exceeded model_max_prompt_tokens_exceeded exceed_context_size_error"],
  [null, 401, "authentication_error"],
  ["refused", 401, "invalid_api_key"],
  ["quota", 402, "billing_error insufficient_quota"],
  [null, 403, "permission_error"],
  ["unknown_model", null, "model_not_found not_found_error"],
  ["rate", 429, "rate_limit_error rate_limit_exceeded slow_down"],
  ["rate", null, "resource_exhausted"],
  ["server", 500, "api_error server_error internal_server_error"],
  ["server", 504, "timeout_error"],
  ["server", null, "internal"],
  ["overloaded", 503, "server_is_overloaded"],
  ["overloaded", 529, "overloaded_error"],
  ["overloaded", null, "unavailable"],
  ["refused", null, "invalid_request_error invalid_prompt invalid_argument failed_precondition"],
];
const BY_NAME = new Map<unknown, Row>(
  ROWS.flatMap((row) => row[2].split(" ").map((name) => [name, row] as const)),
);

/** OpenAI's names for a wrong request. */
const REFUSED = /^(?:bio_policy|data_residency_mismatch|.*image.*|invalid_.*|unsupported_.*)$/;

export function kindOfName(name: unknown): ErrorKind | undefined {
  if (typeof name !== "string") return undefined;
  return BY_NAME.get(name.toLowerCase())?.[0] ?? (REFUSED.test(name) ? "refused" : undefined);
}

/** An error instead of a stream, alone or in a list. */
export const BARE_ERROR = /^\[?\s*\{\s*"error"/;

export function readErrorMessage(body: unknown): string {
  const error = getField(Array.isArray(body) ? getList(body)[0] : body, "error");
  return typeof error === "string" ? error : getText(getField(error, "message"));
}

/** True for an event that comes before all output and has no usage. */
export function isPrelude(event: unknown): boolean {
  return PRELUDES.has(getField(event, "type"));
}

/** Returns an error with its HTTP status, or null if the client gets the event. */
export function readErrorEvent(event: unknown): { readonly status: number; readonly message: string } | null {
  const error = findError(event);
  if (error === null) return null;
  // An error with usage is billed, so it is passed on.
  const usage = getField(getField(event, "response"), "usage") ?? getField(event, "usage");
  if (usage !== undefined && usage !== null) return null;
  const [code, type] = [getField(error, "code"), getField(error, "type")];
  const named = BY_NAME.get(code)?.[1] ?? BY_NAME.get(type)?.[1] ?? null;
  const status = typeof code === "number" ? code : named;
  return status === null ? null : { status, message: getText(getField(error, "message")) };
}

export function findError(event: unknown): unknown {
  const error = getField(event, "error") ?? getField(getField(event, "response"), "error") ?? null;
  return error === null && getField(event, "type") === "error" ? event : error;
}
