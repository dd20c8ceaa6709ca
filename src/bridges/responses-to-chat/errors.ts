// An upstream's error as the native chat endpoint would report it: status, the four keys, and the client's field names.

import type { WireError } from "../../dialects/formats/openai.ts";
import { isObject, parseJson } from "../../lib/json/json.ts";
import type { BridgeContext } from "./context.ts";
import { ReplyError } from "./response/events.ts";
import { translateMessage, translatePath } from "./request/paths.ts";

export interface ChatError {
  readonly status: number;
  readonly error: WireError;
}

/** An upstream's HTTP error, converted for the client. */
export function convertError(
  status: number,
  body: Uint8Array | string,
  context: BridgeContext,
): { status: number; body: string } {
  const failure = readFailure(typeof body === "string" ? body : new TextDecoder().decode(body));
  const translated = translateNames(failure, context);
  const refusal =
    failure.code === "model_not_found" && (status === 400 || status === 404)
      ? reportUnknownModel(context)
      : { status, error: { ...translated, type: failure.type || nameType(status) } };
  return { status: refusal.status, body: writeError(refusal.error) };
}

export function writeError(error: WireError): string {
  return JSON.stringify({ error });
}

/** An error inside a response with status 200. */
export function convertFailure(failure: ReplyError, context: BridgeContext): ChatError {
  const { code } = failure;
  if (code === "model_not_found") return reportUnknownModel(context);
  if (code === "insufficient_quota" || failure.type === "insufficient_quota") return OUT_OF_QUOTA;
  const status = statusOf(code ?? failure.type);
  const error = translateNames(failure, context);
  return { status, error: { ...error, type: isGenericType(failure.type) ? nameType(status) : failure.type } };
}

/** A defect of the upstream's response that the gateway found. */
export function blameUpstream(status: number, code: string, message: string): ChatError {
  return { status, error: { message, type: "server_error", param: null, code } };
}

/** Hides the details of the upstream's account from the client. */
const OUT_OF_QUOTA = blameUpstream(
  503,
  "upstream_unavailable",
  "The upstream's quota is used up. Try again later.",
);

const SERVER_CODES = new Set(["server_error", "vector_store_timeout", "timeout"]);
const CLIENT_CODES =
  /^(?:context_length_exceeded|invalid_prompt|invalid_request_error|bio_policy|data_residency_mismatch|.*image.*|invalid_.*|unsupported_.*)$/;

function statusOf(code: string): number {
  if (code === "rate_limit_exceeded" || code === "rate_limit_error") return 429;
  if (code === "server_is_overloaded" || code === "slow_down") return 503;
  return !SERVER_CODES.has(code) && CLIENT_CODES.test(code) ? 400 : 500;
}

function nameType(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/** The type "error" says nothing about the cause. */
function isGenericType(type: string): boolean {
  return type === "" || type === "error";
}

function translateNames(failure: ReplyError, context: BridgeContext): Omit<WireError, "type"> {
  const message = translateMessage(failure.message || "The upstream failed without saying why.", context);
  const param = failure.param === null ? null : translatePath(failure.param, context);
  const about = failure.code === "context_length_exceeded" ? "messages" : param;
  return { message, param: about, code: failure.code };
}

/** Chat uses 404 for an unknown model, Responses 400. */
function reportUnknownModel(context: BridgeContext): ChatError {
  const message = `The model \`${context.model}\` does not exist or you do not have access to it.`;
  return {
    status: 404,
    error: { message, type: "invalid_request_error", param: null, code: "model_not_found" },
  };
}

const MAX_SHOWN_CHARACTERS = 500;

/** If the body has another shape or no message, its beginning is the message. */
function readFailure(body: string): ReplyError {
  const parsed = parseJson(body);
  const outer = isObject(parsed) ? parsed : {};
  const { error } = outer;
  const message = typeof error === "string" ? error : (outer["message"] ?? outer["detail"]);
  const failure = ReplyError.parse(isObject(error) ? error : { ...outer, message });
  return failure.message === ""
    ? { ...failure, message: body.slice(0, MAX_SHOWN_CHARACTERS).trim() }
    : failure;
}
