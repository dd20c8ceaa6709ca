// A request's body can be many megabytes. It is not needed any more once a channel has responded.

import { afterEach, expect, test } from "bun:test";
import { handle } from "../../../src/gateway/pipeline.ts";
import { recognise } from "../../../src/dialects/index.ts";
import { openScripted, RecordedExchange, type Scripted } from "../scripted.ts";
import { FinishQueue } from "../../../src/gateway/observe/finish-queue.ts";
import { recordBill } from "../../../src/gateway/bill/settle.ts";
import { Request } from "../../../src/gateway/request.ts";
import { type ResponseListener, type Upstream, UpstreamResponse } from "../../../src/lib/http/upstream.ts";
import { Fields } from "../../../src/lib/http/fields.ts";
import { keyOf } from "../../harness/gateway.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const REQUESTS = 10;
const SYSTEM = " ".repeat(1024 * 1024);
const BODY = JSON.stringify({ model: "m", max_tokens: 9, stream: true, system: SYSTEM, messages: [] });
const fields = [["content-type", "text/event-stream"]] as const;
const EVENT = 'event: ping\ndata: {"type":"ping"}\n\n';

test("the bodies of requests are released while their streams still run", async () => {
  scripted = await openScripted({ channels: { a: [] } });
  const bodies: WeakRef<Uint8Array>[] = [];
  const running = Promise.withResolvers<void>();
  const { gateway } = scripted;
  const responses: ResponseListener[] = [];
  const send: Upstream["send"] = (_, listener) => {
    queueMicrotask(() => {
      listener.begin(new UpstreamResponse(200, Fields.of(fields), null));
      listener.receive(Buffer.from(EVENT));
      if (responses.push(listener) === REQUESTS) running.resolve();
    });
    return { reused: false, pause: () => {}, resume: () => {}, cancel: () => {} };
  };
  const finished = new FinishQueue<Request>({
    record: (r) => recordBill(r, gateway),
    written: () => {},
    onError: () => {},
  });
  for (let index = 0; index < REQUESTS; index += 1) {
    const exchange = new RecordedExchange("/v1/messages", [["x-api-key", keyOf("messages")]], {});
    exchange.readBody = async () => {
      const body = new Uint8Array(Buffer.from(BODY));
      bodies.push(new WeakRef(body));
      return body;
    };
    const found = recognise(exchange, gateway.catalog);
    if (found.kind !== "target") throw new Error("/v1/messages is no endpoint");
    const { target, query } = found;
    const arrival = { id: `req_${index}`, exchange, time: Date.now(), arrived: performance.now() };
    const client = { ...gateway.client, send };
    handle(new Request(arrival, { target, query }), { ...gateway, client, finished });
  }
  await running.promise;
  // A stale reference on the stack can keep some of them for a while. A body that is not released stays for ever, because
  // its stream ends only below.
  const held = (): number => bodies.filter((body) => body.deref() !== undefined).length;
  for (let turn = 0; turn < 100 && held() >= REQUESTS / 2; turn++) {
    await new Promise(setImmediate);
    Bun.gc(true);
  }
  expect([bodies.length, held() < REQUESTS / 2]).toEqual([REQUESTS, true]);
  for (const response of responses) response.end();
  await finished.ended();
});
