// An error → the caller's answer, in the endpoint's own shape. The only place where a request's errors end.

import type { Dialect } from "../dialects/dialect.ts";
import { errorFields } from "../dialects/errors.ts";
import { GatewayError } from "../lib/errors.ts";
import { BodyTooLarge, ClientGone, type Exchange, type Field } from "../lib/http1/types.ts";

export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof ClientGone) return new GatewayError("client_gone", "The client left.");
  if (error instanceof BodyTooLarge) return new GatewayError("body_too_large", error.message);
  return new GatewayError("internal", "The gateway failed inside; its log says how.", { cause: error });
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
