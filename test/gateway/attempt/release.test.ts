// A request's body can be many megabytes. It is not needed any more once a channel has responded.

import { afterEach, expect, test } from "bun:test";
import { handle } from "../../../src/gateway/pipeline.ts";
import { MESSAGES_LAYOUT } from "../../../src/dialects/prompt/layouts.ts";
import { recognise } from "../../../src/dialects/index.ts";
import { openScripted, RecordedExchange, type Scripted } from "../scripted.ts";
import { keyOf } from "../../harness/gateway.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const REQUESTS = 10;
const BODY = JSON.stringify({ model: "m", max_tokens: 9, stream: true, messages: [] });
const EVENT = 'event: ping\ndata: {"type":"ping"}\n\n';

test("the bodies of requests are released while their streams still run, but for 64 MB of prompts", async () => {
  scripted = await openScripted({ channels: { a: [] } });
  const bodies: WeakRef<Uint8Array>[] = [];
  const gate = Promise.withResolvers<void>();
  const running = Promise.withResolvers<void>();
  let begun = 0;
  const { gateway } = scripted;
  // Prompts of this much are held until their answers have ended, for the analysis of their caches.
  const megabyte = new Uint8Array(1024 * 1024);
  for (let count = 0; count < 64; count += 1) gateway.prompts.hold(megabyte, MESSAGES_LAYOUT);
  const send = () => {
    const chunks = [Buffer.from(EVENT)];
    const read = async (): Promise<Uint8Array | null> => {
      const chunk = chunks.shift();
      if (chunk !== undefined) return chunk;
      if (++begun === REQUESTS) running.resolve();
      await gate.promise;
      return null;
    };
    const fields = [["content-type", "text/event-stream"]] as const;
    const response = {
      status: 200,
      fields,
      field: (name: string) => fields.find(([other]) => other === name)?.[1],
      length: null,
      closeDelimited: false,
      buffered: false,
      reused: false,
      finished: false,
      read,
      takeBuffered: () => null,
      cancel: () => {},
    };
    return { head: Promise.resolve(response), cancel: () => {} };
  };
  const calls = Array.from({ length: REQUESTS }, (_, index) => {
    const exchange = new RecordedExchange("/v1/messages", [["x-api-key", keyOf("messages")]], {});
    exchange.readBody = async () => {
      const body = new Uint8Array(Buffer.from(BODY));
      bodies.push(new WeakRef(body));
      return body;
    };
    const found = recognise(exchange, gateway.catalog);
    if (found.kind !== "target") throw new Error("/v1/messages is no endpoint");
    const { target, query } = found;
    const call = {
      id: `req_${index}`,
      exchange,
      time: Date.now(),
      arrived: performance.now(),
      target,
      query,
      key: null,
    };
    return handle(call, { ...gateway, client: { ...gateway.client, send } });
  });
  await running.promise;
  // A stale reference on the stack can keep some of them for a while. A body that is not released stays for ever, because
  // its stream ends only below.
  const held = (): number => bodies.filter((body) => body.deref() !== undefined).length;
  for (let turn = 0; turn < 100 && held() >= REQUESTS / 2; turn++) {
    await new Promise(setImmediate);
    Bun.gc(true);
  }
  expect([bodies.length, held() < REQUESTS / 2]).toEqual([REQUESTS, true]);
  gate.resolve();
  await Promise.all(calls);
});
