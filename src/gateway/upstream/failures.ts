// What each failure of a channel means:
// its cause, the client's error and the message.

import type { ChannelPlatform } from "../../config/schema.ts";
import { readErrorMessage } from "../../dialects/upstream-errors.ts";
import { type ErrorCode, GatewayError } from "../../lib/errors.ts";
import type { Fields } from "../../lib/http/fields.ts";
import type { UpstreamFault, UpstreamResponse } from "../../lib/http/upstream.ts";
import { parseJson } from "../../lib/json/json.ts";
import { readRetryAfter, readRetryDelay } from "./retry-after.ts";

export type FailureCause =
  | "credential"
  | "credit"
  | "rate"
  | "overload"
  | "server"
  | "timeout"
  | "unreachable"
  | "broken";

interface Rule {
  readonly code: ErrorCode;
  readonly cause: FailureCause;
  readonly because: string;
}

export interface Failure extends Rule {
  readonly channel: string;
  readonly message: string;
  /** An error inside a stream has its own HTTP status here, not 200.
   *  Null without a response. */
  readonly status: number | null;
  readonly fault: UpstreamFault["kind"] | null;
  readonly waitMs: number | null;
  /** `waitMs` was not in `retry-after`, where clients would have seen it. */
  readonly waitIsHidden: boolean;
  /** What the client gets while the channel rests. */
  readonly response: RefusedResponse | null;
}

export interface RefusedResponse {
  readonly status: number;
  /** The upstream's dialect. Only requests in it can get this response. */
  readonly dialect: ChannelPlatform;
  readonly fields: Fields;
  readonly body: Uint8Array;
}

function rule(code: ErrorCode, cause: FailureCause, because: string): Rule {
  return { code, cause, because };
}

const REFUSED = rule("credential_refused", "credential", "refused the gateway's credential");
const OUT_OF_CREDIT = rule("upstream_failed", "credit", "says that the account is out of credit");
const LATE = rule("upstream_timeout", "timeout", "timed out");
const SERVER_ERROR = rule("upstream_failed", "server", "failed");
const REDIRECT = rule(
  "upstream_failed",
  "broken",
  "responds with a redirect, which the gateway does not follow (check its base_url)",
);
const FOREIGN_BODY = rule(
  "upstream_failed",
  "broken",
  "sent something that is not a response of this endpoint (check its base_url)",
);

const STATUS_RULES: Readonly<Partial<Record<number, Rule>>> = {
  401: REFUSED,
  402: OUT_OF_CREDIT,
  // The proxy on the way to the upstream sends this.
  407: rule("upstream_failed", "unreachable", "could not be reached by its proxy"),
  408: LATE,
  429: rule("unavailable", "rate", "is rate limited"),
  503: rule("unavailable", "overload", "is unavailable"),
  504: LATE,
  529: rule("overloaded", "overload", "is overloaded"),
};

/** For any status below 500. A prompt inside an error does not match,
 *  because its quotes are escaped. */
const BODY_RULES: ReadonlyArray<readonly [words: RegExp, rule: Rule]> = [
  [/"API_KEY_INVALID"/, REFUSED],
  [/"insufficient_quota"|"billing_hard_limit_reached"|"Your credit balance is too low/, OUT_OF_CREDIT],
];

/** Most 403 are about the request. These are about the credential. */
const CREDENTIAL_403 =
  /"(?:authentication_error|invalid_api_key|account_deactivated|SERVICE_DISABLED|API_KEY_[A-Z_]+|CONSUMER_[A-Z_]+|ACCESS_TOKEN_[A-Z_]+)"|unregistered callers|\b(?:key|token|credentials?|account|organization)\b[^"]{0,60}\b(?:invalid|not valid|expired|revoked|disabled|deactivated|suspended|leaked|not found)\b|\binvalid (?:api|access|authentication)\b/i;

const FAULT_RULES: Record<UpstreamFault["kind"], Rule> = {
  connect: rule("upstream_failed", "unreachable", "could not be reached"),
  connect_timeout: rule("upstream_timeout", "unreachable", "did not accept a connection in time"),
  /** A shortage says nothing about the channel. */
  shortage: rule("unavailable", "unreachable", "was not called"),
  tls: rule("upstream_failed", "unreachable", "could not be verified (TLS)"),
  first_byte_timeout: rule("upstream_timeout", "timeout", "did not respond in time"),
  idle_timeout: rule("upstream_timeout", "timeout", "stopped sending"),
  reset: rule("upstream_failed", "broken", "closed the connection without a response"),
  cut: rule("upstream_failed", "broken", "broke off its response"),
  malformed: rule("upstream_failed", "broken", "sent something that is not HTTP"),
  withdrawn: rule("client_gone", "broken", "was abandoned by the client"),
  cancelled: rule("client_gone", "broken", "was abandoned by the client"),
};

const NOTHING = {
  status: null,
  fault: null,
  waitMs: null,
  waitIsHidden: false,
  response: null,
};

export function failureOf(channel: string, { kind, message }: UpstreamFault): Failure {
  return { ...NOTHING, ...FAULT_RULES[kind], channel, message, fault: kind };
}

export function failureOfStatus(channel: string, status: number, message: string): Failure {
  // With a line break, the message could forge a line of the log.
  const line = message.slice(0, MAX_MESSAGE_LENGTH).replaceAll(/\s+/g, " ").trim();
  return { ...NOTHING, ...ruleOf(status), channel, status, message: line };
}

/** Returns null if the error is about the request. */
export function readFailure(
  channel: string,
  head: UpstreamResponse | Pick<UpstreamResponse, "status">,
  text: string,
  now: number,
): Failure | null {
  const { status } = head;
  const found = findBodyRule(status, text);
  if (found === undefined && !blamesChannel(status)) return null;
  const said = readErrorMessage(parseJson(text));
  const failure = { ...failureOfStatus(channel, status, said), ...found };
  if (!("fields" in head)) return failure;
  const seen = readRetryAfter(head.fields, now);
  return { ...failure, waitMs: seen ?? readRetryDelay(text), waitIsHidden: seen === null };
}

function findBodyRule(status: number, text: string): Rule | undefined {
  if (status >= 500) return undefined;
  if (status === 403 && CREDENTIAL_403.test(text)) return REFUSED;
  return BODY_RULES.find(([words]) => words.test(text))?.[1];
}

function ruleOf(status: number): Rule {
  if (status < 300) return FOREIGN_BODY;
  return STATUS_RULES[status] ?? (status < 400 ? REDIRECT : SERVER_ERROR);
}

/** Whether another channel may succeed. */
export function blamesChannel(status: number): boolean {
  return status >= 500 || (status >= 300 && status < 400) || STATUS_RULES[status] !== undefined;
}

/** Whether the body may show that the channel is at fault. */
export function mayRefuse(status: number): boolean {
  return status === 400 || status === 403 || status === 404 || blamesChannel(status);
}

/** A refused credential, a redirect or a proxy's error is not passed on. */
export function isForClient({ status, cause }: Failure): boolean {
  return status !== null && status >= 400 && status !== 407 && cause !== "credential";
}

export function needsOwner({ cause }: Failure): boolean {
  return cause === "credential" || cause === "credit";
}

export function explainFailure({ because, status, message }: Failure): string {
  return `${because}: ${`${status ?? ""} ${message}`.trim()}`;
}

export function toError(failure: Failure): GatewayError {
  const { channel, code, cause, waitMs } = failure;
  const explained = `The channel "${channel}" ${explainFailure(failure)}`;
  const text = cause === "credential" ? adviseCredential(explained, channel) : explained;
  if (waitMs === null && code !== "unavailable") return new GatewayError(code, text);
  return new GatewayError(code, text, { retrySeconds: toRetryAfter(waitMs ?? 5000) });
}

/** If an error has `x-api-key` or `oauth`, Claude Code says "Please run /login",
 *  but the login is fine. */
function adviseCredential(explained: string, channel: string): string {
  const reworded = explained.replaceAll(/\bx-api-key\b/gi, "API key").replaceAll(/\boauth /gi, "");
  return `${reworded.replace(/\.$/, "")}. \`gateway channels set ${channel} --credential -\` replaces it; \`gateway doctor\` says where it is.`;
}

/** Clients obey retry-after, however long it is. */
const MAX_RETRY_AFTER_SECONDS = 60;

export function toRetryAfter(waitMs: number): number {
  return Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(waitMs / 1000)));
}

const MAX_MESSAGE_LENGTH = 300;
