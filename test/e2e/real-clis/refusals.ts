// Errors as the platforms word them, with the headers that they send. `message` is what a user should see.

import type { Field } from "../../../src/lib/http/fields.ts";

export type Maker = "anthropic" | "openai" | "google";

export interface Refusal {
  readonly status: number;
  /** Distinguishes refusals with the same status. */
  readonly name: string;
  readonly message: string;
  readonly fields: readonly Field[];
  readonly type: string;
  readonly body: string;
}

interface Details {
  readonly name?: string;
  readonly fields?: readonly Field[];
}

function refuse(
  status: number,
  message: string,
  body: unknown,
  { name = "", fields = [] }: Details,
): Refusal {
  return { status, name, message, fields, type: "application/json", body: JSON.stringify(body) };
}

function anthropic(status: number, type: string, message: string, details: Details = {}): Refusal {
  const body = { type: "error", error: { type, message }, request_id: "req_011CVMadeUpForATest" };
  const fields: Field[] = [["request-id", body.request_id], ...(details.fields ?? [])];
  return refuse(status, message, body, { ...details, fields });
}

function openai(
  status: number,
  [type, code]: readonly [type: string, code: string | null],
  message: string,
  details: Details = {},
): Refusal {
  return refuse(status, message, { error: { message, type, param: null, code } }, details);
}

function google(
  code: number,
  status: string,
  message: string,
  { details, ...more }: Details & { readonly details?: readonly object[] } = {},
): Refusal {
  return refuse(code, message, { error: { code, message, status, ...(details && { details }) } }, more);
}

const AGAIN: Field = ["x-should-retry", "true"];
const NOT_AGAIN: Field = ["x-should-retry", "false"];
const SOON: Field = ["retry-after", "3"];
const HOURS: Field = ["retry-after", "7200"];

/** A proxy or a load balancer before the platform. */
const PAGE: Refusal = {
  status: 503,
  name: "page",
  message: "503",
  fields: [],
  type: "text/html",
  body: "<html><head><title>503 Service Temporarily Unavailable</title></head><body><center><h1>503 Service Temporarily Unavailable</h1></center></body></html>",
};

function quota(id: string, delay: string): { readonly details: readonly object[] } {
  const type = "type.googleapis.com/google.rpc";
  const metric = "generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count";
  return {
    details: [
      {
        "@type": `${type}.QuotaFailure`,
        violations: [{ quotaMetric: metric, quotaId: id, quotaValue: "100" }],
      },
      { "@type": `${type}.RetryInfo`, retryDelay: delay },
    ],
  };
}

export const REFUSALS: Readonly<Record<Maker, readonly Refusal[]>> = {
  anthropic: [
    anthropic(401, "authentication_error", "invalid x-api-key", { fields: [NOT_AGAIN] }),
    anthropic(401, "authentication_error", "Invalid bearer token", { name: "relay" }),
    anthropic(402, "billing_error", "Your credit balance is too low to access the API."),
    anthropic(403, "permission_error", "Your organization has no access to this model."),
    anthropic(403, "permission_error", "This organization has been disabled.", { name: "account" }),
    anthropic(408, "timeout_error", "Request timed out."),
    anthropic(429, "rate_limit_error", "This request would exceed your rate limit."),
    anthropic(429, "rate_limit_error", "Too many input tokens per minute.", {
      name: "3 s",
      fields: [SOON, AGAIN],
    }),
    anthropic(429, "rate_limit_error", "You have reached your usage limit.", {
      name: "2 h",
      fields: [HOURS],
    }),
    anthropic(500, "api_error", "Internal server error", { fields: [AGAIN] }),
    anthropic(503, "api_error", "The service is unavailable for a moment."),
    anthropic(503, "overloaded_error", "The service is overloaded.", { name: "overloaded" }),
    PAGE,
    anthropic(529, "overloaded_error", "Overloaded", { fields: [AGAIN] }),
  ],
  openai: [
    openai(401, ["invalid_request_error", "invalid_api_key"], "Incorrect API key provided."),
    openai(402, ["insufficient_quota", "insufficient_quota"], "You exceeded your current quota."),
    openai(
      403,
      ["request_forbidden", "unsupported_country_region_territory"],
      "Country or region not supported",
    ),
    openai(403, ["invalid_request_error", "account_deactivated"], "Your account is not active.", {
      name: "account",
    }),
    openai(408, ["server_error", null], "The request took too long."),
    openai(429, ["tokens", "rate_limit_exceeded"], "Rate limit reached for tokens per minute."),
    openai(429, ["tokens", "rate_limit_exceeded"], "Rate limit reached. Please try again in 3s.", {
      name: "3 s",
      fields: [SOON],
    }),
    openai(429, ["insufficient_quota", "insufficient_quota"], "You exceeded your current quota.", {
      name: "quota",
    }),
    openai(500, ["server_error", null], "The server had an error while processing your request."),
    openai(
      503,
      ["service_unavailable_error", "server_is_overloaded"],
      "Our servers are currently overloaded.",
    ),
    openai(503, ["server_error", null], "The engine is currently unavailable.", { name: "no code" }),
    PAGE,
    openai(529, ["server_error", null], "Overloaded"),
  ],
  google: [
    google(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
    google(402, "FAILED_PRECONDITION", "The billing account has no funds."),
    google(403, "PERMISSION_DENIED", "Your project has no access to this model."),
    google(403, "PERMISSION_DENIED", "Your API key was reported as leaked.", { name: "account" }),
    google(408, "DEADLINE_EXCEEDED", "The request took too long."),
    google(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    google(429, "RESOURCE_EXHAUSTED", "You exceeded your quota. Please retry in 3s.", {
      name: "3 s",
      ...quota("GenerateContentPaidTierInputTokensPerModelPerMinute", "3s"),
    }),
    google(429, "RESOURCE_EXHAUSTED", "You exceeded your daily quota.", {
      name: "day",
      ...quota("GenerateRequestsPerDayPerProjectPerModel", "20000s"),
    }),
    google(500, "INTERNAL", "An internal error has occurred."),
    google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    PAGE,
    google(529, "UNAVAILABLE", "Overloaded"),
  ],
};
