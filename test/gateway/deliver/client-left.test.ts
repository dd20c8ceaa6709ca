// What happens to the upstream request when the client disconnects.

import { afterEach, expect, test } from "bun:test";
import { watchClient } from "../../../src/gateway/deliver/client-left.ts";
import { recordBill } from "../../../src/gateway/bill/settle.ts";
import { openScripted, type Scripted } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

async function leave(drain: string, path = "/v1/messages") {
  scripted = await openScripted({ channels: { a: [] }, target: path, more: { on_disconnect: { drain } } });
  const { request, exchange } = scripted;
  const halt = new AbortController();
  let cancelled = 0;
  request.upstream = { pause: () => {}, resume: () => {}, cancel: () => void (cancelled += 1) };
  watchClient(request, { ...scripted.gateway, halt: halt.signal });
  exchange.leave();
  return { halt, end: () => recordBill(request, scripted.gateway), count: () => cancelled };
}

test("it is cancelled at once", async () => {
  const { count } = await leave("0s");
  expect(count()).toBe(1);
});

test("with a drain time it is read on, until the gateway is stopped", async () => {
  const { count, halt } = await leave("1h");
  expect(count()).toBe(0);
  halt.abort();
  expect(count()).toBe(1);
});

test("a request that costs nothing is not read on", async () => {
  const { count } = await leave("1h", "/v1/messages/count_tokens");
  expect(count()).toBe(1);
});

test("nothing is left to do once the request has ended", async () => {
  const { count, halt, end } = await leave("1h");
  end();
  halt.abort();
  expect(count()).toBe(0);
});
