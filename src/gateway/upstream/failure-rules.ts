// The one table of what a failed attempt means: whose fault it is, whether another
// channel is tried, and what the client is told when none is left. Pure. How long
// a channel rests for it is channel-memory.ts.

import { z } from "zod";
import { type ErrorCode, GatewayError } from "../../lib/errors.ts";
import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import { parseJson } from "../../lib/json/json.ts";
import { readRetryAfterMs } from "./retry-after.ts";

/** What is wrong with a channel that failed. */
export type Cause =
  | "credential"
  | "credit"
  | "forbidden"
  | "rate"
  | "overload"
  | "server"
  | "timeout"
  | "unreachable"
  | "broken";

/** Why an attempt came to nothing. */
export type Failure =
  | { readonly kind: "fault"; readonly channel: string; readonly fault: UpstreamFault }
  | Refused;

export interface Refused {
  readonly kind: "status";
  readonly channel: string;
  /** The upstream's; of an error inside a stream, the status that means the same. */
  readonly status: number;
  readonly cause: Cause;
  /** The upstream's own words, shortened. */
  readonly message: string;
  /** How long the upstream asks to be left alone; null when it doesn't say. */
  readonly waitMs: number | null;
}

interface Rule {
  readonly code: ErrorCode;
  readonly cause: Cause;
  readonly because: string;
}

const REFUSED: Rule = {
  code: "upstream_failed",
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
  [403, { code: "upstream_failed", cause: "forbidden", because: "refused the gateway's credential" }],
  // Of the proxy on the way there: plain requests are answered by it.
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
  because: "answers with a redirect, which is not followed (check its base_url)",
};

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}

function ruleOf(status: number): Rule {
  return STATUS_RULES.get(status) ?? (isRedirect(status) ? REDIRECT : SERVER_ERROR);
}

/** Upstreams say this with statuses that mean something else, too: 400 and 429. A quotation from a client's prompt
 *  doesn't match: its quotes are escaped. */
const TELLING: ReadonlyArray<readonly [words: RegExp, rule: Rule]> = [
  [/"API_KEY_INVALID"/, REFUSED],
  [/"insufficient_quota"|"billing_hard_limit_reached"|"Your credit balance is too low/, OUT_OF_CREDIT],
];

/** Statuses that say something of the channel, not of the request: another channel may do better. */
export function blamesChannel(status: number): boolean {
  return status >= 500 || isRedirect(status) || STATUS_RULES.has(status);
}

/** Statuses with which some upstreams blame the channel, and only the body says so. */
export function mayBlameChannel(status: number): boolean {
  return status === 400 || blamesChannel(status);
}

const FAULT_RULES: Record<UpstreamFault["kind"], Rule> = {
  connect: { code: "upstream_failed", cause: "unreachable", because: "could not be reached" },
  connect_timeout: {
    code: "upstream_timeout",
    cause: "unreachable",
    because: "did not accept a connection in time",
  },
  shortage: { code: "unavailable", cause: "unreachable", because: "was not asked" },
  tls: { code: "upstream_failed", cause: "unreachable", because: "could not be verified (TLS)" },
  first_byte_timeout: { code: "upstream_timeout", cause: "timeout", because: "did not answer in time" },
  idle_timeout: { code: "upstream_timeout", cause: "timeout", because: "fell silent" },
  reset: {
    code: "upstream_failed",
    cause: "broken",
    because: "closed the connection without an answer",
  },
  cut: { code: "upstream_failed", cause: "broken", because: "broke off its answer" },
  malformed: {
    code: "upstream_failed",
    cause: "broken",
    because: "answered something that is not HTTP",
  },
  withdrawn: { code: "client_gone", cause: "broken", because: "was left by the client" },
  cancelled: { code: "client_gone", cause: "broken", because: "was left by the client" },
};

/** The gateway's own: it says nothing of the channel. */
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

/** What the channel did: "is rate limited". */
export function nameFailure(failure: Failure): string {
  return findRule(failure).because;
}

/** The same with the upstream's words, for whoever asked it: "is rate limited: 429 Slow down". */
export function explainFailure(failure: Failure): string {
  const said =
    failure.kind === "fault" ? failure.fault.message : `${failure.status} ${failure.message}`.trim();
  return `${findRule(failure).because}: ${said}`;
}

/** Clients do what a retry-after says, however long it is. */
const LONGEST_RETRY_AFTER = 60;

export function describeFailure(failure: Failure): GatewayError {
  const { code } = findRule(failure);
  const text = `The channel "${failure.channel}" ${explainFailure(failure)}`;
  const waitMs = failure.kind === "status" ? failure.waitMs : null;
  if (waitMs === null && code !== "unavailable") return new GatewayError(code, text);
  return new GatewayError(code, text, { retryAfterSeconds: toRetryAfter(waitMs ?? 5000) });
}

export function toRetryAfter(waitMs: number): number {
  return Math.min(LONGEST_RETRY_AFTER, Math.max(1, Math.ceil(waitMs / 1000)));
}

/** For a body that broke off after the first byte. */
export function describeBreak(channel: string, fault: UpstreamFault): GatewayError {
  return describeFailure({ kind: "fault", channel, fault });
}

/** For answers that broke off again and again: what each of them said of it matters no more. */
export function blameBreaks(channel: string): Failure {
  const fault = new UpstreamFault("cut", "its last answers did not come whole", true);
  return { kind: "fault", channel, fault };
}

const MESSAGE_LIMIT = 300;

/** What an upstream's error answer says of its channel, whichever dialect it says it in; null when it speaks of the
 *  request only. */
export function readFailure(
  channel: string,
  response: UpstreamResponse,
  body: Uint8Array,
  now: number,
): Refused | null {
  const text = new TextDecoder().decode(body);
  const failure = judgeRefusal(channel, response.status, text);
  return failure === null ? null : { ...failure, waitMs: readRetryAfterMs(response, text, now) };
}

export function judgeRefusal(channel: string, status: number, text: string): Refused | null {
  const told = status < 500 ? TELLING.find(([words]) => words.test(text))?.[1] : undefined;
  if (told === undefined && !blamesChannel(status)) return null;
  const { cause } = told ?? ruleOf(status);
  const message = readErrorMessage(text).slice(0, MESSAGE_LIMIT);
  return { kind: "status", channel, status, cause, message, waitMs: null };
}

/** For an error that came in a stream: `status` says the same. */
export function blame(channel: string, status: number, message: string): Refused {
  const { cause } = ruleOf(status);
  return { kind: "status", channel, status, cause, message: message.slice(0, MESSAGE_LIMIT), waitMs: null };
}

const ErrorBody = z.looseObject({ error: z.union([z.string(), z.looseObject({ message: z.string() })]) });

/** All dialects put it at `error.message`, in a list where the answer would have been one; pages of proxies in between
 *  are not worth quoting. */
function readErrorMessage(text: string): string {
  const body = parseJson(text);
  const parsed = ErrorBody.safeParse(Array.isArray(body) ? body[0] : body);
  if (!parsed.success) return "";
  return typeof parsed.data.error === "string" ? parsed.data.error : parsed.data.error.message;
}

/** For a stream that ended cleanly, but without its dialect's terminal event. */
export function describeEarlyEnd(channel: string): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `The channel "${channel}" ended its answer before it was complete.`,
  );
}
