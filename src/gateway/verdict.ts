// The one table of what a failed attempt means: whether another channel is
// tried, and what the client is told when none is left. Pure.

import { type ErrorCode, GatewayError } from "../lib/errors.ts";
import type { Inbound, UpstreamFault } from "../lib/http1/types.ts";
import { z } from "zod";

/** Why an attempt came to nothing. */
export type Failure =
  | { readonly kind: "fault"; readonly channel: string; readonly fault: UpstreamFault }
  | {
      readonly kind: "status";
      readonly channel: string;
      readonly status: number;
      /** The upstream's own words, scrubbed and shortened. */
      readonly message: string;
      readonly retryAfterSeconds: number | null;
    };

interface Rule {
  readonly code: ErrorCode;
  readonly because: string;
}

const STATUS_RULES: ReadonlyMap<number, Rule> = new Map<number, Rule>([
  [401, { code: "upstream_failed", because: "refused the gateway's credential" }],
  [402, { code: "upstream_failed", because: "says that the account is out of credit" }],
  [403, { code: "upstream_failed", because: "refused the gateway's credential" }],
  [408, { code: "upstream_timeout", because: "timed out" }],
  [429, { code: "unavailable", because: "is rate limited" }],
  [503, { code: "unavailable", because: "is unavailable" }],
  [504, { code: "upstream_timeout", because: "timed out" }],
  [529, { code: "overloaded", because: "is overloaded" }],
]);

const SERVER_ERROR: Rule = { code: "upstream_failed", because: "failed" };

/** Statuses that say something of the channel, not of the request: another channel may do better. */
export function blamesChannel(status: number): boolean {
  return status >= 500 || STATUS_RULES.has(status);
}

const FAULT_RULES: Record<UpstreamFault["kind"], Rule> = {
  connect: { code: "upstream_failed", because: "could not be reached" },
  connect_timeout: { code: "upstream_timeout", because: "did not accept a connection in time" },
  tls: { code: "upstream_failed", because: "could not be verified (TLS)" },
  first_byte_timeout: { code: "upstream_timeout", because: "did not answer in time" },
  idle_timeout: { code: "upstream_timeout", because: "fell silent" },
  reset: { code: "upstream_failed", because: "closed the connection without an answer" },
  cut: { code: "upstream_failed", because: "broke off its answer" },
  malformed: { code: "upstream_failed", because: "answered something that is not HTTP" },
  cancelled: { code: "client_gone", because: "was left by the client" },
};

export function describeFailure(failure: Failure): GatewayError {
  const rule =
    failure.kind === "fault"
      ? FAULT_RULES[failure.fault.kind]
      : (STATUS_RULES.get(failure.status) ?? SERVER_ERROR);
  const said =
    failure.kind === "fault" ? failure.fault.message : `${failure.status} ${failure.message}`.trim();
  const text = `The channel "${failure.channel}" ${rule.because}: ${said}`;
  const retryAfterSeconds =
    (failure.kind === "status" ? failure.retryAfterSeconds : null) ??
    (rule.code === "unavailable" ? 5 : null);
  return new GatewayError(rule.code, text, retryAfterSeconds === null ? {} : { retryAfterSeconds });
}

/** For a body that broke off after the first byte. */
export function describeBreak(channel: string, fault: UpstreamFault): GatewayError {
  return describeFailure({ kind: "fault", channel, fault });
}

const MESSAGE_LIMIT = 300;

/** What an upstream's error answer says, whichever dialect it says it in. `body` is scrubbed already. */
export function readFailure(channel: string, inbound: Inbound, body: Uint8Array): Failure {
  const retryAfter = Number(inbound.field("retry-after") ?? Number.NaN);
  return {
    kind: "status",
    channel,
    status: inbound.status,
    message: readErrorMessage(new TextDecoder().decode(body)).slice(0, MESSAGE_LIMIT),
    retryAfterSeconds: Number.isFinite(retryAfter) ? Math.max(0, Math.ceil(retryAfter)) : null,
  };
}

const ErrorBody = z.looseObject({ error: z.union([z.string(), z.looseObject({ message: z.string() })]) });

/** All dialects put it at `error.message`; pages of proxies in between are not worth quoting. */
function readErrorMessage(text: string): string {
  const parsed = ErrorBody.safeParse(parseJson(text));
  if (!parsed.success) return "";
  return typeof parsed.data.error === "string" ? parsed.data.error : parsed.data.error.message;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** For a stream that ended cleanly, but without its dialect's terminal event. */
export function describeEarlyEnd(channel: string): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `The channel "${channel}" ended its answer before it was complete.`,
  );
}
