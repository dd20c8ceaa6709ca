// The parts of earlier requests are remembered by session, within bounds.

import { expect, test } from "bun:test";
import { MESSAGES_LAYOUT } from "../../../src/dialects/prompt/layouts.ts";
import { KnownParts } from "../../../src/gateway/intake/known-parts.ts";
import { scanBody } from "../../harness/prompt.ts";

const known = new KnownParts();

/** Returns how many parts of the request were known. */
function send(session: string, system: string, messages: readonly string[]): number {
  const before = new Set(
    known.find(session).flatMap((lists) => [...lists.values()].flatMap(({ parts }) => parts)),
  );
  const body = Buffer.from(JSON.stringify({ system: [{ text: system }, { text: "You help." }], messages }));
  const { lists } = scanBody(body, MESSAGES_LAYOUT, known.find(session))!.scan;
  known.keep(session, lists);
  return [...lists.values()].flatMap(({ parts }) => parts.filter((part) => before.has(part))).length;
}

test("a conversation that goes on takes the place of its last turn, and another one is kept next to it", () => {
  expect(send("s", "line 1", ["a"])).toBe(0);
  expect(send("s", "line 2", ["a", "b"])).toBe(2);
  expect(send("s", "line 3", ["x"])).toBe(1);
  expect(send("s", "line 4", ["a", "b", "c"])).toBe(3);
  expect(send("s", "line 5", ["x", "y"])).toBe(2);
  expect(known.find("s")).toHaveLength(2);
  expect(send("another", "line 6", ["a"])).toBe(0);
});

test("memory is bounded, by conversations of a session and by parts", () => {
  for (let at = 0; at < 40; at += 1) send("s", "line", [`first ${at}`]);
  expect(known.find("s")).toHaveLength(16);
  const many = Array.from({ length: 9000 }, (_, at) => `part ${at}`);
  for (let at = 0; at < 30; at += 1) send(`s${at}`, "line", many);
  expect(known.size).toBeLessThanOrEqual(65_536);
  expect(known.size).toBeGreaterThan(50_000);
  expect([known.find("s0"), known.find("s29")].map(({ length }) => length)).toEqual([0, 1]);
});
