// What is remembered of conversations that upstreams keep is bounded, and one response never changes another one's.

import { expect, test } from "bun:test";
import { CallChains } from "../../../src/billing/limits/call-chains.ts";

const PAIRS = { hash: "h", count: 2 };

test("a response is remembered with the end of its request's conversation and its own calls", () => {
  const chains = new CallChains();
  const listener = chains.follow("k", PAIRS);
  listener.add("before the id", "lost");
  listener.begin("r");
  expect(chains.find("k", "r")).toMatchObject({ pairs: PAIRS });
  listener.add("a", "x");
  listener.add("a", "x");
  // A response has one id.
  listener.begin("another");
  listener.add("b", "y");
  expect([...(chains.find("k", "r")?.calls.values() ?? [])]).toEqual(["x", "y"]);
  expect([chains.find("k", "another"), chains.find("j", "r")]).toEqual([null, null]);
});

test("a request that fetches a response adds its calls, and remembers no response of its own", () => {
  const chains = new CallChains();
  chains.follow("k", PAIRS).begin("r");
  for (const id of ["r", "unknown"]) {
    const listener = chains.follow("k", null);
    listener.begin(id);
    listener.add("a", "x");
  }
  expect(chains.find("k", "r")?.pairs).toEqual(PAIRS);
  expect(chains.find("k", "r")?.calls.size).toBe(1);
  expect(chains.size).toBe(1);
});

test("memory is bounded by responses and by calls", () => {
  const chains = new CallChains();
  for (let at = 0; at < 10_000; at += 1) chains.follow("k", PAIRS).begin(`r${at}`);
  expect(chains.size).toBe(4096);
  expect(chains.find("k", "r0")).toBeNull();
  const listener = chains.follow("k", PAIRS);
  listener.begin("r");
  for (let at = 0; at < 1000; at += 1) listener.add(`call_${at}`, "x");
  expect(chains.find("k", "r")?.calls.size).toBe(64);
});
