// Browsers get no permission unless the config names their origin.

import type { Catalog } from "../config/catalog.ts";
import type { Exchange, Field } from "../lib/http1/types.ts";

/** The fields that let an allowed origin read an answer; none for everyone else. */
export function corsFields(exchange: Exchange, catalog: Catalog): Field[] {
  const origin = catalog.corsOrigins.length === 0 ? undefined : exchange.field("origin");
  if (origin === undefined || !catalog.corsOrigins.includes(origin)) return [];
  return [
    ["access-control-allow-origin", origin],
    ["access-control-expose-headers", "*"],
    ["vary", "origin"],
  ];
}

/** A browser's question before the request itself. */
export function isPreflight(exchange: Exchange): boolean {
  return exchange.method === "OPTIONS" && exchange.field("access-control-request-method") !== undefined;
}

export function answerPreflight(exchange: Exchange, catalog: Catalog): void {
  const allowed = corsFields(exchange, catalog);
  if (allowed.length === 0) {
    exchange.answer(
      403,
      [["content-type", "text/plain"]],
      "This origin is not among cors_origins in the config file.\n",
    );
    return;
  }
  const asked = exchange.field("access-control-request-headers") ?? "authorization, content-type";
  exchange.answer(
    204,
    [
      ...allowed,
      ["access-control-allow-methods", "GET, POST, DELETE"],
      ["access-control-allow-headers", asked],
      ["access-control-max-age", "600"],
    ],
    "",
  );
}
