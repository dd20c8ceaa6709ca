// The gateway's own pages: what it is, whether it works, metrics, and the console. Without a key or a sign-in they show
// no key's name and no amount, and a key shows its own unless the config says more.

import type { OwnPage } from "../../dialects/endpoints.ts";
import { CONSOLE_PATH } from "../../dialects/index.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import { GatewayError } from "../../lib/errors.ts";
import { VERSION } from "../../lib/version.ts";
import { findKey } from "../intake/authenticate.ts";
import type { UnroutedCall } from "../intake/call.ts";
import type { Gateway } from "../gateway.ts";
import type { Observer } from "../observe/observer.ts";

/** The console's page. web/ makes it, which is right of this folder: start.ts gets it as a parameter. */
export interface Console {
  /** Sees what happens in the gateway. */
  readonly observer: Observer;
  /** Answers a request for the page, or one that the page makes. */
  answer(call: UnroutedCall): Promise<void>;
  /** Whether the page is served on this listener. */
  readonly isServed: boolean;
  isSignedIn(exchange: Exchange): boolean;
  /** A link that signs a browser in, once and soon. Throws if the page is not served. */
  createLink(): string;
  /** Ends its event streams, which would go on for ever. */
  close(): void;
}

const JSON_TYPE: Field = ["content-type", "application/json"];
const METRICS_TYPE: Field = ["content-type", "text/plain; version=0.0.4; charset=utf-8"];

/** Throws a GatewayError for a request that gets no page. */
export async function answerOwnPage(
  page: OwnPage,
  call: UnroutedCall,
  gateway: Gateway,
  console: Console | null,
): Promise<void> {
  const { exchange } = call;
  const id: Field = ["x-request-id", call.id];
  switch (page) {
    case "root":
      answerRoot(exchange, id, console);
      return;
    case "hello":
      answerAbout(exchange, [JSON_TYPE, id]);
      return;
    case "healthz":
      answerHealth(exchange, id, gateway);
      return;
    case "metrics":
      answerMetrics(exchange, id, gateway, console);
      return;
    case "console":
      if (console === null) throw new GatewayError("unknown_path", "This gateway has no console.");
      await console.answer(call);
  }
}

/** A browser gets the console's page. */
function answerRoot(exchange: Exchange, id: Field, console: Console | null): void {
  const isBrowser = exchange.field("accept")?.includes("text/html") === true;
  const vary: Field = ["vary", "accept"];
  if (isBrowser && console?.isServed === true)
    exchange.answer(302, [["location", CONSOLE_PATH], ["cache-control", "no-store"], vary, id], "");
  else answerAbout(exchange, [JSON_TYPE, vary, id]);
}

function answerAbout(exchange: Exchange, fields: readonly Field[]): void {
  const about = "A local gateway between AI tools and model platforms. Send requests with one of its keys.";
  exchange.answer(200, fields, JSON.stringify({ name: "gateway", version: VERSION, about }));
}

function answerHealth(exchange: Exchange, id: Field, gateway: Gateway): void {
  const { problem } = gateway.ledger;
  const body = problem === null ? { status: "ok" } : { status: "failing", ledger: problem };
  exchange.answer(problem === null ? 200 : 503, [JSON_TYPE, id], JSON.stringify(body));
}

function answerMetrics(exchange: Exchange, id: Field, gateway: Gateway, console: Console | null): void {
  const { catalog } = gateway;
  const found = findKey(exchange, ["bearer", "x-api-key", "vendor-header"], catalog, gateway.now());
  const detail =
    found?.key.metrics === "all" || console?.isSignedIn(exchange) === true
      ? "all"
      : found === null
        ? "public"
        : { key: found.key.name };
  exchange.answer(200, [METRICS_TYPE, id], gateway.metrics(detail));
}
