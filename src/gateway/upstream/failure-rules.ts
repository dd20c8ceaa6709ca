// The one table of what a failed attempt means: its cause, whether another channel is tried, and which error the client
// gets if none is left. Pure. channels/record.ts decides how long the channel rests.

import type { Dialect, DialectName } from "../../dialects/dialect.ts";
import { type ErrorCode, GatewayError } from "../../lib/errors.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { UpstreamFault, type UpstreamResponse } from "../../lib/http/upstream.ts";
import { parseJson } from "../../lib/json/json.ts";
import { readHiddenWait, readRetryAfter } from "./retry-after.ts";

/** What is wrong with a channel that failed. */
export type Cause =
  | "credential"
  | "credit"
  | "rate"
  | "overload"
  | "server"
  | "timeout"
  | "unreachable"
  | "broken";

/** Why an attempt failed. */
export type Failure =
  | { readonly kind: "fault"; readonly channel: string; readonly fault: UpstreamFault }
  | StatusFailure;

export interface StatusFailure {
  readonly kind: "status";
  readonly channel: string;
  /** The upstream's status. For an error inside a stream, the status with the same meaning. */
  readonly status: number;
  readonly cause: Cause;
  /** The upstream's message, shortened. */
  readonly message: string;
  /** How long the upstream asks us to wait; null if it does not say. */
  readonly waitMs: number | null;
  /** The client cannot see `waitMs` where it looks, which is `retry-after`. So it does not wait, and we cannot make it. */
  readonly waitIsHidden?: boolean;
  /** What the client gets again while the channel is in cooldown; null if there is nothing that can be repeated. */
  readonly response: RefusedResponse | null;
}

/** An upstream's error response, without secrets. */
export interface RefusedResponse {
  readonly status: number;
  /** The upstream's dialect. A request in another dialect cannot get this response. */
  readonly dialect: DialectName;
  readonly fields: Fields;
  readonly body: Uint8Array;
}

interface Rule {
  readonly code: ErrorCode;
  readonly cause: Cause;
  readonly because: string;
}

const REFUSED: Rule = {
  code: "credential_refused",
  cause: "credential",
  because: "refused the gateway's credential",
};
const OUT_OF_CREDIT: Rule = {
  code: "upstream_failed",
  cause: "credit",
  because: "says that the account is out of credit",
};
const LATE: Rule = { code: "upstream_timeout", cause: "timeout", because: "timed out" };
const SERVER_ERROR: Rule = { code: "upstream_failed", cause: "server", because: "failed" };

const STATUS_RULES: ReadonlyMap<number, Rule> = new Map<number, Rule>([
  [401, REFUSED],
  [402, OUT_OF_CREDIT],
  // The proxy on the way to the upstream sends this.
  [407, { code: "upstream_failed", cause: "unreachable", because: "could not be reached by its proxy" }],
  [408, LATE],
  [429, { code: "unavailable", cause: "rate", because: "is rate limited" }],
  [503, { code: "unavailable", cause: "overload", because: "is unavailable" }],
  [504, LATE],
  [529, { code: "overloaded", cause: "overload", because: "is overloaded" }],
]);

const REDIRECT: Rule = {
  code: "upstream_failed",
  cause: "broken",
  because: "responds with a redirect, which the gateway does not follow (check its base_url)",
};

const FOREIGN_BODY: Rule = {
  code: "upstream_failed",
  cause: "broken",
  because: "sent something that is not a response of this endpoint (check its base_url)",
};

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}

function ruleOf(status: number): Rule {
  if (status < 300) return FOREIGN_BODY;
  return STATUS_RULES.get(status) ?? (isRedirect(status) ? REDIRECT : SERVER_ERROR);
}

/** Upstreams also send these codes with statuses that have other meanings (400, 403, 429). A prompt that is quoted in an
 *  error does not match, because its quotes are escaped. */
const BODY_RULES: ReadonlyArray<readonly [words: RegExp, rule: Rule]> = [
  [/"API_KEY_INVALID"/, REFUSED],
  [/"insufficient_quota"|"billing_hard_limit_reached"|"Your credit balance is too low/, OUT_OF_CREDIT],
];

/** Most 403 are about the request: no access to this model or beta. These are about the credential. */
const CREDENTIAL_403 =
  /"(?:authentication_error|invalid_api_key|account_deactivated|SERVICE_DISABLED|API_KEY_[A-Z_]+|CONSUMER_[A-Z_]+|ACCESS_TOKEN_[A-Z_]+)"|unregistered callers|\b(?:key|token|credentials?|account|organization)\b[^"]{0,60}\b(?:invalid|not valid|expired|revoked|disabled|deactivated|suspended|leaked|not found)\b|\binvalid (?:api|access|authentication)\b/i;

/** The client gets the last channel's own error, except these: a refused credential (clients would ask the user for
 *  another key), a redirect, and an error of the proxy on the way. */
export function isForClient({ status, cause }: StatusFailure): boolean {
  return status >= 400 && status !== 407 && cause !== "credential";
}

/** Statuses that say something about the channel and not about the request. Another channel may succeed. */
export function blamesChannel(status: number): boolean {
  return status >= 500 || isRedirect(status) || STATUS_RULES.has(status);
}

/** Also statuses whose body decides whether the channel is to blame. */
export function mayBlameChannel(status: number): boolean {
  return status === 400 || status === 403 || blamesChannel(status);
}

const FAULT_RULES: Record<UpstreamFault["kind"], Rule> = {
  connect: { code: "upstream_failed", cause: "unreachable", because: "could not be reached" },
  connect_timeout: {
    code: "upstream_timeout",
    cause: "unreachable",
    because: "did not accept a connection in time",
  },
  shortage: { code: "unavailable", cause: "unreachable", because: "was not called" },
  tls: { code: "upstream_failed", cause: "unreachable", because: "could not be verified (TLS)" },
  first_byte_timeout: { code: "upstream_timeout", cause: "timeout", because: "did not respond in time" },
  idle_timeout: { code: "upstream_timeout", cause: "timeout", because: "stopped sending" },
  reset: { code: "upstream_failed", cause: "broken", because: "closed the connection without a response" },
  cut: { code: "upstream_failed", cause: "broken", because: "broke off its response" },
  malformed: { code: "upstream_failed", cause: "broken", because: "sent something that is not HTTP" },
  withdrawn: { code: "client_gone", cause: "broken", because: "was abandoned by the client" },
  cancelled: { code: "client_gone", cause: "broken", because: "was abandoned by the client" },
};

/** The gateway has run out of files or ports. That says nothing about the channel. */
export function isShortage(failure: Failure): boolean {
  return failure.kind === "fault" && failure.fault.kind === "shortage";
}

function findRule(failure: Failure): Rule {
  if (failure.kind === "fault") return FAULT_RULES[failure.fault.kind];
  if (failure.cause === "credit") return OUT_OF_CREDIT;
  if (failure.cause === "credential") return REFUSED;
  return ruleOf(failure.status);
}

export function causeOf(failure: Failure): Cause {
  return findRule(failure).cause;
}

/** It does not pass by waiting. */
export function needsOwner(failure: Failure): boolean {
  const cause = causeOf(failure);
  return cause === "credential" || cause === "credit";
}

/** For example "is rate limited". */
export function nameFailure(failure: Failure): string {
  return findRule(failure).because;
}

/** The same with the upstream's message, for the client that sent the request: "is rate limited: 429 Slow down". */
export function explainFailure(failure: Failure): string {
  const said =
    failure.kind === "fault" ? failure.fault.message : `${failure.status} ${failure.message}`.trim();
  return `${findRule(failure).because}: ${said}`;
}

/** Clients obey retry-after, however long it is. */
const MAX_RETRY_AFTER_SECONDS = 60;

function adviseCredential({ channel }: Failure): string {
  return `\`gateway channels set ${channel} --credential -\` replaces it; \`gateway doctor\` says where it is.`;
}

/** Claude Code replaces an error that has these words by its own advice: "Not logged in. Please run /login". The user's
 *  login is fine, and the reason would be lost. */
function rewordCredential(text: string): string {
  return text.replaceAll(/\bx-api-key\b/gi, "API key").replaceAll(/\boauth /gi, "");
}

export function describeFailure(failure: Failure): GatewayError {
  const { code, cause } = findRule(failure);
  const explained = `The channel "${failure.channel}" ${explainFailure(failure)}`;
  const text =
    cause === "credential"
      ? `${rewordCredential(explained).replace(/\.$/, "")}. ${adviseCredential(failure)}`
      : explained;
  const waitMs = failure.kind === "status" ? failure.waitMs : null;
  if (waitMs === null && code !== "unavailable") return new GatewayError(code, text);
  return new GatewayError(code, text, { retryAfterSeconds: toRetryAfter(waitMs ?? 5000) });
}

export function toRetryAfter(waitMs: number): number {
  return Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(waitMs / 1000)));
}

/** For a response that broke off after its first byte. */
export function describeBreak(channel: string, fault: UpstreamFault): GatewayError {
  return describeFailure({ kind: "fault", channel, fault });
}

/** For several responses in a row that broke off, whatever the reason for each. */
export function blameBreaks(channel: string): Failure {
  const fault = new UpstreamFault("cut", "its last responses were incomplete", true);
  return { kind: "fault", channel, fault };
}

const MAX_MESSAGE_LENGTH = 300;

/** What an upstream's error response says about its channel; null if it is only about the request. */
export function readFailure(
  channel: string,
  response: UpstreamResponse,
  body: Uint8Array,
  { dialect, now }: { readonly dialect: Dialect; readonly now: number },
): StatusFailure | null {
  const text = new TextDecoder().decode(body);
  const failure = judgeRefusal(channel, response.status, text, dialect);
  if (failure === null) return null;
  const seen = readRetryAfter(response, now);
  return { ...failure, waitMs: seen ?? readHiddenWait(response, text, now), waitIsHidden: seen === null };
}

export function judgeRefusal(
  channel: string,
  status: number,
  text: string,
  dialect: Dialect,
): StatusFailure | null {
  const rule = findBodyRule(status, text);
  if (rule === undefined && !blamesChannel(status)) return null;
  const { cause } = rule ?? ruleOf(status);
  const message = quoteMessage(dialect.upstreamErrors.readMessage(parseJson(text)));
  return { kind: "status", channel, status, cause, message, waitMs: null, response: null };
}

function findBodyRule(status: number, text: string): Rule | undefined {
  if (status >= 500) return undefined;
  if (status === 403 && CREDENTIAL_403.test(text)) return REFUSED;
  return BODY_RULES.find(([words]) => words.test(text))?.[1];
}

const FOREIGN_BODIES = { empty: "with an empty body", foreign: "with neither JSON nor an event stream" };

/** For a success status with a body that no endpoint sends: a page of a proxy, or nothing. */
export function blameBody(
  channel: string,
  status: number,
  start: keyof typeof FOREIGN_BODIES,
): StatusFailure {
  return blame(channel, status, FOREIGN_BODIES[start]);
}

/** For an error inside a stream. `status` has the same meaning. */
export function blame(channel: string, status: number, message: string): StatusFailure {
  const { cause } = ruleOf(status);
  return {
    kind: "status",
    channel,
    status,
    cause,
    message: quoteMessage(message),
    waitMs: null,
    response: null,
  };
}

/** One line: a second one could look like a message of the gateway in its log. */
function quoteMessage(message: string): string {
  return message.slice(0, MAX_MESSAGE_LENGTH).replaceAll(/\s+/g, " ").trim();
}

/** For a stream whose connection ended normally, but without its dialect's terminal event. */
export function describeEarlyEnd(channel: string): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `The channel "${channel}" ended its response before it was complete.`,
  );
}
