// Turns errors into responses in the endpoint's dialect.

import type { Catalog } from "../../config/catalog.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { errorFields } from "../../dialects/errors.ts";
import { GatewayError } from "../../lib/errors.ts";
import { BodyTooLarge, ClientGone, type Exchange } from "../../lib/http/exchange.ts";
import { type Observer, reportFault } from "../observe/observer.ts";
import { listOwnSecrets } from "./authenticate.ts";
import { Secrets, secretsOf } from "./secrets.ts";
import type { Field } from "../../lib/http/fields.ts";

interface Around {
  readonly catalog: Catalog;
  readonly observer: Observer;
}

export function toGatewayError(error: unknown, exchange: Exchange, around: Around): GatewayError {
  if (error instanceof GatewayError) return cleanError(error, exchange, around.catalog);
  if (error instanceof ClientGone) return new GatewayError("client_gone", "The client disconnected.");
  if (error instanceof BodyTooLarge) {
    const text = `The gateway cannot accept the request: ${error.message}. Send less, or raise max_body in the config file.`;
    return new GatewayError("body_too_large", text);
  }
  reportFault(error, around.observer);
  const text = "The gateway failed because of a fault of its own. Its log has the details.";
  return new GatewayError("internal", text, { cause: error });
}

/** A refused request may have secrets anywhere. Its error repeats none. */
export function cleanError(error: GatewayError, exchange: Exchange, catalog: Catalog): GatewayError {
  const own = new Secrets(listOwnSecrets(exchange)).maskText(error.message);
  const message = secretsOf(catalog).maskText(own);
  return message === error.message ? error : new GatewayError(error.code, message, error);
}

export function idFields({ idField }: Dialect, id: string): Field[] {
  const own: Field = ["x-request-id", id];
  return idField === undefined ? [own] : [own, [idField, id]];
}

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
