// A stream that a bridge converts: how it ends, and how fast it is read.

import { afterEach, expect, jest, test } from "bun:test";
import { responseEvents } from "../../harness/web-socket.ts";
import { openScripted, type Scripted, type ScriptedHead } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const SSE = [["content-type", "text/event-stream"]] as const;
const write = (event: object & { readonly type?: unknown }): string =>
  `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;
const EVENTS = responseEvents({ model: "m" }).map(write);

async function open(head: ScriptedHead) {
  const target = "/v1/chat/completions";
  const channels = { a: [{ fields: SSE, ...head }] };
  scripted = await openScripted({ platform: "responses", target, channels, stream: true });
  return scripted;
}

test("it ends with its last event, even if the upstream leaves its connection open", async () => {
  const { exchange, run } = await open({ chunks: EVENTS, isEndless: true });
  await run();
  expect([exchange.text.endsWith("data: [DONE]\n\n"), exchange.ended]).toEqual([true, "end"]);
  expect(scripted.records()).toMatchObject([{ outcome: "complete" }]);
});

test("it is not read on while its client does not read", async () => {
  const { exchange, run, responses } = await open({ chunks: EVENTS });
  const waiting: (() => void)[] = [];
  let reads = false;
  const take = exchange.write.bind(exchange);
  exchange.write = (chunk) => take(chunk) && reads;
  exchange.onceSent = (listener) => void waiting.push(listener);
  const sent = run();
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  expect([responses[0]?.finished, exchange.text.includes("[DONE]")]).toEqual([false, false]);
  reads = true;
  for (const listener of waiting) listener();
  await sent;
  expect(exchange.text).toEndWith("data: [DONE]\n\n");
});

test("an error that ends it quotes no piece of the credential", async () => {
  const error = { code: "server_error", message: "no capacity for credential-of-the-cha" };
  const failed = { type: "response.failed", response: { id: "resp_1", model: "m", status: "failed", error } };
  const { exchange, run } = await open({ chunks: [...EVENTS.slice(0, 2), write(failed)] });
  await run();
  expect(exchange.text).toContain("no capacity for [credential removed]");
  expect(exchange.text).not.toContain("credential-of-the");
  expect(scripted.records()).toMatchObject([{ outcome: "upstream_error" }]);
});

test("its client hears something every fifteen seconds, also while the upstream sends what the client cannot see", async () => {
  jest.useFakeTimers();
  try {
    const channel = { platform: "responses", base_url: "http://127.0.0.1:1", credential: "x".repeat(20) };
    const groups = { g: { platform: "messages", channels: ["a"], convert: true } };
    // A thought that the client does not see.
    const item = { type: "response.output_item.added", output_index: 0, item: { type: "reasoning" } };
    const channels = { a: [{ fields: SSE, chunks: [write(item)], isEndless: true }] };
    scripted = await openScripted({ channels, stream: true, more: { channels: { a: channel }, groups } });
    const { exchange, responses, run } = scripted;
    const done = run();
    for (let turn = 0; exchange.text === "" && turn < 1000; turn += 1) await Promise.resolve();
    expect(exchange.text).toStartWith("event: message_start");
    const sent = exchange.text.length;
    for (let second = 1; second < 15; second += 1) {
      responses[0]?.send(write({ type: "response.in_progress" }));
      jest.advanceTimersByTime(1000);
    }
    expect(exchange.text.slice(sent)).toBe("");
    jest.advanceTimersByTime(1000);
    expect(exchange.text.slice(sent)).toStartWith("event: ping");
    responses[0]?.cancel();
    await done;
  } finally {
    jest.useRealTimers();
  }
});
