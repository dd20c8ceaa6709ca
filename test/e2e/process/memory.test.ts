// Large bodies of all requests share a bounded amount of memory. Who does not fit waits, and nobody else does.

import { afterAll, beforeAll, beforeEach, expect, spyOn, test } from "bun:test";
import type { Reservation } from "../../../src/lib/memory/memory-budget.ts";
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

/** `settled` becomes true when the promise is no longer pending. */
function watch<T>(promise: Promise<T>): { settled: boolean } {
  const watched = { settled: false };
  void promise.finally(() => (watched.settled = true));
  return watched;
}

const large = () => makeRequest("messages", false, { system: LARGE });

test("a large request waits until there is memory for it, a small one does not", async () => {
  const before = world.upstream.requests.length;
  const waiting = world.ask(large());
  const watched = watch(waiting);
  expect((await world.ask(makeRequest("messages", false))).status).toBe(200);
  expect([world.upstream.requests.length - before, watched.settled]).toEqual([1, false]);
  held.free();
  expect((await waiting).status).toBe(200);
  await unused();
});

test("memory that was given back counts as used until it is collected, which happens before a request waits", async () => {
  const collect = spyOn(Bun, "gc");
  held.free();
  for (const bytes of [EVERYTHING, LARGE.length]) (await memory().reserve(bytes)).free();
  expect(collect.mock.calls).toEqual([[true], [true]]);
  (await memory().reserve(LARGE.length)).free();
  expect(collect).toHaveBeenCalledTimes(2);
  collect.mockRestore();
});

test("a client that leaves while it waits for memory holds none of it afterwards", async () => {
  const { client } = await world.begin(large());
  expect((await world.ask(makeRequest("messages", false))).status).toBe(200);
  client.reset();
  const waiting = world.ask(large());
  held.free();
  expect((await waiting).status).toBe(200);
  await unused();
});
