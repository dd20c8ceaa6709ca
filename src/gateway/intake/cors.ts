// Lets web pages read responses only if the config names their origin (`cors_origins`).

import type { Catalog } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange, Field } from "../../lib/http1/types.ts";
import type { UnroutedCall } from "./call.ts";

/** If the origin is allowed, responses on the returned exchange carry the fields that let its pages read them. */
export function admitOrigin(exchange: Exchange, catalog: Catalog): Exchange {
  const allowed = corsFields(exchange, catalog);
  return allowed.length === 0 ? exchange : addFields(exchange, allowed);
}

/** Empty unless the origin is allowed. */
function corsFields(exchange: Exchange, { corsOrigins }: Catalog): Field[] {
  const origin = corsOrigins.length === 0 ? undefined : exchange.field("origin");
  if (origin === undefined || !(corsOrigins.includes(origin) || corsOrigins.includes("*"))) return [];
  return [
    ["access-control-allow-origin", origin],
    ["access-control-expose-headers", "*"],
    ["vary", "origin"],
  ];
}

/** True if a browser says that a page of another origin sent the request, and the config does not allow that origin. */
export function isCrossSite(exchange: Exchange, catalog: Catalog): boolean {
  if (corsFields(exchange, catalog).length > 0) return false;
  const origin = exchange.field("origin");
  const isForeign = origin !== undefined && origin !== `http://${exchange.field("host") ?? ""}`;
  return isForeign || exchange.field("sec-fetch-site") === "cross-site";
}

function addFields(to: Exchange, added: readonly Field[]): Exchange {
  return {
    method: to.method,
    target: to.target,
    fields: to.fields,
    field: (name) => to.field(name),
    readBody: (limit) => to.readBody(limit),
    answer: (status, fields, body) => to.answer(status, [...fields, ...added], body),
    begin: (status, fields, length) => to.begin(status, [...fields, ...added], length),
    write: (chunk) => to.write(chunk),
    flush: () => to.flush(),
    drained: () => to.drained(),
    end: (last) => to.end(last),
    reset: () => to.reset(),
    upgrade: (fields, listen) => to.upgrade(fields, listen),
    get begun() {
      return to.begun;
    },
    get gone() {
      return to.gone;
    },
    onGone: (listener) => to.onGone(listener),
  };
}

/** A browser sends this before a request that needs permission. */
export function isPreflight(exchange: Exchange): boolean {
  return exchange.method === "OPTIONS" && exchange.field("access-control-request-method") !== undefined;
}

/** Null if pages of this origin may call. */
export function refuseOrigin(exchange: Exchange, catalog: Catalog): GatewayError | null {
  if (corsFields(exchange, catalog).length > 0) return null;
  const text =
    "Pages of this origin may not call the gateway. If they should, add the origin to cors_origins in the config file.";
  return new GatewayError("origin_refused", text);
}

/** `exchange` comes from `admitOrigin`. */
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
