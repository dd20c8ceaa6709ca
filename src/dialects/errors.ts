// The names of each gateway error, and its headers.

import type { ErrorCode, GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http/fields.ts";

interface ErrorNames {
  readonly messages: string;
  /** The error's own `wireCode` replaces the code. */
  readonly openai: readonly [type: string, code: string | null];
  /** A google.rpc code. */
  readonly content: string;
}

const UNAUTHENTICATED = refuseAs("authentication_error", "invalid_api_key", "UNAUTHENTICATED");

/** Claude Code hides the text of an overloaded_error. */
const FAILED: ErrorNames = {
  messages: "api_error",
  openai: ["server_error", "server_error"],
  content: "UNAVAILABLE",
};

function refuseAs(messages: string, code: string | null, content: string): ErrorNames {
  return { messages, openai: ["invalid_request_error", code], content };
}

/** On this code, Codex does not retry, and shows the message. */
const FORBIDDEN = refuseAs("permission_error", "model_not_found", "PERMISSION_DENIED");

const USAGE_LIMIT = "usage_limit_reached";

export const ERROR_NAMES: Readonly<Record<ErrorCode, ErrorNames>> = {
  key_missing: UNAUTHENTICATED,
  key_unknown: UNAUTHENTICATED,
  key_disabled: UNAUTHENTICATED,
  key_expired: UNAUTHENTICATED,
  login_missing: UNAUTHENTICATED,
  wrong_platform: FORBIDDEN,
  credential_refused: FORBIDDEN,
  foreign_client: FORBIDDEN,
  plan_inactive: refuseAs("permission_error", "plan_inactive", "PERMISSION_DENIED"),
  host_refused: refuseAs("permission_error", "host_refused", "PERMISSION_DENIED"),
  origin_refused: refuseAs("permission_error", "origin_refused", "PERMISSION_DENIED"),
  unknown_path: refuseAs("not_found_error", "model_not_found", "NOT_FOUND"),
  unknown_model: refuseAs("not_found_error", "model_not_found", "NOT_FOUND"),
  method_not_allowed: refuseAs("invalid_request_error", "model_not_found", "UNIMPLEMENTED"),
  bad_request: refuseAs("invalid_request_error", null, "INVALID_ARGUMENT"),
  unsupported: refuseAs("invalid_request_error", "unsupported_parameter", "INVALID_ARGUMENT"),
  body_too_large: refuseAs("request_too_large", null, "INVALID_ARGUMENT"),
  upgrade_required: refuseAs("invalid_request_error", "upgrade_required", "FAILED_PRECONDITION"),
  rate_limited: {
    messages: "rate_limit_error",
    openai: ["rate_limit_error", "rate_limit_exceeded"],
    content: "RESOURCE_EXHAUSTED",
  },
  // Codex knows a limit by the type, other tools by the code: decision 0018.
  limit_spent: {
    messages: "rate_limit_error",
    openai: [USAGE_LIMIT, "insufficient_quota"],
    content: "RESOURCE_EXHAUSTED",
  },
  limit_unenforceable: refuseAs("rate_limit_error", "model_not_found", "RESOURCE_EXHAUSTED"),
  internal: { ...FAILED, content: "INTERNAL" },
  upstream_failed: FAILED,
  unavailable: FAILED,
  ledger_unwritable: FAILED,
  upstream_timeout: { ...FAILED, messages: "timeout_error", content: "DEADLINE_EXCEEDED" },
  overloaded: { ...FAILED, messages: "overloaded_error" },
  client_gone: { ...FAILED, content: "CANCELLED" },
};

/** If a client had to wait longer,
 *  `x-should-retry` tells its SDK to give up. */
const MAX_RETRY_SECONDS = 60;

/** opencode ignores `x-should-retry`, and would sleep for days. */
const GIVE_UP_NOW: Field = ["retry-after-ms", "1"];

export function errorFields(error: GatewayError): Field[] {
  const { status, retrySeconds } = error;
  const fields: Field[] = [["content-type", "application/json"]];
  if (retrySeconds !== null) fields.push(["retry-after", String(Math.ceil(retrySeconds))]);
  if (error.allow.length > 0) fields.push(["allow", error.allow.join(", ")]);
  if (status === 401) fields.push(["www-authenticate", "Bearer"]);
  // Without `x-should-retry`, Claude Code retries a 401 for most of a minute.
  const isWorthRetry = status === 429 && retrySeconds !== null && retrySeconds <= MAX_RETRY_SECONDS;
  if (status >= 400 && status < 500 && !isWorthRetry) fields.push(["x-should-retry", "false"]);
  if (status === 429 && retrySeconds !== null && !isWorthRetry) fields.push(GIVE_UP_NOW);
  return fields;
}
