// A stream that a bridge converts: how it ends, and how fast it is read.

import { afterEach, expect, test } from "bun:test";
import { createDelivery } from "../../../src/gateway/delivery/delivery.ts";
import { relay } from "../../../src/gateway/delivery/relay.ts";
import { UpstreamFault } from "../../../src/lib/http1/types.ts";
import { responseEvents } from "../../harness/web-socket.ts";
import { openScripted, type Scripted, ScriptedResponse } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const SSE = [["content-type", "text/event-stream"]] as const;
const write = (event: object & { readonly type?: unknown }): string =>
  `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;
const EVENTS = responseEvents({ model: "m" }).map(write);

async function open() {
  const target = "/v1/chat/completions";
  scripted = await openScripted({ platform: "responses", target, channels: { a: [] }, stream: true });
  const { job, bill, gateway, respond, exchange } = scripted;
  return {
    exchange,
    send: (response: ScriptedResponse) =>
      relay(createDelivery({ ...respond("a", {}), response }, job, bill, gateway)),
  };
}

/** A response whose connection stays open after its last event. */
class EndlessResponse extends ScriptedResponse {
  readonly #ended = Promise.withResolvers<null>();

  override read(): Promise<Uint8Array | null> {
    return this.finished ? this.#ended.promise : super.read();
  }

  override cancel(): void {
    super.cancel();
    this.#ended.reject(new UpstreamFault("cancelled", "cancelled", true));
  }
}

test("it ends with its last event, even if the upstream leaves its connection open", async () => {
  const { exchange, send } = await open();
  await send(new EndlessResponse({ fields: SSE, chunks: EVENTS }));
  expect([exchange.text.endsWith("data: [DONE]\n\n"), exchange.ended]).toEqual([true, "end"]);
  expect(scripted.records()).toMatchObject([{ outcome: "complete" }]);
});

test("it is not read on while its client does not read", async () => {
  const { exchange, send } = await open();
  const take = exchange.write.bind(exchange);
  exchange.write = (chunk) => take(chunk) && false;
  const read = Promise.withResolvers<void>();
  exchange.drained = () => read.promise;
  const response = new ScriptedResponse({ fields: SSE, chunks: EVENTS });
  const sent = send(response);
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  expect([response.finished, exchange.text.includes("[DONE]")]).toEqual([false, false]);
  read.resolve();
  await sent;
  expect(exchange.text).toEndWith("data: [DONE]\n\n");
});

test("an error that ends it quotes no piece of the credential", async () => {
  const { exchange, send } = await open();
  const error = { code: "server_error", message: "no capacity for credential-of-the-cha" };
  const failed = { type: "response.failed", response: { id: "resp_1", model: "m", status: "failed", error } };
  await send(new ScriptedResponse({ fields: SSE, chunks: [...EVENTS.slice(0, 2), write(failed)] }));
  expect(exchange.text).toContain("no capacity for [credential removed]");
  expect(exchange.text).not.toContain("credential-of-the");
  expect(scripted.records()).toMatchObject([{ outcome: "upstream_error" }]);
});
