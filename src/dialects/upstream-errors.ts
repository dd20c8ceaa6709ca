// Upstreams' errors: an object under `error`, in a body or in a stream.

import { getField, getList, getText } from "../lib/json/json.ts";

const PRELUDES = new Set<unknown>(["ping", "response.created", "response.in_progress", "response.queued"]);

/** Errors in streams of all dialects. */
const STATUS_OF_NAME: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ["authentication_error", 401],
  ["invalid_api_key", 401],
  ["billing_error", 402],
  ["insufficient_quota", 402],
  ["permission_error", 403],
  ["timeout_error", 504],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
  ["slow_down", 429],
  ["api_error", 500],
  ["server_error", 500],
  ["internal_server_error", 500],
  ["server_is_overloaded", 503],
  ["overloaded_error", 529],
]);

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

function findError(event: unknown): unknown {
  const error = getField(event, "error") ?? getField(getField(event, "response"), "error") ?? null;
  return error === null && getField(event, "type") === "error" ? event : error;
}

function readStatus(error: unknown): number | null {
  const code = getField(error, "code");
  if (typeof code === "number") return code;
  return STATUS_OF_NAME.get(code) ?? STATUS_OF_NAME.get(getField(error, "type")) ?? null;
}
