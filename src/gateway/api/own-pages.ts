// The gateway's own pages. Without a key, they show no key's name or amount.

import { KEY_FIELDS } from "../../config/key-fields.ts";
import { isLoopback } from "../../config/proxy.ts";
import type { OwnPage } from "../../dialects/endpoints.ts";
import { CONSOLE_PATH } from "../../dialects/index.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import { GatewayError } from "../../lib/errors.ts";
import { VERSION } from "../../lib/version.ts";
import { findKey } from "../intake/authenticate.ts";
import type { UnroutedCall } from "../intake/call.ts";
import type { Gateway } from "../gateway.ts";
import type { Listener, MetricsDetail } from "../observe/observer.ts";

/** This folder may not import web/: start.ts gets the page as a parameter. */
export interface Console {
  readonly listener: Listener;
  answer(call: UnroutedCall): Promise<void>;
  readonly isServed: boolean;
  isSignedIn(exchange: Exchange): boolean;
  /** Throws if there is no page. */
  createLink(): string;
  /** Ends the endless event streams. */
  close(): void;
}

const JSON_TYPE: Field = ["content-type", "application/json"];
const ABOUT = JSON.stringify({
  name: "gateway",
  version: VERSION,
  about: "A local gateway between AI tools and model platforms. Send requests with one of its keys.",
});
const METRICS_TYPE: Field = ["content-type", "text/plain; version=0.0.4; charset=utf-8"];

export async function answerOwnPage(
  page: OwnPage,
  call: UnroutedCall,
  gateway: Gateway,
  console: Console | null,
): Promise<void> {
  const { exchange } = call;
  const own: Field = ["x-request-id", call.id];
  switch (page) {
    case "root":
      answerRoot(exchange, own, console);
      return;
    case "hello":
      exchange.answer(200, [JSON_TYPE, own], ABOUT);
      return;
    case "healthz": {
      const { problem } = gateway.ledger;
      const health = problem === null ? { status: "ok" } : { status: "failing", ledger: problem };
      exchange.answer(problem === null ? 200 : 503, [JSON_TYPE, own], JSON.stringify(health));
      return;
    }
    case "metrics": {
      const detail = findDetail(exchange, gateway, console);
      exchange.answer(200, [METRICS_TYPE, own], gateway.metrics(detail));
      return;
    }
    case "console":
      if (console === null) throw new GatewayError("unknown_path", "This gateway has no console.");
      await console.answer(call);
  }
}

function answerRoot(exchange: Exchange, own: Field, console: Console | null): void {
  const vary: Field = ["vary", "accept"];
  if (console?.isServed === true && exchange.field("accept")?.includes("text/html") === true)
    exchange.answer(302, [["location", CONSOLE_PATH], ["cache-control", "no-store"], vary, own], "");
  else exchange.answer(200, [JSON_TYPE, vary, own], ABOUT);
}

function findDetail(exchange: Exchange, { catalog, now }: Gateway, console: Console | null): MetricsDetail {
  const key = findKey(exchange, KEY_FIELDS, catalog, now())?.key;
  if (key?.metrics === "all" || console?.isSignedIn(exchange) === true) return "all";
  if (key !== undefined) return { key: key.name };
  if (isLoopback(catalog.listen.host)) return "public";
  throw new GatewayError("key_missing", "Beyond loopback, /metrics needs a key.");
}
