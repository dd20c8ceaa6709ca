// Browsers get no permission unless the config names their origin.

import type { Catalog } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange, Field } from "../../lib/http1/types.ts";
import type { UnroutedCall } from "./call.ts";

/** The exchange; where its origin is allowed, with a reply that the browser lets the page read. */
export function admitOrigin(exchange: Exchange, catalog: Catalog): Exchange {
  const allowed = corsFields(exchange, catalog);
  return allowed.length === 0 ? exchange : addFields(exchange, allowed);
}

/** The fields that let an allowed origin read an answer; none for everyone else. */
function corsFields(exchange: Exchange, { corsOrigins }: Catalog): Field[] {
  const origin = corsOrigins.length === 0 ? undefined : exchange.field("origin");
  if (origin === undefined || !(corsOrigins.includes(origin) || corsOrigins.includes("*"))) return [];
  return [
    ["access-control-allow-origin", origin],
    ["access-control-expose-headers", "*"],
    ["vary", "origin"],
  ];
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
    get begun() {
      return to.begun;
    },
    get gone() {
      return to.gone;
    },
    onGone: (listener) => to.onGone(listener),
  };
}

/** A browser's question before the request itself. */
export function isPreflight(exchange: Exchange): boolean {
  return exchange.method === "OPTIONS" && exchange.field("access-control-request-method") !== undefined;
}

/** Null: pages of its origin may call. */
export function refuseOrigin(exchange: Exchange, catalog: Catalog): GatewayError | null {
  if (corsFields(exchange, catalog).length > 0) return null;
  const text =
    "Pages of this origin may not call. If they should, add it to cors_origins in the config file.";
  return new GatewayError("origin_refused", text);
}

/** `exchange` has been admitted. */
export function answerPreflight({ exchange, id }: UnroutedCall): void {
  const asked = exchange.field("access-control-request-headers") ?? "authorization, content-type";
  exchange.answer(
    204,
    [
      ["x-request-id", id],
      ["access-control-allow-methods", "GET, POST, DELETE"],
      ["access-control-allow-headers", asked],
      ["access-control-max-age", "600"],
    ],
    "",
  );
}
