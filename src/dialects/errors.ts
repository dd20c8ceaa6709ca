// What each error of the gateway is called in each dialect: the one table, and
// the header fields that go with an error. How the words are put on the wire is
// each dialect's own file.

import type { ErrorCode, GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http1/types.ts";

interface Words {
  readonly messages: string;
  /** For responses and chat: type and code. An error's own wire code wins over the code. */
  readonly openai: readonly [type: string, code: string | null];
  /** A google.rpc code. */
  readonly content: string;
}

const UNAUTHENTICATED: Words = {
  messages: "authentication_error",
  openai: ["invalid_request_error", "invalid_api_key"],
  content: "UNAUTHENTICATED",
};

/** Claude Code hides the text of an overloaded_error: only a true 529 is called so. */
const FAILED: Words = {
  messages: "api_error",
  openai: ["server_error", "server_error"],
  content: "UNAVAILABLE",
};

function refuseAs(messages: string, code: string | null, content: string): Words {
  return { messages, openai: ["invalid_request_error", code], content };
}

export const WORDS: Readonly<Record<ErrorCode, Words>> = {
  key_missing: UNAUTHENTICATED,
  key_unknown: UNAUTHENTICATED,
  key_disabled: UNAUTHENTICATED,
  key_expired: UNAUTHENTICATED,
  // With model_not_found Codex stops at once and shows the message; with others it retries.
  wrong_platform: refuseAs("permission_error", "model_not_found", "PERMISSION_DENIED"),
  plan_inactive: refuseAs("permission_error", "plan_inactive", "PERMISSION_DENIED"),
  host_refused: refuseAs("permission_error", "host_refused", "PERMISSION_DENIED"),
  origin_refused: refuseAs("permission_error", "origin_refused", "PERMISSION_DENIED"),
  unknown_path: refuseAs("not_found_error", "model_not_found", "NOT_FOUND"),
  unknown_model: refuseAs("not_found_error", "model_not_found", "NOT_FOUND"),
  bad_request: refuseAs("invalid_request_error", null, "INVALID_ARGUMENT"),
  unsupported: refuseAs("invalid_request_error", "unsupported_parameter", "INVALID_ARGUMENT"),
  body_too_large: refuseAs("request_too_large", null, "INVALID_ARGUMENT"),
  head_too_large: refuseAs("invalid_request_error", null, "INVALID_ARGUMENT"),
  head_too_slow: refuseAs("timeout_error", "request_timeout", "DEADLINE_EXCEEDED"),
  coding_unknown: refuseAs("invalid_request_error", null, "UNIMPLEMENTED"),
  version_unknown: refuseAs("invalid_request_error", null, "UNIMPLEMENTED"),
  upgrade_required: refuseAs("invalid_request_error", "upgrade_required", "FAILED_PRECONDITION"),
  rate_limited: {
    messages: "rate_limit_error",
    openai: ["rate_limit_error", "rate_limit_exceeded"],
    content: "RESOURCE_EXHAUSTED",
  },
  limit_spent: {
    messages: "rate_limit_error",
    openai: ["insufficient_quota", "insufficient_quota"],
    content: "RESOURCE_EXHAUSTED",
  },
  limit_unenforceable: {
    messages: "rate_limit_error",
    openai: ["insufficient_quota", "insufficient_quota"],
    content: "RESOURCE_EXHAUSTED",
  },
  internal: { ...FAILED, content: "INTERNAL" },
  upstream_failed: FAILED,
  unavailable: FAILED,
  ledger_unwritable: FAILED,
  upstream_timeout: { ...FAILED, messages: "timeout_error", content: "DEADLINE_EXCEEDED" },
  overloaded: { ...FAILED, messages: "overloaded_error" },
  client_gone: { ...FAILED, content: "CANCELLED" },
};

/** Official SDKs sleep for as long as it says, hours too, before they show the error; Claude Code shows it at once from
 *  here on. The error's words say when a limit resets. */
const LONGEST_RETRY_AFTER = 90;

/** The fields of an error's answer, whatever its dialect. */
export function errorFields(error: GatewayError): Field[] {
  const { status, retryAfterSeconds } = error;
  const fields: Field[] = [["content-type", "application/json"]];
  if (retryAfterSeconds !== null) {
    fields.push(["retry-after", String(Math.min(LONGEST_RETRY_AFTER, Math.ceil(retryAfterSeconds)))]);
  }
  if (status === 401) fields.push(["www-authenticate", "Bearer"]);
  // Without it Claude Code goes on retrying a 401 for most of a minute.
  if (status >= 400 && status < 500 && status !== 429) fields.push(["x-should-retry", "false"]);
  return fields;
}
