// The gateway's own pages: what it is, whether it works, and metrics. They need no key and contain no secret.

import type { OwnPage } from "../../dialects/endpoints.ts";
import type { Exchange, Field } from "../../lib/http1/types.ts";
import { VERSION } from "../../lib/version.ts";
import type { UnroutedCall } from "../intake/call.ts";
import type { Gateway } from "../gateway.ts";

const JSON_TYPE: Field = ["content-type", "application/json"];
const METRICS_TYPE: Field = ["content-type", "text/plain; version=0.0.4; charset=utf-8"];

export function answerOwnPage(page: OwnPage, call: UnroutedCall, gateway: Gateway): void {
  const { exchange } = call;
  const id: Field = ["x-request-id", call.id];
  switch (page) {
    case "root":
    case "hello":
      exchange.answer(
        200,
        [JSON_TYPE, id],
        JSON.stringify({
          name: "gateway",
          version: VERSION,
          about: "A local gateway between AI tools and model platforms. Send requests with one of its keys.",
        }),
      );
      return;
    case "healthz":
      answerHealth(exchange, id, gateway);
      return;
    case "metrics":
      exchange.answer(200, [METRICS_TYPE, id], gateway.metrics());
  }
}

function answerHealth(exchange: Exchange, id: Field, gateway: Gateway): void {
  const { problem } = gateway.ledger;
  const body = problem === null ? { status: "ok" } : { status: "failing", ledger: problem };
  exchange.answer(problem === null ? 200 : 503, [JSON_TYPE, id], JSON.stringify(body));
}
