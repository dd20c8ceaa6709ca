// An upstream's failure, told as the native chat endpoint tells it: its status,
// its four keys, the client's own names.

import type { WireError } from "../../dialects/openai.ts";
import { isObject, parseJson } from "../../lib/json/json.ts";
import type { BridgeContext } from "./context.ts";
import { Failure } from "./response/events.ts";
import { translateMessage, translatePath } from "./request/paths.ts";

export interface Refusal {
  readonly status: number;
  readonly error: WireError;
}

/** An upstream's HTTP error, as the client is to get it. */
export function convertError(
  status: number,
  body: Uint8Array | string,
  context: BridgeContext,
): { status: number; body: string } {
  const failure = readFailure(typeof body === "string" ? body : new TextDecoder().decode(body));
  const translated = translate(failure, context);
  const refusal =
    failure.code === "model_not_found" && (status === 400 || status === 404)
      ? refuseModel(context)
      : { status, error: { ...translated, type: failure.type || nameType(status) } };
  return { status: refusal.status, body: writeError(refusal.error) };
}

export function writeError(error: WireError): string {
  return JSON.stringify({ error });
}

/** A failure inside of an answer whose status was 200. */
export function judgeFailure(failure: Failure, context: BridgeContext): Refusal {
  const { code } = failure;
  if (code === "model_not_found") return refuseModel(context);
  if (code === "insufficient_quota" || failure.type === "insufficient_quota") return OUT_OF_QUOTA;
  const status = statusOf(code ?? failure.type);
  const error = translate(failure, context);
  return { status, error: { ...error, type: isGenericType(failure.type) ? nameType(status) : failure.type } };
}

/** What the gateway itself finds wrong with an answer. */
export function blameUpstream(status: number, code: string, message: string): Refusal {
  return { status, error: { message, type: "server_error", param: null, code } };
}

/** The upstream's account is not the client's business. */
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

/** An event's `type` says what went wrong only when it is not just "error". */
function isGenericType(type: string): boolean {
  return type === "" || type === "error";
}

function translate(failure: Failure, context: BridgeContext): Omit<WireError, "type"> {
  const message = translateMessage(failure.message || "The upstream failed without saying why.", context);
  const param = failure.param === null ? null : translatePath(failure.param, context);
  const about = failure.code === "context_length_exceeded" ? "messages" : param;
  return { message, param: about, code: failure.code };
}

/** Not found is 404 in chat, where Responses says 400. */
function refuseModel(context: BridgeContext): Refusal {
  const message = `The model \`${context.model}\` does not exist or you do not have access to it.`;
  return {
    status: 404,
    error: { message, type: "invalid_request_error", param: null, code: "model_not_found" },
  };
}

const SHOWN = 500;

/** The error object; a body of some other shape, or without a message, is the message itself. */
function readFailure(body: string): Failure {
  const parsed = parseJson(body);
  const outer = isObject(parsed) ? parsed : {};
  const { error } = outer;
  const message = typeof error === "string" ? error : (outer["message"] ?? outer["detail"]);
  const failure = Failure.parse(isObject(error) ? error : { ...outer, message });
  return failure.message === "" ? { ...failure, message: body.slice(0, SHOWN).trim() } : failure;
}
