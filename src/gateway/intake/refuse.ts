// Turns an error into the client's response, in the shape of the endpoint's dialect. All errors of a request end here.

import type { Dialect } from "../../dialects/dialect.ts";
import { errorFields } from "../../dialects/errors.ts";
import { type ErrorCode, GatewayError } from "../../lib/errors.ts";
import {
  BodyTooLarge,
  ClientGone,
  type Exchange,
  InvalidBody,
  type RequestRefusal,
  Shortage,
} from "../../lib/http/exchange.ts";
import { type Observer, reportFault } from "../observe/observer.ts";
import { cleanError } from "./secrets.ts";
import type { Field } from "../../lib/http/fields.ts";

/** Reports a fault of the gateway's own. */
export function toGatewayError(error: unknown, exchange: Exchange, observer: Observer): GatewayError {
  if (error instanceof GatewayError) return cleanError(error, exchange);
  if (error instanceof ClientGone) return new GatewayError("client_gone", "The client disconnected.");
  if (error instanceof BodyTooLarge) return describeTooLarge(error.message);
  if (error instanceof InvalidBody) return describeMalformed("bad_request", error.message);
  reportFault(error, observer);
  return new GatewayError(
    "internal",
    "The gateway failed because of a fault of its own. Its log has the details.",
    { cause: error },
  );
}

function describeTooLarge(why: string): GatewayError {
  const text = `The gateway cannot accept the request: ${why}. Send less, or raise max_body in the config file.`;
  return new GatewayError("body_too_large", text);
}

const MALFORMED: ReadonlyMap<number, ErrorCode> = new Map([
  [408, "head_too_slow"],
  [431, "head_too_large"],
  [501, "coding_unknown"],
  [505, "version_unknown"],
] as const);

const REMEDIES: Partial<Record<ErrorCode, string>> = {
  head_too_slow: "Send the whole request head at once.",
  head_too_large: "Send fewer or shorter header fields, or a shorter URL.",
  coding_unknown: "Send the body with a content-length, or in chunks.",
};

/** For a malformed request, or one that the gateway has no resources for. */
export function toRefusalError(refusal: RequestRefusal): GatewayError {
  const { status, message } = refusal;
  if (refusal instanceof Shortage) {
    return new GatewayError("unavailable", `The gateway cannot accept the request now: ${message}.`, {
      retryAfterSeconds: 5,
    });
  }
  return describeMalformed(MALFORMED.get(status) ?? "bad_request", message);
}

/** The message repeats nothing of the request. */
function describeMalformed(code: ErrorCode, why: string): GatewayError {
  const remedy =
    REMEDIES[code] ?? "The client, or a proxy between it and the gateway, must send it differently.";
  return new GatewayError(code, `The request is not HTTP/1.1 as this gateway accepts it: ${why}. ${remedy}`);
}

export function idFields({ idField }: Dialect, id: string): Field[] {
  const own: Field = ["x-request-id", id];
  return idField === undefined ? [own] : [own, [idField, id]];
}

/** Responds with the error, or resets the connection if a response has begun. */
export function refuse(exchange: Exchange, error: GatewayError, dialect: Dialect, id: string): void {
  if (exchange.gone) return;
  if (exchange.begun) {
    exchange.reset();
    return;
  }
  const reason = dialect.reasonFields?.(error) ?? [];
  const fields: Field[] = [...idFields(dialect, id), ...errorFields(error), ...reason];
  exchange.answer(error.status, fields, dialect.errorBody(error, id));
}
