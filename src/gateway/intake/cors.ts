// Which web pages may read responses: the config's `cors_origins`.

import type { Catalog } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import type { UnroutedCall } from "./call.ts";

export function allowOrigin(exchange: Exchange, catalog: Catalog): void {
  if (catalog.corsOrigins.length > 0) exchange.replyFields = corsFields(exchange, catalog);
}

function corsFields(exchange: Exchange, { corsOrigins }: Catalog): Field[] {
  const origin = corsOrigins.length === 0 ? undefined : exchange.field("origin");
  const isAllowed = (each: string): boolean => corsOrigins.includes(each);
  if (origin === undefined || !(isAllowed(origin) || isAllowed("*"))) return [];
  return [
    ["access-control-allow-origin", origin],
    ["access-control-expose-headers", "*"],
    ["vary", "origin"],
  ];
}

export function isOfOtherOrigin(exchange: Exchange): boolean {
  const origin = exchange.field("origin");
  const isForeign = origin !== undefined && origin !== `http://${exchange.field("host") ?? ""}`;
  // `same-site`: a page on another port of this machine. Its GET has no `origin`.
  return isForeign || ["cross-site", "same-site"].includes(exchange.field("sec-fetch-site") ?? "");
}

export function isCrossSite(exchange: Exchange, catalog: Catalog): boolean {
  return corsFields(exchange, catalog).length === 0 && isOfOtherOrigin(exchange);
}

export function isPreflight(exchange: Exchange): boolean {
  return exchange.method === "OPTIONS" && exchange.field("access-control-request-method") !== undefined;
}

export function refuseOrigin(exchange: Exchange, catalog: Catalog): GatewayError | null {
  if (corsFields(exchange, catalog).length > 0) return null;
  const text =
    "Pages of this origin may not call the gateway. If they should, add the origin to cors_origins in the config file.";
  return new GatewayError("origin_refused", text);
}

/** `allowOrigin` has added the fields that allow the request. */
export function answerPreflight({ exchange, id }: UnroutedCall): void {
  const names = exchange.field("access-control-request-headers") ?? "authorization, content-type";
  exchange.answer(
    204,
    [
      ["x-request-id", id],
      ["access-control-allow-methods", "GET, POST, DELETE"],
      ["access-control-allow-headers", names],
      ["access-control-max-age", "600"],
    ],
    "",
  );
}
