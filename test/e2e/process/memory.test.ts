// Large bodies of all requests share a bounded amount of memory. Who does not fit waits, and nobody else does.

import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Answer } from "../../harness/model/answers/answer.ts";
import type { FaultName } from "../../harness/upstreams/faults.ts";
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

/** A response of 2 MB, as `chat` gets it converted. */
function answerLarge(): Answer {
  const text = { type: "output_text", text: LARGE, annotations: [] };
  const item = { id: "msg_1", type: "message", status: "completed", role: "assistant", content: [text] };
  const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
  const meta = { id: "resp_1", object: "response", created_at: 1, model: "m", status: "completed" };
  const bytes = Buffer.from(JSON.stringify({ ...meta, output: [item], usage }));
  // The first piece alone is larger than a response that is not counted.
  const cut = (bytes.length * 3) >> 2;
  return {
    family: "responses",
    status: 200,
    fields: [["content-type", "application/json"]],
    framing: "length",
    pieces: [bytes.subarray(0, cut), bytes.subarray(cut)],
  };
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

test("a large response that must be converted waits until there is memory for it", async () => {
  world.upstream.next({ answer: answerLarge() });
  const waiting = world.ask(makeRequest("chat", false));
  const watched = watch(waiting);
  expect((await world.ask(makeRequest("messages", false))).status).toBe(200);
  expect(watched.settled).toBe(false);
  held.free();
  const answer = await waiting;
  expect(JSON.parse(answer.body.toString()).choices[0].message.content).toBe(LARGE);
  await unused();
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

const CUTS: readonly FaultName[] = ["reset-mid-stream", "close-mid-stream", "short-length"];
test.each((["responses", "chat"] as const).flatMap((dialect) => CUTS.map((cut) => [dialect, cut] as const)))(
  "a large response that is cut leaves no memory in use: %s, %s",
  async (dialect, fault) => {
    held.free();
    await unused();
    world.upstream.next({ answer: answerLarge(), fault });
    const { answer, record } = await world.trace(makeRequest(dialect, false));
    expect([answer.status, record.outcome]).toEqual([502, "upstream_cut"]);
    expect(memory().usedBytes).toBe(0);
  },
);
