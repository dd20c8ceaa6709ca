// Writes the body of an error with a given status, in the words of each platform.

import { answerJson, replaceFields, type Answer } from "./answer.ts";
import type { FamilyName } from "./family.ts";
import type { Json } from "../json.ts";

interface Wording {
  readonly messages: string;
  readonly openai: readonly [type: string, code: string | null];
  readonly content: string;
  readonly text: string;
}

const WORDINGS: Readonly<Record<number, Wording>> = {
  400: wording(
    "invalid_request_error",
    ["invalid_request_error", "invalid_value"],
    "INVALID_ARGUMENT",
    "A field is not as expected.",
  ),
  401: wording(
    "authentication_error",
    ["invalid_request_error", "invalid_api_key"],
    "UNAUTHENTICATED",
    "The credential is not valid.",
  ),
  402: wording(
    "billing_error",
    ["insufficient_quota", "insufficient_quota"],
    "FAILED_PRECONDITION",
    "Your credit balance is too low.",
  ),
  403: wording(
    "permission_error",
    ["invalid_request_error", "insufficient_permissions"],
    "PERMISSION_DENIED",
    "This is not permitted.",
  ),
  404: wording(
    "not_found_error",
    ["invalid_request_error", "model_not_found"],
    "NOT_FOUND",
    "There is no such model or path.",
  ),
  408: wording("timeout_error", ["server_error", null], "DEADLINE_EXCEEDED", "The request took too long."),
  413: wording(
    "request_too_large",
    ["invalid_request_error", null],
    "INVALID_ARGUMENT",
    "The request is too large.",
  ),
  422: wording(
    "invalid_request_error",
    ["invalid_request_error", "invalid_value"],
    "INVALID_ARGUMENT",
    "This cannot be processed.",
  ),
  429: wording(
    "rate_limit_error",
    ["requests", "rate_limit_exceeded"],
    "RESOURCE_EXHAUSTED",
    "Too many requests.",
  ),
  500: wording("api_error", ["server_error", null], "INTERNAL", "Internal server error"),
  502: wording("api_error", ["server_error", null], "UNAVAILABLE", "Bad gateway"),
  503: wording(
    "api_error",
    ["server_error", null],
    "UNAVAILABLE",
    "The model is overloaded. Please try again later.",
  ),
  504: wording(
    "timeout_error",
    ["server_error", null],
    "DEADLINE_EXCEEDED",
    "The model did not answer in time.",
  ),
  529: wording("overloaded_error", ["server_error", null], "UNAVAILABLE", "Overloaded"),
};

const UNKNOWN = wording("api_error", ["server_error", null], "UNKNOWN", "Something went wrong.");

function wording(messages: string, openai: Wording["openai"], content: string, text: string): Wording {
  return { messages, openai, content, text };
}

export function answerError(family: FamilyName, status: number, text?: string): Answer {
  const answer = answerJson(family, writeError(family, status, text), status);
  if (status !== 429 || family === "content") return answer;
  return replaceFields(answer, [["retry-after", "1"]]);
}

export function writeError(family: FamilyName, status: number, text?: string): Json {
  const { messages, openai, content, text: usual } = WORDINGS[status] ?? UNKNOWN;
  const message = text ?? usual;
  if (family === "messages") {
    return { type: "error", error: { type: messages, message }, request_id: "req_demo" };
  }
  if (family === "content") {
    return { error: { code: status, message, status: content, ...(status === 429 ? RETRY : {}) } };
  }
  return { error: { message, type: openai[0], param: null, code: openai[1] } };
}

const RETRY = { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "1s" }] };
