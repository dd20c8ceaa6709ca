// Large bodies of all requests share a bounded amount of memory. Only a request that does not fit waits.

import { afterAll, beforeAll, beforeEach, expect, spyOn, test } from "bun:test";
import type { Reservation } from "../../../src/lib/memory/memory-budget.ts";
import { answerJson, answerStream } from "../../harness/model/answers/answer.ts";
import { makeRequest, openWorld, type World } from "../world.ts";

const LARGE = "x".repeat(2_000_000);
const EVERYTHING = Number.MAX_SAFE_INTEGER;

let world: World;
let held: Reservation;
const memory = () => world.gateway.running.gateway.memory;
beforeAll(() => {
  world = openWorld(() => ({ prices: { m: { input: "1", output: "2" } } }));
});
afterAll(() => world.stop());
beforeEach(async () => {
  held = await memory().reserve(EVERYTHING);
});

async function unused(): Promise<void> {
  while (memory().usedBytes > 0) await new Promise(setImmediate);
}

const large = () => makeRequest("messages", false, { system: LARGE });

test("a large request waits until there is memory for it, and a small one does not wait", async () => {
  const before = world.upstream.requests.length;
  let settled = false;
  const waiting = world.ask(large()).finally(() => (settled = true));
  expect((await world.ask(makeRequest("messages", false))).status).toBe(200);
  expect([world.upstream.requests.length - before, settled]).toEqual([1, false]);
  held.free();
  expect((await waiting).status).toBe(200);
  await unused();
});

test("freed memory counts as used until a garbage collection, which comes before any request has to wait", async () => {
  const collect = spyOn(Bun, "gc");
  held.free();
  for (const bytes of [EVERYTHING, LARGE.length]) (await memory().reserve(bytes)).free();
  expect(collect.mock.calls).toEqual([[true], [true]]);
  (await memory().reserve(LARGE.length)).free();
  expect(collect).toHaveBeenCalledTimes(2);
  collect.mockRestore();
});

test("a client that leaves while its request waits for memory takes up no memory afterwards", async () => {
  const { client } = await world.begin(large());
  expect((await world.ask(makeRequest("messages", false))).status).toBe(200);
  client.reset();
  const waiting = world.ask(large());
  held.free();
  expect((await waiting).status).toBe(200);
  await unused();
});

test("a request for which there is memory does not wait behind a larger one", async () => {
  const everything = memory().reserve(EVERYTHING);
  const little = memory().reserve(LARGE.length);
  held.shrink(memory().usedBytes / 2);
  (await little).free();
  held.free();
  (await everything).free();
});

test.each([false, true])(
  "a large converted answer is in the ledger at once, and in memory until its client reads it or leaves (stream: %p)",
  async (stream) => {
    held.free();
    const content = [{ type: "output_text", text: '"'.repeat(8_000_000) }];
    const whole = { id: "r", status: "completed", output: [{ type: "message", content }] };
    world.upstream.next({ answer: answerJson("responses", whole) });
    const { client, over } = await world.begin(makeRequest("chat", stream));
    await client.until("200 OK");
    client.pause();
    expect((await over()).record.outcome).toBe("complete");
    expect(memory().usedBytes).toBeGreaterThan(LARGE.length);
    if (stream) client.resume();
    else client.reset();
    await unused();
  },
);

test("a converted stream with a large event waits until there is memory for this event", async () => {
  const delta = { type: "response.output_text.delta", delta: LARGE, other: LARGE };
  const events = [delta, { type: "response.completed", response: { status: "completed" } }];
  const pieces = events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  world.upstream.next({ answer: answerStream("responses", pieces) });
  const reserve = spyOn(memory(), "reserve");
  const { client, over } = await world.begin(makeRequest("chat", true));
  while (reserve.mock.calls.length === 0) await new Promise(setImmediate);
  expect(client.bytes().length).toBe(0);
  held.free();
  expect((await over()).record.outcome).toBe("complete");
  await unused();
});
