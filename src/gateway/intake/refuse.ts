// An error → the caller's answer, in the endpoint's own shape. The only place where a request's errors end.

import type { Dialect } from "../../dialects/dialect.ts";
import { errorFields } from "../../dialects/errors.ts";
import { type ErrorCode, GatewayError } from "../../lib/errors.ts";
import type { Refusal } from "../../lib/http1/server/refusal.ts";
import { Shortage } from "../../lib/http1/shortage.ts";
import { BodyBroken, BodyTooLarge, ClientGone, type Exchange, type Field } from "../../lib/http1/types.ts";

export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof ClientGone) return new GatewayError("client_gone", "The client left.");
  if (error instanceof BodyTooLarge) return refuseLarge(error.message);
  if (error instanceof BodyBroken) return describeMalformed("bad_request", error.message);
  return new GatewayError("internal", "The gateway failed inside; its log says how.", { cause: error });
}

function refuseLarge(why: string): GatewayError {
  const text = `The request cannot be taken: ${why}. Send less, or raise max_body in the config file.`;
  return new GatewayError("body_too_large", text);
}

const MALFORMED: ReadonlyMap<number, ErrorCode> = new Map([
  [408, "head_too_slow"],
  [431, "head_too_large"],
  [501, "coding_unknown"],
  [505, "version_unknown"],
] as const);

const REMEDIES: Partial<Record<ErrorCode, string>> = {
  head_too_slow: "Send it again, at once.",
  head_too_large: "Send fewer or shorter header fields, or a shorter URL.",
  coding_unknown: "Send the body with a content-length, or in chunks.",
};

/** For what was no request at all, or could not be taken for want of something. */
export function toRefusalError(refusal: Refusal): GatewayError {
  const { status, message } = refusal;
  if (refusal instanceof Shortage) {
    return new GatewayError("unavailable", `The gateway cannot take the request now: ${message}.`, {
      retryAfterSeconds: 5,
    });
  }
  return describeMalformed(MALFORMED.get(status) ?? "bad_request", message);
}

/** The words are our own: none of what came is repeated. */
function describeMalformed(code: ErrorCode, why: string): GatewayError {
  const remedy = REMEDIES[code] ?? "The client, or a proxy before the gateway, has to send it otherwise.";
  return new GatewayError(code, `The request is not HTTP/1.1 as this gateway takes it: ${why}. ${remedy}`);
}

/** Answers with the error, or breaks the connection when an answer has begun already. */
export function refuse(exchange: Exchange, error: GatewayError, dialect: Dialect, id: string): void {
  if (exchange.gone) return;
  if (exchange.begun) {
    exchange.reset();
    return;
  }
  const fields: Field[] = [["x-request-id", id], ...errorFields(error)];
  exchange.answer(error.status, fields, dialect.errorBody(error, id));
}
