import { expect, spyOn, test } from "bun:test";
import { atTurnEnd, nextTurn, runAtOnce, runInTurns, type Steps } from "../../../src/lib/time/next-turn.ts";

test("at the end of a turn answers leave first, then records are written, requests leave, and what has ended is finished", async () => {
  const seen: string[] = [];
  for (const moment of ["finished", "requests", "records", "answers"] as const)
    atTurnEnd(moment, () => void seen.push(moment));
  expect(seen).toEqual([]);
  await nextTurn();
  expect(seen).toEqual(["answers", "records", "requests", "finished"]);
});

test("a request that awaited its record leaves at the end of the same turn", async () => {
  const seen: string[] = [];
  const record = Promise.withResolvers<void>();
  const leave = record.promise.then(() => atTurnEnd("requests", () => void seen.push("left")));
  atTurnEnd("records", () => record.resolve());
  await Promise.all([leave, nextTurn()]);
  expect(seen).toEqual(["left"]);
});

test("what is left for a moment that has come is done at the end of the next turn", async () => {
  const seen: string[] = [];
  for (const moment of ["records", "finished"] as const)
    atTurnEnd(moment, () => atTurnEnd("records", () => void seen.push(moment)));
  await nextTurn();
  expect(seen).toEqual([]);
  await nextTurn();
  await nextTurn();
  expect(seen).toEqual(["records", "finished"]);
});

test("one that fails at the end of a turn takes no other with it", async () => {
  const report = spyOn(globalThis, "reportError").mockImplementation(() => {});
  const seen: string[] = [];
  atTurnEnd("answers", () => {
    throw new Error("no answer");
  });
  atTurnEnd("answers", () => void seen.push("answered"));
  await nextTurn();
  expect([seen, report.mock.calls.length]).toEqual([["answered"], 1]);
  report.mockRestore();
});

function* work(log: string[]): Steps<string> {
  log.push("one");
  yield;
  log.push("two");
  return "done";
}

test("long work in turns lets the event loop turn between its steps, and at once it does not", async () => {
  const log: string[] = [];
  setImmediate(() => log.push("another"));
  expect(await runInTurns(work(log))).toBe("done");
  expect(log).toEqual(["one", "another", "two"]);
  expect([runAtOnce(work(log)), log.slice(3)]).toEqual(["done", ["one", "two"]]);
});
